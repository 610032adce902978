"""One microbatch of a group by itself: heads, tails and paths between the tasks that are kept.

Paths are the longest over the microbatch's own precedences (ticks). A head is from the start of the
first computation to a task's start, a tail from its end to the end of the last computation; a task
that no paths put between computations is not kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.one_machine import NO_PATH, longest

PartEdge = tuple[int, int, int]  # before, after, lag


@dataclass(frozen=True, slots=True, kw_only=True)
class LoneMicrobatch:
    """The tasks ``kept`` of a microbatch, of which its group has ``count``.

    ``paths``: (task, later task, ticks from start to start), those that others do not imply;
    ``longest``: the ticks of the longest path through one of them.
    """

    count: int
    kept: tuple[int, ...]
    heads: dict[int, int]
    tails: dict[int, int]
    paths: tuple[PartEdge, ...]
    longest: int


def lone_microbatch(
    problem: Problem, tasks: Ints, count: int, wanted: set[int], place: Ints
) -> LoneMicrobatch:
    """The microbatch with these ``tasks``; ``place`` orders all tasks by their precedences.

    Parameters
    ----------
    tasks
        Numbers of tasks of the problem.
    count
        How many microbatches are like it, 1 or more.
    wanted
        The tasks to keep, of those on a path between computations.
    place
        Of each task of the problem, rising along precedences.
    """
    edges, ticks = problem.edges, problem.duration.tolist()
    inside = np.isin(edges.before, tasks) & np.isin(edges.after, tasks)
    columns = (column[inside].tolist() for column in (edges.before, edges.after, edges.lag))
    rows = list(zip(*columns, strict=True))
    rows.sort(key=lambda row: int(place[row[0]]))
    back = [(after, before, lag) for before, after, lag in rows]
    back.sort(key=lambda row: -int(place[row[0]]))
    least = [0 if rank >= 0 else NO_PATH for rank in problem.rank_of_task.tolist()]
    heads, tails = longest(rows, ticks, least), longest(back, ticks, least)
    ordered = tasks[np.argsort(place[tasks])].tolist()
    kept = [t for t in ordered if t in wanted and heads[t] >= 0 and tails[t] >= 0]
    return LoneMicrobatch(
        count=count,
        kept=tuple(kept),
        heads={task: heads[task] for task in kept},
        tails={task: tails[task] for task in kept},
        paths=tuple(_paths(rows, ticks, kept)),
        longest=max((heads[t] + ticks[t] + tails[t] for t in kept), default=0),
    )


def _paths(rows: Sequence[PartEdge], ticks: list[int], kept: list[int]) -> list[PartEdge]:
    """The longest paths between kept tasks that no third one is on."""
    far: dict[int, list[int]] = {}
    for origin in kept:
        nothing = [NO_PATH] * len(ticks)
        nothing[origin] = 0
        far[origin] = longest(rows, ticks, nothing)
    return [
        (task, later, far[task][later])
        for place, task in enumerate(kept)
        for later in kept[place + 1 :]
        if far[task][later] > NO_PATH >> 1
        and not any(
            far[task][other] + far[other][later] >= far[task][later]
            for other in kept
            if other not in (task, later)
        )
    ]
