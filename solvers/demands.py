"""Demands: what a user wants of a schedule beyond the problem's own rules.

- *orders*: of two tasks, the first has ended when the second starts. Forbidding an order of two
  tasks that share a resource demands the other one.
- *starts*: tasks that keep their places in time, in ticks after the earliest of them. Moving all of
  them together changes nothing.

Orders, and that no kept task starts too early after another, are precedences like any other
(``demanding``); that none starts too late is ``latest``, precedences with negative lags, which only
an engine takes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from bubbleproof.solvers.starts import joined, starts_by_task
from bubbleproof.theory.model.actions import NONE
from bubbleproof.theory.model.problem import Edges, Problem
from bubbleproof.theory.model.schedule import Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """``orders``: (before, after) tasks; ``starts``: (task, ticks) on a clock of their own."""

    orders: tuple[tuple[int, int], ...] = ()
    starts: tuple[tuple[int, int], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.orders or self.starts)

    def union(self, other: Demands) -> Demands:
        """The demands of both."""
        return Demands(orders=self.orders + other.orders, starts=self.starts + other.starts)

    def demanding(self, problem: Problem) -> Problem:
        """The problem with the demands' precedences."""
        if not self:
            return problem
        extra = [(before, after, 0) for before, after in self.orders]
        for (task, at), (later, then) in pairwise(self._in_time(problem)):
            extra.append((task, later, then - at - int(problem.duration[task])))
        return replace(problem, edges=joined(problem.edges, _edges(extra)))

    def latest(self, problem: Problem) -> Edges:
        """Precedences that keep each start from being later than demanded."""
        return _edges(
            (later, task, at - then - int(problem.duration[later]))
            for (task, at), (later, then) in pairwise(self._in_time(problem))
        )

    def _in_time(self, problem: Problem) -> list[tuple[int, int]]:
        """The starts by time; among equal ones those of no duration first."""
        return sorted(self.starts, key=lambda row: (row[1], int(problem.duration[row[0]]), row[0]))


def forbidden(problem: Problem, first: int, second: int) -> tuple[int, int]:
    """The order to demand where ``first`` must not come before ``second``.

    Parameters
    ----------
    first, second
        Indices of tasks that share a resource.

    Raises
    ------
    ValueError
        Where the two tasks share no resource, so that neither may come first.
    """
    occupancy = problem.occupancy
    homes = [set(occupancy.resource[occupancy.task == task].tolist()) for task in (first, second)]
    if not homes[0] & homes[1]:
        raise ValueError(
            f"an order can be forbidden for two tasks of one resource, but {problem.label(first)} "
            f"and {problem.label(second)} share none"
        )
    return second, first


def orders_of(problem: Problem, schedule: Schedule, resources: Iterable[int]) -> Demands:
    """The order of every task on the named resources, as the schedule has it.

    Parameters
    ----------
    resources
        Indices of resources.
    """
    task = problem.locate(schedule.program.actions)
    orders = []
    for resource in resources:
        rows = task[(schedule.program.resource == resource) & (task != NONE)].tolist()
        orders += list(pairwise(rows))
    return Demands(orders=tuple(orders))


def starts_until(problem: Problem, schedule: Schedule, until: int) -> Demands:
    """The starts of all tasks that begin before ``until`` (ticks after the schedule's first).

    Parameters
    ----------
    until
        Ticks after the schedule's first start.
    """
    task = problem.locate(schedule.program.actions)
    origin = int(schedule.start.min(initial=0))
    kept = {
        int(t): int(start) - origin
        for t, start in zip(task.tolist(), schedule.start.tolist(), strict=True)
        if t != NONE and start - origin < until
    }
    return Demands(starts=tuple(sorted(kept.items())))


def broken_by(problem: Problem, edges: Edges, schedule: Schedule) -> bool:
    """Whether the schedule breaks one of the precedences. Precondition: it is complete."""
    start = starts_by_task(problem, schedule)
    ready = start[edges.before] + problem.duration[edges.before] + edges.lag
    return bool((start[edges.after] < ready).any())


def _edges(rows: Iterable[tuple[int, int, int]]) -> Edges:
    table = np.array(list(rows), dtype=np.int64).reshape(-1, 3)
    return Edges(before=table[:, 0], after=table[:, 1], lag=table[:, 2])
