"""PipeMesh's order of forwards and backwards: the elastic buffer queue (Algorithm 1).

Symbols: P ranks (i counts from 1 in the paper, r = i-1 here), M chunks per rank, m microbatches,
e = (e_1, ..., e_R) and d = (d_1, ..., d_S) the enqueue and dequeue sequences, both of sum m.

Every rank runs the same list of forwards (operation by operation, chunk 0 first, the operation's
microbatches in order) and of backwards (chunk M-1 first). Rank r begins with n_r forwards, then
runs one forward and one backward in turn, then the backwards that are left. Algorithm 1 sets
n_r = (M-1) e_1 + 2(P-r-1) and works as printed only where (see ``literal_orders``)

- the backwards never ask for a microbatch that its rank has not enqueued yet: with e = (1, 1) and
  d = (2), or with e = d = (1, 2), one rank with M = 2 waits for itself;
- n_r <= M m: with P = 3, M = 1, m = 3 rank 0 would begin with 4 forwards of 3.

What ships: n_r = min((M-1) q + 2(P-r-1), M m), where q is the buffer that the sequences need, the
most microbatches that are enqueued when the dequeue operation of some microbatch t begins:

    q = max over t of (e_1 + ... + e_i) - (d_1 + ... + d_(j-1)),   t in enqueue i and dequeue j.

With T microbatches dequeued before t's operation and E enqueued up to its own, the backward of t on
the last chunk is number M T + (t - T) and its forward number M E - (E - t), (M-1)(E - T) apart. So
(M-1) q is the least lead of the forward list. q = e_1 wherever Algorithm 1 works. Elements below P,
which the paper excludes, may still deadlock with it; there the lead grows one by one until the
order is free of deadlock, which it is at the latest when all forwards come first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bubbleproof.theory.families.base import passes, program_of_ranks
from bubbleproof.theory.model.actions import Ints, Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import find_cycle, waiting_edges

Sequences = tuple[tuple[int, ...], tuple[int, ...]]


def buffer_size(enqueue: Sequence[int], dequeue: Sequence[int]) -> int:
    """q: the most microbatches in the queue when a dequeue operation begins that needs them.

    Parameters
    ----------
    enqueue, dequeue
        Microbatches of each operation, which add up to as many.
    """
    enqueued = np.repeat(np.cumsum(enqueue), enqueue)
    dequeued = np.repeat(np.cumsum(dequeue) - dequeue, dequeue)
    return int((enqueued - dequeued).max())


def elastic_program(pipeline: Pipeline, sequences: Sequences) -> Program:
    """The order with the least lead that does not deadlock; see the module's text."""
    lead = (pipeline.num_chunks - 1) * buffer_size(*sequences)
    program = _program(pipeline, sequences, lead)
    if min(*sequences[0], *sequences[1]) >= pipeline.num_ranks:
        return program
    problem = Pipeline.problem(pipeline)
    while True:
        before, after, _ = waiting_edges(problem, program, problem.locate(program.actions))
        if not find_cycle(problem.num_tasks, before, after):
            return program
        lead += 1
        program = _program(pipeline, sequences, lead)


def is_as_printed(pipeline: Pipeline, sequences: Sequences) -> bool:
    """Whether Algorithm 1 runs the shape as printed, in the order that ships."""
    p, v, m = pipeline.num_ranks, pipeline.num_chunks, pipeline.num_microbatches
    lead = (v - 1) * sequences[0][0]
    printed, shipped = _program(pipeline, sequences, lead), elastic_program(pipeline, sequences)
    is_same = bool((printed.actions.microbatch == shipped.actions.microbatch).all())
    is_same &= bool((printed.actions.kind == shipped.actions.kind).all())
    return is_same and lead + 2 * (p - 1) <= v * m


def _program(pipeline: Pipeline, sequences: Sequences, lead: int) -> Program:
    p, chunks = pipeline.num_ranks, range(pipeline.num_chunks)
    forward, backward = passes(sequences[0], chunks), passes(sequences[1], chunks[::-1])
    rows = []
    for rank in range(p):
        kind, position = _warmup_then_pairs(lead + 2 * (p - rank - 1), len(forward[0]))
        is_forward = kind == Kind.F
        chunk, microbatch = (
            np.where(is_forward, forward[i][position], backward[i][position]) for i in range(2)
        )
        rows.append((kind, chunk * p + rank, microbatch))
    return program_of_ranks(rows)


def _warmup_then_pairs(warmup: int, count: int) -> tuple[Ints, Ints]:
    """``warmup`` F, then F and B in turn, then B: (kind, position) columns of length 2 count."""
    index = np.arange(count)
    key = np.concatenate([2 * (index - min(warmup, count)), 2 * index + 1])
    order = np.argsort(key, kind="stable")
    kind = np.repeat([int(Kind.F), int(Kind.B)], count)[order]
    return kind, np.tile(index, 2)[order]


def literal_orders(
    p: int, num_chunks: int, enqueue: Sequence[int], dequeue: Sequence[int]
) -> list[list[str]]:
    """Algorithm 1 as printed, lines 2 to 18, in text form; chunks count from 1 in it.

    Parameters
    ----------
    p
        Ranks.
    num_chunks
        Chunks of a rank.
    enqueue, dequeue
        Microbatches of each operation, which add up to as many.

    Raises
    ------
    IndexError
        Where it takes a pass from an empty list.
    """
    forward = list(zip(*(c.tolist() for c in passes(enqueue, range(num_chunks))), strict=True))
    backward = list(
        zip(*(c.tolist() for c in passes(dequeue, range(num_chunks)[::-1])), strict=True)
    )
    orders = []
    for rank in range(p):
        ahead = (num_chunks - 1) * enqueue[0] + 2 * (p - (rank + 1))
        todo = {"F": list(forward), "B": list(backward)}
        kinds = "F" * ahead + "FB" * (num_chunks * sum(enqueue) - ahead) + "B" * ahead
        order = []
        for kind in kinds:
            chunk, microbatch = todo[kind].pop(0)
            order.append(f"{chunk * p + rank}{kind}{microbatch}")
        orders.append(order)
    return orders
