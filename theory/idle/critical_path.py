"""The critical path: the chain of tasks that makes a schedule as long as it is.

It ends with the task that ends last and leads back, each time to what the task waited for until its
start (docs/guide/design.md §2): an input that arrived then; else the task before it on one of its
resources that ended then; else the release that made room for it then. Where nothing held it until
then, ``late`` tells for how many ticks, and the path goes on from what held it last.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bubbleproof.theory.idle.room import Room, room_of
from bubbleproof.theory.idle.timed_rows import TimedRows, timed_rows
from bubbleproof.theory.model.actions import NONE
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStep:
    """One task of a critical path, from ``start`` to ``end`` (ticks) on its first resource.

    ``after`` is what it waited for: ``input``, ``order`` (the task before it on a resource),
    ``memory``, or ``start`` where the path begins. ``lag`` ticks passed between the end of the step
    before and the arrival of its result; ``late`` more before this task started.
    """

    action: str
    resource: str
    start: int
    end: int
    after: str
    lag: int = 0
    late: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticalTask:
    """A task of a critical path, by its index in the problem; otherwise as ``PathStep``."""

    task: int
    after: str
    lag: int
    late: int


def critical_path(problem: Problem, schedule: Schedule) -> tuple[PathStep, ...]:
    """The steps of a critical path in order of time; none of an empty schedule.

    Raises ``ValueError`` where a rank does two things at once.
    """
    rows = timed_rows(problem, schedule)
    return tuple(
        PathStep(
            action=problem.label(step.task),
            resource=problem.resources[rows.homes[step.task][0]].name,
            start=int(rows.start[step.task]),
            end=int(rows.end[step.task]),
            after=step.after,
            lag=step.lag,
            late=step.late,
        )
        for step in critical_tasks(rows)
    )


def critical_tasks(rows: TimedRows) -> list[CriticalTask]:
    """The tasks of a critical path in order of time, without their words."""
    if not len(rows.computed):
        return []
    room, task, found = room_of(rows), rows.last_task, dict[int, CriticalTask]()
    while task != NONE and task not in found:
        before, after, lag, late = _held_by(rows, room, task)
        found[task] = CriticalTask(task=task, after=after, lag=lag, late=late)
        task = before
    return [*found.values()][::-1]


def _held_by(rows: TimedRows, room: Room, task: int) -> tuple[int, str, int, int]:
    """(the step before, why, its lag, how many ticks the task starts late)."""
    start = int(rows.start[task])
    edge, found = int(rows.binding[task]), list[tuple[int, int, int, str]]()
    if edge != NONE:
        giver, lag = int(rows.problem.edges.before[edge]), int(rows.problem.edges.lag[edge])
        found.append((int(rows.ready[task]), 2, giver, "input"))
    else:
        lag = 0
    for resource in rows.homes[task]:
        others = rows.tasks_of[resource]
        place = int(np.flatnonzero(others == task)[0])
        if place:
            other = int(others[place - 1])
            found.append((int(rows.end[other]), 1, other, "order"))
    if all(when < start for when, *_ in found):
        whose = room.made_room(task)
        found += [] if whose == NONE else [(start, 0, whose, "memory")]
    held = [row for row in found if row[0] <= start]
    if not held:
        return NONE, "start", 0, 0
    when, _, before, after = max(held, key=lambda row: row[:2])
    return before, after, lag if after == "input" else 0, start - when
