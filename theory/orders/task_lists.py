"""A problem as Python lists, which an event loop reads fastest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bubbleproof.theory.model.problem import Edges, Problem
from bubbleproof.theory.model.schedule import Program

LoadChanges = list[list[tuple[int, int]]]  # by task: stores, and by how many units they change


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskLists:
    """What list scheduling knows of the tasks, by their numbers.

    ``waits`` counts the precedences into a task; ``homes`` are the resources that it occupies, and
    ``home`` is the first of them. The tasks that wait for task t, and after what lags, are rows
    ``first[t]`` to ``first[t + 1]`` of ``after`` and ``lag``: a list for each task would be walked
    through by Python's collector again and again.
    """

    ticks: list[int]
    homes: list[Sequence[int]]
    home: list[int]
    first: list[int]
    after: list[int]
    lag: list[int]
    waits: list[int]
    num_resources: int

    def followers(self, task: int) -> Iterator[tuple[int, int]]:
        """The tasks that wait for one, each with its lag.

        Parameters
        ----------
        task
            The task's index.

        Returns
        -------
        Iterator[tuple[int, int]]
            Indices of tasks with ticks.
        """
        rows = slice(self.first[task], self.first[task + 1])
        return zip(self.after[rows], self.lag[rows], strict=True)


def task_lists(problem: Problem, edges: Edges | None = None) -> TaskLists:
    """The tasks of a problem, with its precedences or others between them."""
    edges, count = edges or problem.edges, problem.num_tasks
    order = np.argsort(edges.before, kind="stable")
    ends = np.cumsum(np.bincount(edges.before, minlength=count))
    homes = _homes(problem)
    return TaskLists(
        ticks=problem.duration.tolist(),
        homes=homes,
        home=[used[0] for used in homes],
        first=[0, *ends.tolist()],
        after=edges.after[order].tolist(),
        lag=edges.lag[order].tolist(),
        waits=np.bincount(edges.after, minlength=count).tolist(),
        num_resources=len(problem.resources),
    )


def _homes(problem: Problem) -> list[Sequence[int]]:
    """The resources of each task; tasks of one resource share theirs."""
    alone = [(resource,) for resource in range(len(problem.resources))]
    found: list[Sequence[int]] = [()] * problem.num_tasks
    occupancy = problem.occupancy
    for task, resource in zip(occupancy.task.tolist(), occupancy.resource.tolist(), strict=True):
        found[task] = (*found[task], resource) if found[task] else alone[resource]
    return found


def load_changes(problem: Problem) -> tuple[LoadChanges, LoadChanges]:
    """What each task does to stores when it starts, and when it ends."""
    at_start: LoadChanges = [[] for _ in range(problem.num_tasks)]
    at_end: LoadChanges = [[] for _ in range(problem.num_tasks)]
    events = problem.events
    columns = (events.task, events.at_end, events.store, events.delta)
    for task, is_end, store, delta in zip(*(c.tolist() for c in columns), strict=True):
        (at_end if is_end else at_start)[task].append((store, delta))
    return at_start, at_end


def program_of_lists(problem: Problem, orders: list[list[int]]) -> Program:
    """The program in which each resource does its tasks in the given order.

    Parameters
    ----------
    orders
        For each resource indices of its tasks.
    """
    task = np.array([task for order in orders for task in order], dtype=np.int64)
    return Program(
        actions=problem.actions.take(task),
        resource=np.repeat(np.arange(len(orders)), [len(order) for order in orders]),
    )
