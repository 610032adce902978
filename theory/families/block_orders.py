"""1F1B whose ranks hold blocks of consecutive stages, some of them recomputed just in time.

A *block* is what one rank holds: a stage of 1F1B cut into parts (layers, or groups of layers), each
a stage of the pipeline. A microbatch passes a block forwards from its first stage to its last and
backwards from its last to its first; blocks take turns as in 1F1B. A recomputed stage's R comes
right before its backward, after the backward of the stage behind it: recomputation "is triggered
just-in-time when activations of specific group are required" (T-Pipe section 4.2), so that one
recomputed activation lies in memory at a time, and the recomputation lengthens the backward: it
waits for the gradient too. Where the last stage of a block is recomputed, a wait says so
(``choices.waits``): its R would otherwise run while the gradient is on its way.

With n microbatches in flight, K the activations of a block that stay and b(x) those of them before
a recomputed stage x, a rank holds at most

    max(n K, (n-1) K + b(x) + 1 for each recomputed x)

of its stages' activations: the other microbatches' K and, while F or R of x runs, what stays before
x and x itself. With the first k of v stages recomputed that is n (v-k), and 1 where k = v.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection

from bubbleproof.theory.families.base import one_forward_one_backward
from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.transfers import ActionPair


def even_blocks(num_ranks: int, num_chunks: int) -> tuple[int, ...]:
    """The rank of each stage where every block has as many.

    Parameters
    ----------
    num_ranks, num_chunks
        p and v; a rank has v successive stages.
    """
    return tuple(rank for rank in range(num_ranks) for _ in range(num_chunks))


def blocks_of(pipeline: Pipeline) -> list[range]:
    """The stages of each rank. Precondition: ``pipeline.stage_ranks`` ascends."""
    ranks = pipeline.stage_ranks
    ends = [ranks.index(rank) for rank in range(pipeline.num_ranks)] + [len(ranks)]
    return [range(first, end) for first, end in itertools.pairwise(ends)]


def recomputed_just_in_time(pipeline: Pipeline, stages: Collection[int]) -> Pipeline:
    """The pipeline with these stages recomputed, each when its gradient has come.

    Precondition: its stages lie in blocks.

    Parameters
    ----------
    stages
        Numbers of stages.
    """
    chosen = tuple(sorted(stages))
    ends = [block[-1] for block in blocks_of(pipeline)[:-1]]
    waits: list[ActionPair] = [
        (
            Action(stage=end + 1, kind=Kind.B, microbatch=microbatch),
            Action(stage=end, kind=Kind.R, microbatch=microbatch),
        )
        for end in ends
        if end in stages
        for microbatch in range(pipeline.num_microbatches)
    ]
    choice = Recompute(stages=chosen) if chosen else None
    return pipeline.with_changes(recompute=choice, waits=tuple(waits))


def block_program(pipeline: Pipeline) -> Program:
    """1F1B over the blocks, with the recomputations that the pipeline chose."""
    p, m = pipeline.num_ranks, pipeline.num_microbatches
    choice = pipeline.choices.recompute
    again = set() if choice is None else set(choice.stages)
    orders = []
    for rank, block in enumerate(blocks_of(pipeline)):
        order: list[Action] = []
        kinds, microbatches = one_forward_one_backward(p - rank, m)
        for kind, microbatch in zip(kinds.tolist(), microbatches.tolist(), strict=True):
            for stage in block if kind == Kind.F else reversed(block):
                if kind == Kind.B and stage in again:
                    order.append(Action(stage=stage, kind=Kind.R, microbatch=microbatch))
                order.append(Action(stage=stage, kind=Kind(kind), microbatch=microbatch))
        orders.append(order)
    return Program.from_orders(orders)
