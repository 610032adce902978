"""Claims of microseconds on what a pipeline takes, before anything of it is built.

What they say, and why, is in ``verify.candidates.rank_claims``; here the rank is chosen that says
most.
"""

from __future__ import annotations

from bubbleproof.planners.case_proofs import NEVER
from bubbleproof.theory.pipelines.shapes.shaping import ShapedPipeline
from bubbleproof.verify.candidates.rank_claims import (
    NoRoom,
    RankClaim,
    RankMemory,
    RankWork,
    ShownByRanks,
    is_alike,
)


def quick_claim(found: ShapedPipeline) -> RankClaim | None:
    """That some rank has no room for a microbatch, or that no schedule is shorter than a bound.

    None where stages stand on two ranks.
    """
    pipeline = found.pipeline
    if pipeline.is_bidirectional:
        return None
    shown = ShownByRanks(pipeline)
    quick = RankWork(rank=_most(shown.work), bound=max(shown.work))
    if found.allowed is not None or not is_alike(pipeline):
        return quick
    for rank, room in enumerate(shown.room):
        if room is not None and room < 0:
            return NoRoom(rank=rank, bound=NEVER)
    held = RankMemory(rank=_most(shown.memory), bound=max(shown.memory))
    return quick if quick.bound >= held.bound else held


def _most(bounds: list[int]) -> int:
    return bounds.index(max(bounds))
