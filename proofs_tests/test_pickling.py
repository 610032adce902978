"""What travels to workers: values and errors, as other processes get them.

A value that does not pickle ends a command with workers; an error that does not is worse, for it
breaks the pool that waits for it.
"""

from __future__ import annotations

import pickle
from concurrent.futures import ProcessPoolExecutor
from dataclasses import is_dataclass
from importlib import import_module
from inspect import getmembers, isclass
from multiprocessing import get_context
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from bubbleproof.engine_process.loss import EngineLoss, EngineLostError, LossKind
from bubbleproof.faults import FaultError
from bubbleproof.formats import UnusableInput, read_schedule, write_schedule
from bubbleproof.formats.files import MissingFile
from bubbleproof.formats.schedule_file import ScheduleFile
from bubbleproof.parallel import open_executor
from bubbleproof.solvers import SolveOptions, solve
from bubbleproof.testing.assertions import InvalidSchedule
from bubbleproof.theory.families import member
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.shaping import NotLegalError
from bubbleproof.theory.pipelines.timing import Deadlock
from bubbleproof.verify import check_whole
from proofs_tests.structure import modules

SMALL = member("1f1b", p=2, m=2)
LATE = Pipeline(num_ranks=2, num_microbatches=2)
WRONG = Schedule(program=SMALL.schedule.program, start=SMALL.schedule.start * 0)
ERRORS = (
    UnusableInput("orders[1]", "an action", "'x'", "a.json"),
    MissingFile(subject="a.json"),
    Deadlock(["0F0", "1B0"]),
    InvalidSchedule(check_whole(SMALL.problem, WRONG)),
    FaultError("z3", "the bound 12", "the checker accepts a schedule of 11"),
    EngineLostError(EngineLoss(who="cpsat", kind=LossKind.KILLED)),
    NotLegalError("4 does not divide 6", is_too_large=True),
)


def same(value: object) -> object:
    return value


def fail(error: Exception) -> None:
    raise error


def values(folder: Path) -> dict[str, object]:
    """What commands hand to workers and get back, and what a library's user may."""
    path = folder / "x.json"
    write_schedule(path, ScheduleFile.of(SMALL.problem, SMALL.schedule, pipeline=SMALL.pipeline))
    plain = Schedule(program=SMALL.schedule.program, start=SMALL.schedule.start)
    viewed = Schedule(
        program=plain.program, start=plain.start, claims=MappingProxyType({"makespan": 9})
    )
    return {
        "schedule": plain,
        "schedule with a view of claims": viewed,
        "schedule file": read_schedule(path),
        "member": SMALL,
        "result": solve(LATE.problem(), SolveOptions(engine="cpsat", threads=1)),
        "verdict": check_whole(SMALL.problem, SMALL.schedule),
    }


def test_values_travel_to_spawned_and_forked_processes(tmp_path: Path) -> None:
    given = list(values(tmp_path).values())
    with open_executor(2) as spawned:
        assert spawned is not None
        assert [type(spawned.submit(same, v).result()) for v in given] == list(map(type, given))
    with ProcessPoolExecutor(1, get_context("fork")) as forked:
        assert [type(forked.submit(same, v).result()) for v in given] == list(map(type, given))


def test_a_schedule_arrives_as_it_left(tmp_path: Path) -> None:
    for name, value in values(tmp_path).items():
        if isinstance(value, Schedule):
            found = pickle.loads(pickle.dumps(value))
            assert np.array_equal(found.start, value.start), name
            assert found.claims == value.claims, name


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_travel(error: Exception) -> None:
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert found.__dict__.keys() == error.__dict__.keys()


def test_an_error_of_a_worker_reaches_the_caller() -> None:
    with open_executor(2) as executor:
        assert executor is not None
        raised = executor.submit(fail, ERRORS[0]).exception()
    assert isinstance(raised, UnusableInput)
    assert str(raised) == "a.json: orders[1]: expected an action, found 'x'"


@pytest.mark.torch
def test_every_error_with_an_init_of_its_own_is_among_them() -> None:
    """An exception is made again from its one message; with other parameters it must say how."""
    assert own_errors(is_of_papers=False) == {*map(type, ERRORS)}


def own_errors(*, is_of_papers: bool) -> set[type]:
    """The errors of the papers, or of the core, that have an init of their own."""
    found = {
        kind
        for name in modules()
        if name and ".pytorch" not in name and not name.endswith("__main__")
        for _, kind in getmembers(import_module(f"bubbleproof.{name}"), isclass)
        if issubclass(kind, Exception) and kind.__module__.startswith("bubbleproof")
    }
    own = {kind for kind in found if "__init__" in vars(kind) and not is_dataclass(kind)}
    return {
        kind for kind in own if kind.__module__.startswith("bubbleproof.papers.") is is_of_papers
    }
