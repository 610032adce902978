"""Schedules as the engines see them, one start per task, in ticks from 0; precedences as rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Edges, Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.timing import UntimedProgram, in_order, left_shift


def starts_by_task(problem: Problem, schedule: Schedule) -> Ints:
    """The start of each task, the first at 0. Precondition: the schedule is complete."""
    start = np.zeros(problem.num_tasks, dtype=np.int64)
    start[problem.locate(schedule.program.actions)] = schedule.start
    return np.asarray(start - start.min(), dtype=np.int64)


def schedule_of_starts(problem: Problem, start: Ints) -> Schedule:
    """The schedule with the given start per task: rows by resource, then start, then end.

    Of instants at one time none comes before one that it waits for.

    Parameters
    ----------
    start
        Ticks per task, shape (num_tasks,).
    """
    occupancy = problem.occupancy
    begin = start[occupancy.task]
    end = begin + problem.duration[occupancy.task]
    place = places(problem, problem.edges)[occupancy.task]
    rows = np.lexsort((place, end, begin, occupancy.resource))
    task = occupancy.task[rows]
    program = Program(actions=problem.actions.take(task), resource=occupancy.resource[rows])
    return Schedule(program=program, start=start[task], duration=problem.duration[task])


def places(problem: Problem, edges: Edges) -> Ints:
    """Of each task its place in an order of the edges; all alike where no task is an instant."""
    found = np.zeros(problem.num_tasks, dtype=np.int64)
    order = None
    if not problem.duration.all():
        order = in_order(problem.num_tasks, edges.before, edges.after)
    if order is not None:
        found[order] = np.arange(problem.num_tasks)
    return found


def shifted(problem: Problem, start: Ints) -> Iterator[Schedule]:
    """The left-shifted schedule of the order of these starts; none where it waits for itself.

    Parameters
    ----------
    start
        Ticks per task, shape (num_tasks,).
    """
    with suppress(UntimedProgram):
        yield left_shift(problem, schedule_of_starts(problem, start).program)


def rows(edges: Edges) -> Iterator[tuple[int, int, int]]:
    """(before, after, lag) of each precedence."""
    return zip(edges.before.tolist(), edges.after.tolist(), edges.lag.tolist(), strict=True)


def joined(edges: Edges, more: Edges) -> Edges:
    """The precedences of both."""
    return Edges(
        before=np.concatenate([edges.before, more.before]),
        after=np.concatenate([edges.after, more.after]),
        lag=np.concatenate([edges.lag, more.lag]),
    )


def behind(num_tasks: int, edges: Edges) -> list[int]:
    """For each task, as bits, those that start after it ends by paths without negative lags.

    Empty where the edges have a cycle.

    Parameters
    ----------
    num_tasks
        Tasks are numbered from 0 to ``num_tasks - 1``.

    Returns
    -------
    list[int]
        For each task a number whose bit t is set where task t starts after it ends.
    """
    safe = edges.lag >= 0
    before, after = edges.before[safe], edges.after[safe]
    following: list[list[int]] = [[] for _ in range(num_tasks)]
    for task, later in zip(before.tolist(), after.tolist(), strict=True):
        following[task].append(later)
    found = [0] * num_tasks
    in_time = in_order(num_tasks, before, after)
    if in_time is None:
        return []
    for task in reversed(in_time):
        bits = 0
        for later in following[task]:
            bits |= found[later] | (1 << later)
        found[task] = bits
    return found
