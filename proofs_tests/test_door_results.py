"""The door as a whole: its names, the types of its parameters, and every result in every form."""

from __future__ import annotations

import ast
import inspect
import json
import logging
import pickle
import sys
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import bubbleproof as bp
from bubbleproof import door_types
from bubbleproof.facts import FactSource
from bubbleproof.faults import WrongType, WrongValue
from bubbleproof.formats import ScheduleFile
from bubbleproof.formats.files import MissingFile
from bubbleproof.wings import NAMES, present

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
FUNCTIONS = [name for name in bp.__all__ if inspect.isfunction(getattr(bp, name))]
SMALL = bp.Pipeline(num_ranks=2, num_microbatches=3, capacity=2)


def test_dir_holds_the_door_and_nothing_else() -> None:
    assert dir(bp) == sorted({*bp.__all__, *present(NAMES)})
    assert not any(isinstance(getattr(bp, name), types.ModuleType) for name in dir(bp))


def test_a_room_hides_no_function_of_its_name() -> None:

    assert inspect.isfunction(bp.costs)
    assert inspect.isfunction(bp.hand_over)


def parts(of: Any) -> Iterator[Any]:
    """A type, and all that stands in it."""
    yield of
    for inner in typing.get_args(of):
        yield from inner if isinstance(inner, list) else parts(inner)


def kind_of(function: Any, annotation: object) -> Any:
    """An annotation as a type checker reads it: names are imported for it alone."""
    tree = ast.parse(inspect.getsource(sys.modules[function.__module__]))
    alone = [each for each in tree.body if isinstance(each, ast.If)]
    names = {**function.__globals__, **vars(door_types)}
    for block in alone:
        exec(compile(ast.Module(block.body, []), "annotations", "exec"), names)
    return eval(str(annotation), names)


@pytest.mark.torch
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_has_a_type_and_none_is_any_object(name: str) -> None:
    function = inspect.unwrap(getattr(bp, name))
    for parameter in inspect.signature(function).parameters.values():
        assert parameter.annotation is not inspect.Parameter.empty, (name, parameter)
        kind = kind_of(function, parameter.annotation)
        assert not any(each is object or each is Any for each in parts(kind)), parameter


def test_an_untyped_parameter_would_be_found() -> None:
    assert object in [*parts(list[object] | None)]


@cache
def folder() -> Path:
    from tempfile import mkdtemp

    return Path(mkdtemp(prefix="bubbleproof-test-"))


def measured() -> Path:
    """The example's iterations with the times that are estimated of them."""
    rows = (EXAMPLES / "cluster" / "iterations.csv").read_text("utf-8").splitlines()
    times = [
        each.iteration_ms for each in bp.estimate(EXAMPLES / "cluster" / "iterations.csv", "h100")
    ]
    path = folder() / "measured.csv"
    told = [f"{row},{time:.1f}" for row, time in zip(rows[1:], times, strict=True)] * 2
    path.write_text("\n".join([f"{rows[0]},iteration_ms", *told]) + "\n", "utf-8")
    return path


def job(model: str, *, cards: int) -> FactSource:
    return bp.plan(model=model, card="h100", cards=cards, samples=8, sequence=2048, work=2.0)


# Each function with a call of it; what it gives is looked at in all its forms.
CALLS: dict[str, Callable[[], FactSource]] = {
    "calibrate": lambda: bp.calibrate(measured(), folder() / "h.toml", card="h100"),
    "check": lambda: bp.check("1f1b p=2 m=3"),
    "convert": lambda: bp.convert("1f1b p=2 m=3", folder() / "x.csv"),
    "costs": lambda: bp.costs("llama-2-7b", tensor=2),
    "diff": lambda: bp.diff("1f1b p=2 m=3", bp.family("gpipe")(p=2, m=3)),
    "estimate": lambda: bp.estimate(EXAMPLES / "cluster" / "iterations.csv", "h100")[0],
    "hand_over": lambda: bp.hand_over("1f1b p=2 m=3", folder() / "ho", to="torch-2.13"),
    "hang": lambda: bp.hang(EXAMPLES / "ci" / "hang"),
    "idle": lambda: bp.idle("1f1b p=2 m=3"),
    "measure": lambda: bp.measure("1f1b p=2 m=3"),
    "pareto": lambda: bp.pareto(SMALL),
    "plan": lambda: bp.plan(SMALL),
    "profile": lambda: bp.profile(
        None, folder() / "p.toml", ranks=2, microbatches=2, warmup=1, repeats=1
    ),
    "repair": lambda: bp.repair(bp.family("gpipe")(p=2, m=3), problem=SMALL),
    "replay": lambda: bp.replay("1f1b p=2 m=2"),
    "solve": lambda: bp.solve(SMALL),
    "trace": lambda: bp.trace(EXAMPLES / "ci" / "trace", path=folder() / "traced"),
}
# What gives no result: families, what stands in a file, a picture, nothing.
OTHERS = {"families", "family", "read", "register", "show", "write"}
# What else a function may give, each looked at as well.
MORE: dict[str, Callable[[], FactSource]] = {
    "no plan": lambda: bp.plan(SMALL.with_changes(activation=3)),
    "plan of a job": lambda: job("llama-2-7b", cards=2),
    "no plan of a job": lambda: job("llama-3-70b", cards=1),
    "no repair": lambda: bp.repair(
        bp.family("gpipe")(p=2, m=3), problem=SMALL.with_changes(activation=3)
    ),
}
NEED_TORCH = ("profile", "replay")
given = cache(lambda name: {**CALLS, **MORE}[name]())


def test_every_function_is_looked_at() -> None:
    assert {*FUNCTIONS} == {*CALLS, *OTHERS}


@pytest.mark.torch
@pytest.mark.parametrize("name", sorted({*FUNCTIONS} - OTHERS))
def test_what_a_function_says_to_give_states_facts(name: str) -> None:
    function = inspect.unwrap(getattr(bp, name))
    told = kind_of(function, inspect.signature(function).return_annotation)
    kinds = [each for each in parts(told) if inspect.isclass(each) and each is not list]
    assert kinds
    assert all(issubclass(each, FactSource) for each in kinds), kinds


each_result = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.torch) if name in NEED_TORCH else name
        for name in (*sorted(CALLS), *MORE)
    ],
)


@each_result
def test_a_result_is_a_dictionary_a_table_and_a_page(name: str) -> None:
    every_form(given(name))


def every_form(result: FactSource) -> None:
    """It is an object for programs, a table of pandas and one for notebooks."""
    assert isinstance(result, FactSource)
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))
    frame = result.to_frame()
    assert frame.columns.is_unique
    assert len(frame) == sum(bool(fact.label) for fact in result.facts()) > 0
    assert result._repr_html_().count("<tr>") == len(frame) + 1


@each_result
def test_a_result_travels_to_another_process(name: str) -> None:
    result = given(name)
    there = pickle.loads(pickle.dumps(result))
    assert type(there) is type(result)
    assert there == result
    assert hash(there) == hash(result)


@each_result
def test_an_exact_ratio_has_a_float_beside_it(name: str) -> None:
    result = given(name)
    if is_dataclass(result):
        for field in fields(result):
            exact = getattr(result, field.name)
            if isinstance(exact, Fraction):
                assert getattr(result, f"{field.name}_float") == float(exact)


def test_a_schedule_gives_action_rank_start_and_end(tmp_path: Path) -> None:
    # GPipe of one microbatch: F on rank 0, F on rank 1, then B of 2 ticks on each.
    rows = [("0F0", 0, 0, 1), ("0B0", 0, 4, 6), ("1F0", 1, 1, 2), ("1B0", 1, 2, 4)]
    schedule = bp.family("gpipe")(p=2, m=1).schedule
    bp.write(tmp_path / "s.json", bp.family("gpipe")(p=2, m=1))
    read = bp.read(tmp_path / "s.json")
    assert isinstance(read, ScheduleFile)
    for each in (schedule, read.timed(), pickle.loads(pickle.dumps(schedule))):
        assert [(str(action), *row) for action, *row in each] == rows
    untimed = bp.Schedule(program=schedule.program, start=schedule.start)
    with pytest.raises(ValueError, match="the ends of this schedule are not known"):
        iter(untimed)


def test_all_errors_have_one_base(tmp_path: Path) -> None:
    calls: list[tuple[Callable[[], object], type[Exception], type[Exception]]] = [
        (lambda: bp.read(tmp_path / "none.json"), MissingFile, FileNotFoundError),
        (lambda: bp.solve(tmp_path / "none.toml"), MissingFile, ValueError),
        (lambda: bp.solve(SMALL, engine="cpsta"), WrongValue, ValueError),
        (lambda: bp.solve(SMALL, threads="2"), WrongType, TypeError),  # type: ignore[arg-type]  # on purpose
        (lambda: bp.plan(), WrongType, TypeError),
        (lambda: bp.plan(SMALL, cards=8), WrongType, TypeError),
        (lambda: bp.costs("llama-7"), WrongValue, ValueError),
        (lambda: bp.trace([]), WrongValue, ValueError),
        (lambda: bp.family("1f1b")(p=0, m=2), WrongValue, ValueError),
        (lambda: bp.family("interleaved")(p=4, m=8, tI=1, tB=3), WrongValue, ValueError),
    ]
    for call, kind, builtin in calls:
        with pytest.raises(bp.Error) as caught:
            call()
        assert isinstance(caught.value, kind)
        assert isinstance(caught.value, builtin)
        there = pickle.loads(pickle.dumps(caught.value))
        assert (type(there), str(there)) == (kind, str(caught.value))


def test_long_work_is_heard_and_nothing_is_printed(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    heard: list[str] = []
    with caplog.at_level(logging.INFO, "bubbleproof"):
        bp.trace(EXAMPLES / "ci" / "trace", progress=heard.append)
        bp.pareto(SMALL, progress=heard.append)
        bp.plan(SMALL, progress=heard.append)
    assert sum(line.startswith("reading ") for line in heard) == 4
    assert sum(line.startswith("at most ") for line in heard) >= 2
    assert len(caplog.records) == len(heard)
    assert {record.name for record in caplog.records} == {"bubbleproof"}
    assert capfd.readouterr() == ("", "")
    with pytest.raises(TypeError, match="progress must be a function of a line of text"):
        bp.pareto(SMALL, progress="yes")  # type: ignore[arg-type]  # wrong on purpose


def test_a_model_on_cards_is_planned_in_one_call(tmp_path: Path) -> None:
    """As the file that says the same, which it can be written into and checked by."""
    at = {"samples": 8, "sequence": 2048, "work": 20.0}
    found = bp.plan(model="llama-2-7b", card="h100", cards=2, **at)  # type: ignore[arg-type]  # by name
    path = tmp_path / "job.toml"
    path.write_text(
        '[model]\nname = "llama-2-7b"\n[cluster]\ncard = "h100"\ncards = 2\n'
        "[batch]\nsamples = 8\nsequence = 2048\n"
    )
    read = bp.plan(path, work=20.0)
    assert repr(found) == repr(read)
    told = bp.plan(
        model="llama-2-7b", cluster=bp.Cluster(card="h100", cards=2), samples=8, sequence=2048,
        work=20.0,
    )  # fmt: skip
    assert repr(told) == repr(found)
    bp.write(tmp_path / "P", found)
    assert bp.check(bp.read(tmp_path / "P")).ok


def test_a_shape_is_planned_as_the_published_model_of_it() -> None:
    from bubbleproof.costs import known_model

    shape = known_model("llama-2-7b").model
    assert isinstance(shape, bp.Model)
    cluster = bp.Cluster(card="h100", cards=2)
    found, named = (
        bp.plan(model=model, cluster=cluster, samples=8, sequence=2048, work=20.0)
        for model in (shape, "llama-2-7b")
    )
    assert repr(found) == repr(named)
