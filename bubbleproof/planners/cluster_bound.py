"""Claims of microseconds on what a pipeline takes, before anything of it is built.

What they say, and why, is in ``verify.candidates.rank_claims``; here the rank is chosen that says
most.
"""

from __future__ import annotations

from bubbleproof.planners.case_proofs import NEVER
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.shaping import ShapedPipeline
from bubbleproof.verify.candidates.rank_claims import (
    NoRoom,
    RankClaim,
    RankMemory,
    RankWork,
    memory_bounds,
    rank_bounds,
    rank_room,
)


def quick_claim(found: ShapedPipeline) -> RankClaim | None:
    """That some rank has no room for a microbatch, or that no schedule is shorter than a bound.

    None where stages stand on two ranks.
    """
    pipeline = found.pipeline
    if pipeline.is_bidirectional:
        return None
    quick = quick_bound(pipeline)
    if found.allowed is not None or pipeline.choices.added:
        return quick
    for rank, room in enumerate(rank_room(pipeline)):
        if room is not None and room < 0:
            return NoRoom(rank=rank, bound=NEVER)
    bounds = memory_bounds(pipeline)
    most = max(bounds)
    return quick if quick.bound >= most else RankMemory(rank=bounds.index(most), bound=most)


def quick_bound(pipeline: Pipeline) -> RankWork:
    """The greatest bound by what a rank computes. Precondition: no stage stands on two ranks."""
    bounds = rank_bounds(pipeline)
    bound = max(bounds)
    return RankWork(rank=bounds.index(bound), bound=bound)
