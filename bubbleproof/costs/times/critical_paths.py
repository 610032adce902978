"""The longest path through 1F1B, plain or interleaved, as counts: a fit's makespan.

A makespan is the greatest sum of durations along a path in the graph of the schedule's waiting
edges. While a fit tries constants that differ by little the path stays, so an iteration is the sum
of its counts times the durations; the path is found anew after each step. The graph is that of the
family's program and of the pipeline's problem (``theory``), each (stages, microbatches) once. A
message is a wait between ranks, not a task on a link: the same makespan while none of 1F1B's
messages waits for another, which a test looks at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bubbleproof.theory.families import family
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.acyclic import acyclic_order
from bubbleproof.theory.pipelines.timing import waiting_edges


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Path:
    """How often a longest path has each thing: forwards and backwards of each stage, messages, and
    the rank at whose step it ends."""

    forwards: NDArray[np.float64]
    backwards: NDArray[np.float64]
    messages: int
    ends_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskGraph:
    """1F1B of so many stages on ranks, and microbatches: per task in an order in which none waits
    for a later one, its stage, whether it is a backward, and the tasks that it waits for, by a
    message or without."""

    stages: int
    ranks: int
    stage: list[int]
    is_backward: list[bool]
    waits: list[list[tuple[int, bool]]]


@lru_cache(maxsize=512)
def graph(ranks: int, microbatches: int, chunks: int = 1) -> TaskGraph:
    """The graph of 1F1B's waiting edges; of several chunks a rank, of interleaved 1F1B's.

    Parameters
    ----------
    ranks
        p.
    microbatches
        m.
    chunks
        v, the stages of a rank.
    """
    pipeline = Pipeline(num_ranks=ranks, num_microbatches=microbatches, num_chunks=chunks)
    problem = pipeline.problem()
    program = family("1f1b" if chunks == 1 else "interleaved").program(pipeline)
    before, after, _ = waiting_edges(problem, program, problem.locate(program.actions))
    order = acyclic_order(problem.num_tasks, before, after)
    place = np.argsort(order)
    stage, kind = problem.actions.stage, problem.actions.kind
    rank = stage % ranks
    waits: list[list[tuple[int, bool]]] = [[] for _ in order]
    for one, other in zip(before.tolist(), after.tolist(), strict=True):
        waits[place[other]].append((int(place[one]), bool(rank[one] != rank[other])))
    return TaskGraph(
        stages=ranks * chunks,
        ranks=ranks,
        stage=stage[order].tolist(),
        is_backward=(kind[order] == Kind.B).tolist(),
        waits=waits,
    )


def longest_path(
    of: TaskGraph,
    forward: Sequence[float],
    backward: Sequence[float],
    message: float,
    steps: Sequence[float],
) -> tuple[float, Path]:
    """The end of the last step, and a path to it; durations by stage, ``message`` from one to the
    next, ``steps`` by rank.

    Parameters
    ----------
    forward, backward
        The duration of one microbatch on each stage.
    message
        How long a message takes from one rank to another, in the same unit.
    steps
        How long each rank's step takes, in the same unit.

    Returns
    -------
    tuple[float, Path]
        The end in the unit of the durations, and the path.
    """
    end: list[float] = []
    came: list[tuple[int, bool]] = []
    both = (forward, backward)
    for task, waits in enumerate(of.waits):
        begun, best = 0.0, (-1, False)
        for edge in waits:
            ready = end[edge[0]] + (message if edge[1] else 0.0)
            if ready > begun:
                begun, best = ready, edge
        end.append(begun + both[of.is_backward[task]][of.stage[task]])
        came.append(best)
    length, last = max(
        (end[task] + steps[of.stage[task] % of.ranks], task) for task in range(len(end))
    )
    return length, _path(of, came, last)


def _path(of: TaskGraph, came: Sequence[tuple[int, bool]], task: int) -> Path:
    counts = np.zeros((2, of.stages), dtype=np.int64)
    messages, ends_at = 0, of.stage[task] % of.ranks
    while task >= 0:
        counts[int(of.is_backward[task]), of.stage[task]] += 1
        messages += came[task][1]
        task = came[task][0]
    return Path(
        forwards=counts[0].astype(np.float64),
        backwards=counts[1].astype(np.float64),
        messages=messages,
        ends_at=ends_at,
    )
