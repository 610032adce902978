"""A schedule's rows as they are timed: when tasks start and end, when their inputs have arrived.

``ready[t]`` is the tick at which the last input of task t has arrived (the end of a task that it
comes after, and the lag), ``binding[t]`` the edge that brings it; both are of the schedule as it
is. Of inputs that arrive together a message binds rather than a
computation, and then the first in the problem's list of precedences. A task
without inputs is ready from the beginning of time.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from bubbleproof.theory.model.actions import NONE, Bools, Ints
from bubbleproof.theory.model.measures import known_rows
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule

EVER = np.iinfo(np.int64).min // 4  # before any tick


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TimedRows:
    """Starts, ends and arrivals of the tasks, and the rows of each resource in order of time.

    ``tasks_of[r]`` are the tasks on resource r by their starts, those of 0 ticks before others.
    ``is_there`` tells which tasks the schedule has at all; ``homes[t]`` the resources on which task
    t stands: where it is placed wrongly, those, and of a task that is missing its own.
    """

    problem: Problem
    start: Ints
    end: Ints
    ready: Ints
    binding: Ints
    is_there: Bools
    tasks_of: tuple[Ints, ...]
    homes: tuple[tuple[int, ...], ...]

    @property
    def computed(self) -> Ints:
        """The tasks of ranks that the schedule has."""
        return np.flatnonzero(self.is_there & (self.problem.rank_of_task != NONE))

    @property
    def first(self) -> int:
        """The first start of a computation; 0 where there is none."""
        return int(self.start[self.computed].min()) if len(self.computed) else 0

    @property
    def last_task(self) -> int:
        """The computation that ends last; of several the first in the problem."""
        return int(self.computed[np.argmax(self.end[self.computed])])


def timed_rows(problem: Problem, schedule: Schedule) -> TimedRows:
    """The rows of a schedule that are tasks of the problem, timed; a task's first row counts.

    Raises ``ValueError`` where a rank does two things at once.
    """
    task, resource, start_of_row = known_rows(problem, schedule)
    start = np.zeros(problem.num_tasks, dtype=np.int64)
    start[task[::-1]] = start_of_row[::-1]
    is_there = np.zeros(problem.num_tasks, dtype=bool)
    is_there[task] = True
    end = start + problem.duration
    order = np.lexsort((end[task], start[task], resource))
    bounds = np.searchsorted(resource[order], np.arange(len(problem.resources) + 1))
    tasks_of = tuple(task[order[a:b]] for a, b in pairwise(bounds.tolist()))
    for rank in range(problem.num_ranks):
        _require_one_at_a_time(problem, tasks_of[rank], start, end, rank)
    ready, binding = _arrivals(problem, end, is_there)
    return TimedRows(
        problem=problem,
        start=start,
        end=end,
        ready=ready,
        binding=binding,
        is_there=is_there,
        tasks_of=tasks_of,
        homes=_homes(problem, task, resource, is_there),
    )


def _require_one_at_a_time(problem: Problem, rows: Ints, start: Ints, end: Ints, rank: int) -> None:
    clash = np.flatnonzero(start[rows[1:]] < end[rows[:-1]])
    if len(clash):
        one, other = (int(rows[clash[0] + step]) for step in (0, 1))
        raise ValueError(
            f"idle time has causes where a rank does one thing at a time, got rank {rank} at "
            f"{problem.label(one)} and {problem.label(other)} from tick {start[other]}; "
            "check the schedule first"
        )


def _arrivals(problem: Problem, end: Ints, is_there: Bools) -> tuple[Ints, Ints]:
    """When the last input of each task arrives, and by which edge."""
    edges = problem.edges
    rows = np.flatnonzero(is_there[edges.before])
    arrival = end[edges.before[rows]] + edges.lag[rows]
    ready = np.full(problem.num_tasks, EVER)
    np.maximum.at(ready, edges.after[rows], arrival)
    binding = np.full(problem.num_tasks, NONE)
    binds = rows[arrival == ready[edges.after[rows]]][::-1]
    is_computed = problem.rank_of_task[edges.before[binds]] != NONE
    binds = binds[np.argsort(~is_computed, kind="stable")]  # messages last
    binding[edges.after[binds]] = binds  # of repeated indices the last is kept: the first edge
    return ready, binding


def _homes(
    problem: Problem, task: Ints, resource: Ints, is_there: Bools
) -> tuple[tuple[int, ...], ...]:
    """The resources of each task in the problem's order, then those that are not its own."""
    own, count = problem.occupancy, len(problem.resources)
    has_place = ~is_there[own.task] | np.isin(
        own.task * count + own.resource, task * count + resource
    )
    is_wrong = ~np.isin(task * count + resource, own.task * count + own.resource)
    homes: list[tuple[int, ...]] = [()] * problem.num_tasks
    for tasks, resources in (
        (own.task[has_place], own.resource[has_place]),
        (task[is_wrong], resource[is_wrong]),
    ):
        for one, place in zip(tasks.tolist(), resources.tolist(), strict=True):
            homes[one] += (place,)
    return tuple(homes)
