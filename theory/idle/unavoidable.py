"""Idle time that no schedule avoids: before a rank can start, and after it must have ended.

``warm_ups[r]`` is a bound, for every schedule of the problem, on the first start on rank r less the
first start of all: the least, over the tasks of r, of the longest chain of durations and lags from
the start of a computation to the task's start. ``drains[r]`` bounds the last end of all less the
last end on r, by chains from the task's end to the end of a computation. Both are 0 where a task
has no such chain but itself, and for a rank without tasks. Chains that no computation begins (a
reload before all else) do not count: the first start of all may come after them.
"""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.model.actions import NONE, Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.timing import in_order, successors


def warm_ups(problem: Problem) -> list[int]:
    """The idle ticks before its first task that every schedule has, rank by rank."""
    return _least(problem, _chains(problem, problem.edges.before, problem.edges.after))


def drains(problem: Problem) -> list[int]:
    """The idle ticks after its last task that every schedule has, rank by rank."""
    return _least(problem, _chains(problem, problem.edges.after, problem.edges.before))


def _chains(problem: Problem, before: Ints, after: Ints) -> list[int]:
    """The longest chain from the far side of a computation to the near side of each task.

    All 0 where the precedences go round in a circle, as no schedule keeps them.
    """
    done = in_order(problem.num_tasks, before, after)
    order, first = successors(problem.num_tasks, before)
    target, bounds = after[order].tolist(), first.tolist()
    reach = (problem.duration[before] + problem.edges.lag)[order].tolist()
    least = np.iinfo(np.int64).min // 4
    chain: list[int] = np.where(problem.rank_of_task != NONE, 0, least).tolist()
    for task in done or ():
        begun = chain[task]
        for edge in range(bounds[task], bounds[task + 1]):
            chain[target[edge]] = max(chain[target[edge]], begun + reach[edge])
    return chain


def _least(problem: Problem, chain: list[int]) -> list[int]:
    least: dict[int, int] = {}
    for task, resource in zip(
        problem.occupancy.task.tolist(), problem.occupancy.resource.tolist(), strict=True
    ):
        least[resource] = min(chain[task], least.get(resource, chain[task]))
    return [least.get(rank, 0) for rank in range(problem.num_ranks)]
