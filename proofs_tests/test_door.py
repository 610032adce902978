"""The door: its names work, load what they must and no more, and say what they expected."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import bubbleproof as bp
from bubbleproof.formats import ScheduleFile
from bubbleproof.planners import Plan
from proofs_tests.patience import PATIENCE
from proofs_tests.structure import modules

SMALL = bp.Pipeline(num_ranks=2, num_microbatches=3, capacity=2)


@pytest.mark.torch
def test_every_name_is_called_after_every_module_is_imported(tmp_path: Path) -> None:
    # A module that is imported becomes an attribute of its package: none may shadow a name.
    for name in modules():
        if name and not name.endswith("__main__"):
            importlib.import_module(f"bubbleproof.{name}")
    member = bp.family("1f1b")(p=2, m=3)
    result = bp.solve(SMALL)
    assert isinstance(result, bp.Result)
    assert isinstance(result.schedule, bp.Schedule)
    # 1F0 starts at 1, then three times F and B on rank 1, and the last B of rank 0: 1 + 9 + 2.
    assert (result.makespan, result.lower_bound) == (12, 12)
    verdict = bp.check(SMALL, result)
    assert isinstance(verdict, bp.Verdict)
    assert verdict.ok
    assert bp.measure(SMALL, result).makespan == 12
    assert isinstance(SMALL.problem(), bp.Problem)
    assert "1f1b" in bp.families()
    path = tmp_path / "s.json"
    bp.write(path, SMALL, result, name="best")
    assert bp.check(bp.read(path)).ok
    bp.write(tmp_path / "s.csv", member)
    assert bp.measure(bp.read(tmp_path / "s.csv")) == bp.measure(member)
    assert "0F0" in str(bp.show(SMALL, result)) or "F0" in str(bp.show(SMALL, result))
    assert bp.replay(SMALL, result).ok
    assert [point.makespan for point in bp.pareto(SMALL).points] == [18, 12]
    found = bp.plan(SMALL)
    assert isinstance(found, Plan)
    assert (found.value, found.lower_bound) == (12, 12)
    assert len(bp.__all__) <= 34


def test_a_file_is_judged_with_its_pipeline(tmp_path: Path) -> None:
    """As the command judges it: a problem that is not what its pipeline requires is refused."""
    member = bp.family("1f1b")(p=2, m=3)
    bp.write(tmp_path / "s.json", member)
    read = bp.read(tmp_path / "s.json")
    assert isinstance(read, ScheduleFile)
    assert bp.check(read).ok
    other = replace(read, pipeline=member.pipeline.with_changes(latency=1))
    assert [rule.name for rule in bp.check(other).broken] == ["REQUIRED"]
    assert bp.check(other.problem, other).ok  # a problem by itself is of no pipeline


def test_a_violation_is_one_line_and_its_picture() -> None:
    gpipe = bp.family("gpipe")(p=2, m=3)
    verdict = bp.check(SMALL, gpipe.schedule)
    # With room for two, the third F is one too many on either rank.
    assert repr(verdict) == "<Verdict: violated, memory 2x>"
    first, second = verdict.violations
    assert isinstance(first, bp.Violation)
    assert "\n" not in repr(first)
    assert "[0F2]" in str(first)
    assert "[1F2]" in str(second)


def test_each_repr_is_one_line() -> None:
    result = bp.solve(SMALL)
    assert repr(SMALL) == "Pipeline(num_ranks=2, num_microbatches=3, capacity=2)"
    assert eval(repr(SMALL), {"Pipeline": bp.Pipeline}) == SMALL
    assert repr(SMALL.problem()) == (
        # 2 stages x 3 microbatches x (F, B); edges: F to F, F to B on each, B to B: 3 x (1 + 2 + 1)
        "<Problem: 12 tasks on 2 ranks, 12 precedences, 2 stores, unit tick>"
    )
    assert repr(result) == (
        "<Result: optimal for this shape, makespan 12, "
        "no schedule is below 12 (certificate checked)>"
    )
    assert repr(result.schedule) == "<Schedule: 12 rows on 2 resources, starting at 0 to 10>"
    assert repr(bp.family("1f1b")) == "<Family 1f1b: 1F1B>"
    for thing in (bp.show(SMALL, result), bp.family("1f1b")(p=2, m=2)):
        assert "\n" not in repr(thing)
        assert len(repr(thing)) < 120


def test_a_notebook_displays_a_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = bp.show(bp.family("1f1b")(p=2, m=2), title="two ranks")
    shown = picture._repr_mimebundle_()
    assert "<svg" in str(shown["image/svg+xml"])
    assert shown["text/plain"] == str(picture)
    monkeypatch.setitem(sys.modules, "matplotlib.style", None)  # as if not installed
    monkeypatch.setitem(sys.modules, "anywidget", None)
    bare = picture._repr_mimebundle_()
    assert set(bare) == {"text/plain", "text/html"}
    assert "9 ticks, 33.3 % idle" in str(bare["text/html"])  # (2 + 2 - 1) * 3; 2 * 9 - 12 of 18


def test_importing_the_door_loads_no_room() -> None:
    code = (
        "import sys, bubbleproof as bp; bp.Pipeline(num_ranks=2, num_microbatches=2).problem(); "
        "print(*sorted({name.partition('.')[0] for name in sys.modules}), "
        "*sorted(n for n in sys.modules if n.startswith('bubbleproof.')))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE
    ).stdout.split()
    assert "numpy" in loaded
    heavy = {"torch", "ortools", "z3", "pulp", "highspy", "matplotlib", "typer", "rich"}
    assert not heavy & set(loaded)
    rooms = {name.split(".")[1] for name in loaded if name.startswith("bubbleproof.")}
    assert rooms == {"theory", "former_names", "door_classes"}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: bp.solve(["x.txt"]),  # type: ignore[arg-type]  # wrong on purpose
            "solve: expected a Pipeline, a Problem or the path of a problem file (.toml), got list "
            "['x.txt']",
        ),
        (
            lambda: bp.check(SMALL, [1]),  # type: ignore[list-item]  # wrong on purpose
            "check: expected a Schedule or a Result, got list [1]",
        ),
        (lambda: bp.check(SMALL), "check: a problem has no schedule yet: give it too"),
        (
            lambda: bp.register("1f1b"),  # type: ignore[arg-type]  # wrong on purpose
            "register: expected an instance of",
        ),
    ],
)
def test_a_wrong_type_says_what_was_expected(call: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


MEMBER = bp.family("1f1b")(p=2, m=2)
WRONG: tuple[object, ...] = (None, [], {}, "x", b"x", 3, 2.5, np.int64(3), (1, 2), object)


@pytest.mark.parametrize("value", WRONG, ids=repr)
@pytest.mark.parametrize(
    "name",
    [
        *("solve", "pareto", "check", "measure", "show", "register"),
        pytest.param("replay", marks=pytest.mark.torch),
    ],
)
def test_no_problem_and_no_family_is_refused_in_one_line(name: str, value: object) -> None:
    is_text = value == "x" and name != "register"
    error = ValueError if is_text else TypeError  # a text may name a family or a file
    told = (
        r"^[^\n]*'?x'?[:;] expected [^\n]+$"
        if is_text
        else rf"^{name}: expected [^\n]+, got [^\n]+$"
    )
    with pytest.raises(error, match=told):
        getattr(bp, name)(value)


@pytest.mark.parametrize("value", WRONG, ids=repr)
@pytest.mark.parametrize("name", ["read", "write", "family"])
def test_what_is_no_path_and_no_name_is_refused_in_one_line(name: str, value: object) -> None:
    given = (value, MEMBER) if name == "write" else (value,)
    with pytest.raises((TypeError, ValueError)) as caught:
        getattr(bp, name)(*given)
    words = ["path", "text", "ending", "file", "family"]
    assert any(word in str(caught.value) for word in words), str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "options", "message"),
    [
        (bp.solve, {"within": "5"}, "solve: within must be a whole number, got str '5'"),
        (bp.solve, {"within": True}, "solve: within must be a whole number, got bool True"),
        (bp.solve, {"within": 2.5}, "solve: within must be a whole number, got float 2.5"),
        (
            bp.solve,
            {"time_limit": "5"},
            "solve: time_limit must be a number of seconds, got str '5'",
        ),
        (bp.solve, {"work": "5"}, "solve: work must be a number of units, got str '5'"),
        (bp.solve, {"work": 0}, "work must be above 0 units, got 0"),
        (bp.plan, {"work": [1]}, "plan: work must be a number of units, got list [1]"),
        (bp.solve, {"threads": "2"}, "solve: threads must be a whole number, got str '2'"),
        (bp.solve, {"seed": [1]}, "solve: seed must be a whole number, got list [1]"),
        (bp.solve, {"certified": "yes"}, "solve: certified must be true or false, got str 'yes'"),
        (bp.solve, {"objective": 3}, "objective must be one of makespan span_idle"),
        (bp.solve, {"engine": ["sat"]}, "engine must be one of auto cpsat sat z3 pulp"),
        (bp.plan, {"chunks": "12"}, "plan: chunks must be a list of values, got s"),
        (bp.pareto, {"time_limit": "5"}, "pareto: time_limit must be a number of seconds, got s"),
        (bp.show, {"window": "x"}, "show: window must be two whole numbers (first, last) in "),
        (
            bp.show,
            {"window": (1,)},
            "show: window must be two whole numbers (first, last) in ",
        ),
        (
            bp.show,
            {"window": (0.5, 2)},
            "show: each tick of window must be a whole number, got ",
        ),
        (bp.show, {"window": (5, 2)}, "show: a window must end after it starts, got 5 to 2"),
        (bp.show, {"title": None}, "show: title must be text, got NoneType None"),
        pytest.param(
            bp.replay,
            {"model": "mlp"},
            "replay: model must be a ModelSpec, a function that makes a model, or",
            marks=pytest.mark.torch,
        ),
        pytest.param(
            bp.replay,
            {"steps": "2"},
            "replay: steps must be a whole number, got str '2'",
            marks=pytest.mark.torch,
        ),
        pytest.param(
            bp.replay,
            {"backend": 3},
            "replay backend must be one of virtual, gloo, got 3",
            marks=pytest.mark.torch,
        ),
    ],
)
def test_a_wrong_option_is_named(
    call: Callable[..., object], options: dict[str, object], message: str
) -> None:
    given = SMALL if call in (bp.solve, bp.pareto, bp.plan) else MEMBER
    with pytest.raises((TypeError, ValueError)) as caught:
        call(given, **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: bp.write("x.json", MEMBER, name=None),  # type: ignore[arg-type]  # on purpose
            "write: name must be text, got NoneType None",
        ),
        (
            lambda: bp.family("1f1b")(p="2", m=2),  # type: ignore[arg-type]  # on purpose
            "p must be a whole number, got '2'",
        ),
        (lambda: bp.family("1f1b")(p=2), "parameter m is missing; for example p=4 m=8"),
        (
            lambda: bp.family("1f1b")(p=2, m=2, q=2),
            "no parameter q; the parameters are p m v s f G R e d tF tB tI tW",
        ),
        (
            lambda: bp.family("1f1b")(p=2, m=2, e=3),
            "e must be a tuple of whole numbers, got 3",
        ),
    ],
)
def test_a_wrong_name_timeout_or_parameter_is_named(
    call: Callable[[], object], message: str
) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert str(caught.value) == message


def test_numbers_of_numpy_are_numbers() -> None:
    result = bp.solve(
        SMALL,
        within=np.int64(12),  # type: ignore[arg-type]  # numpy's integers are none of Python's
        time_limit=np.float64(60.0),
        threads=np.int64(1),  # type: ignore[arg-type]  # likewise
    )
    assert result.makespan == 12
    assert "F0" in str(bp.show(MEMBER, window=(np.int64(0), np.int64(5))))  # type: ignore[arg-type]  # likewise


def test_public_functions_have_sections() -> None:
    for name in ("solve", "pareto", "check", "measure", "show", "replay", "read", "write"):
        has_sections(name)


def has_sections(name: str) -> None:
    """A function of the door, in its docstring."""
    text = inspect.getdoc(getattr(bp, name)) or ""
    assert "\nParameters\n----------\n" in text, name
    assert "\nRaises\n------\n" in text, name
    assert ("\nReturns\n-------\n" in text) is (name != "write"), name
    signature = inspect.signature(getattr(bp, name))
    shared = "problem, schedule\n" if "schedule" in signature.parameters else ""
    for parameter in signature.parameters:
        is_told = f"\n{parameter}\n" in text or f"{parameter}, " in text
        assert is_told or parameter in shared or f", {parameter}\n" in text, (name, parameter)


def test_a_wrong_value_says_what_was_expected(tmp_path: Path) -> None:
    result = bp.solve(bp.Pipeline(num_ranks=2, num_microbatches=1, activation=3, capacity=2))
    with pytest.raises(ValueError, match="holds no schedule"):
        bp.check(SMALL, result)
    with pytest.raises(ValueError, match=r"a file ends in \.json, \.csv or \.perfetto\.json"):
        bp.write(tmp_path / "x.txt", bp.family("1f1b")(p=2, m=2))
    with pytest.raises(ValueError, match="objective must be one of makespan"):
        bp.solve(SMALL, objective="speed")
    with pytest.raises(AttributeError, match="its names are Cluster"):
        bp.nothing  # noqa: B018 - the access is what is tested
