"""A problem as Python lists, which an event loop reads fastest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bubbleproof.theory.model.problem import Edges, Problem
from bubbleproof.theory.model.schedule import Program

Followers = list[list[tuple[int, int]]]  # by task: the tasks that wait for it, and their lags
LoadChanges = list[list[tuple[int, int]]]  # by task: stores, and by how many units they change


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskLists:
    """What list scheduling knows of the tasks, by their numbers.

    ``waits`` counts the precedences into a task; ``homes`` are the resources that it occupies, and
    ``home`` is the first of them.
    """

    ticks: list[int]
    homes: list[list[int]]
    home: list[int]
    after: Followers
    waits: list[int]
    num_resources: int


def task_lists(problem: Problem, edges: Edges | None = None) -> TaskLists:
    """The tasks of a problem, with its precedences or others between them."""
    edges, count, occupancy = edges or problem.edges, problem.num_tasks, problem.occupancy
    homes: list[list[int]] = [[] for _ in range(count)]
    for task, resource in zip(occupancy.task.tolist(), occupancy.resource.tolist(), strict=True):
        homes[task].append(resource)
    after: Followers = [[] for _ in range(count)]
    columns = edges.before.tolist(), edges.after.tolist(), edges.lag.tolist()
    for before, later, lag in zip(*columns, strict=True):
        after[before].append((later, lag))
    return TaskLists(
        ticks=problem.duration.tolist(),
        homes=homes,
        home=[used[0] for used in homes],
        after=after,
        waits=np.bincount(edges.after, minlength=count).tolist(),
        num_resources=len(problem.resources),
    )


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
    """The program in which each resource does its tasks in the given order."""
    task = np.array([task for order in orders for task in order], dtype=np.int64)
    return Program(
        actions=problem.actions.take(task),
        resource=np.repeat(np.arange(len(orders)), [len(order) for order in orders]),
    )
