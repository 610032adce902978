"""What people hold, at the door: whatever has a schedule in it becomes a problem and a schedule.

Taken are, besides a problem with its schedule and what holds both (a family's member, what ``read``
gives): a path; a family with its parameters in one text (``"1f1b p=4 m=8"``); a list of lists of
actions or their texts, one a rank, or a mapping from ranks to such lists; a ``Program``; a table
that was read; a schedule object of torch. A pipeline, a problem, or the path
of a problem file may stand before any of these in the place of the one that would be inferred.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from typing import TYPE_CHECKING

from bubbleproof.arguments import is_plan_like, pair_of, path_text, problem_of, told
from bubbleproof.faults import WrongType
from bubbleproof.theory.families import Family, FamilyMember
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline

if TYPE_CHECKING:
    from bubbleproof.formats import ScheduleFile

TAKEN = (
    "a problem and a schedule, or a family's member, a path, lists of actions per rank, a Program, "
    "a table or a schedule object of torch"
)


def pair(
    given: object, schedule: object, *, asker: str
) -> tuple[Problem, Schedule, Pipeline | None]:
    """The problem, the schedule and the pipeline where there is one, of any form that is taken.

    Raises ``TypeError`` and ``ValueError`` as ``held`` does, and ``ValueError`` with the reason
    where there are no times (a deadlock).
    """
    given, schedule = held(given, schedule, asker=asker)
    if schedule is None and hasattr(given, "timed") and getattr(given, "schedule", None) is None:
        try:
            given.timed()
        except ValueError as error:
            raise ValueError(f"{asker}: {error}") from None
    return pair_of(given, schedule, asker=asker)


def schedule_file(given: object, *, asker: str, problem: object = None) -> ScheduleFile:
    """What has a schedule in it, as its file has it; on another problem where one is given.

    Raises ``TypeError`` and ``ValueError`` as ``held`` does.
    """
    from bubbleproof.formats import ScheduleFile

    found, more = (
        held(given, None, asker=asker) if problem is None else held(problem, given, asker=asker)
    )
    inner = found if isinstance(found, ScheduleFile) else getattr(found, "schedule", None)
    if more is None and isinstance(inner, ScheduleFile):  # a file, or a plan's
        return inner
    name = _words(given) if isinstance(given, FamilyMember) else ""
    stated_problem, schedule, pipeline = pair_of(found, more, asker=asker)
    return ScheduleFile.of(stated_problem, schedule, pipeline=pipeline, name=name)


def _words(member: FamilyMember) -> str:
    return " ".join(f"{name}={value}" for name, value in member.params.items())


def stated(given: object, *, asker: str) -> tuple[Problem, Pipeline | None, str]:
    """The problem, its pipeline where there is one, and its name, of whatever states or holds one.

    Raises ``TypeError`` for what is none, ``ValueError`` in one line for a file that is not usable.
    """
    given = _read_where_a_path(given, asker)
    own = getattr(given, "problem", None)  # of a member, or a file
    problem = own if isinstance(own, Problem) else problem_of(given, asker=asker)
    name = _words(given) if isinstance(given, FamilyMember) else getattr(given, "name", "")
    return problem, _pipeline(given), name


def _read_where_a_path(given: object, asker: str) -> object:
    """What a file or a family's words say, where one of these is given."""
    if not isinstance(given, str | PathLike):
        return given
    from bubbleproof.formats.inputs import read_problem_input

    with _asked_by(asker):
        return read_problem_input(path_text(given, asker=asker))


def held(given: object, schedule: object, *, asker: str) -> tuple[object, object]:
    """What was given, with a ``ScheduleFile`` in the place of what has to be read or timed.

    Raises ``TypeError`` for what is none of the forms that are taken, ``ValueError`` in one line
    for content that is not usable.
    """
    if isinstance(given, Family):
        called = f"family({given.name!r})(p=4, m=8)"
        raise WrongType(f"{asker}: a family has a schedule where it has parameters, as {called}")
    if isinstance(given, Schedule):
        raise WrongType(f"{asker}: the problem goes first, as in {asker}(problem, schedule)")
    if schedule is None:
        if is_plan_like(given) or isinstance(getattr(given, "problem", None), Problem):
            return given, None
        found = _file(given, None, None, asker=asker)
        if found is None and isinstance(given, Pipeline | Problem):
            one = f"{asker}(problem, schedule)"
            raise WrongType(f"{asker}: a problem has no schedule yet: give it too, {one}, or solve")
        if found is None:
            raise WrongType(f"{asker}: expected {TAKEN}, got {told(given)}")
        return found, None
    given = _read_where_a_path(given, asker)
    if isinstance(own := getattr(given, "problem", None), Problem):  # of a member, or a file
        given = _pipeline(given) or own
    if isinstance(schedule, Schedule) or hasattr(schedule, "schedule"):
        return given, schedule
    found = _file(schedule, problem_of(given, asker=asker), _pipeline(given), asker=asker)
    if found is None:
        raise WrongType(f"{asker}: expected a Schedule or a Result, got {told(schedule)}")
    return found, None


def _pipeline(given: object) -> Pipeline | None:
    inner = given if isinstance(given, Pipeline) else getattr(given, "pipeline", None)
    return inner if isinstance(inner, Pipeline) else None


def _file(
    given: object, problem: Problem | None, pipeline: Pipeline | None, *, asker: str
) -> ScheduleFile | None:
    """The file of what can be read or timed; None for what cannot."""
    if isinstance(given, str | PathLike):
        text = fspath(given)
        return _named(text, problem, pipeline, asker=asker) if isinstance(text, str) else None
    from bubbleproof.formats.held_orders import (
        is_orders,
        is_torch_schedule,
        orders_file,
        torch_schedule_file,
    )

    if is_torch_schedule(given):
        return torch_schedule_file(given, problem=problem, pipeline=pipeline)
    if is_orders(given):
        return orders_file(given, problem=problem, pipeline=pipeline)
    return None


def _named(
    text: str, problem: Problem | None, pipeline: Pipeline | None, *, asker: str
) -> ScheduleFile:
    """The schedule of a path, or of a family's words; on a problem where one is given."""
    from bubbleproof.formats.held_orders import orders_file
    from bubbleproof.formats.inputs import read_schedule_input

    with _asked_by(asker):
        found = read_schedule_input([text])
    if problem is None:
        return found
    return orders_file(found.program, problem=problem, pipeline=pipeline, name=found.name)


@contextmanager
def _asked_by(asker: str) -> Iterator[None]:
    """Put the asker before a refusal that names no file."""
    from bubbleproof.formats.errors import UnusableInput

    try:
        yield
    except UnusableInput:
        raise
    except ValueError as error:
        raise ValueError(f"{asker}: {error}") from None
