"""A bound of microseconds on what a pipeline takes, before anything of it is built.

A rank cannot begin before the first microbatch has come through the stages before its first one,
computes all its stages for each microbatch, and where backwards are whole its last action is one of
a stage from which the gradient still goes back to stage 0. A split backward may end with a W, after
which nothing follows. Memory is left out. So no schedule is shorter than the greatest, over ranks,
of head + work + tail: Jackson's bound with the least heads and tails of a rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from bubbleproof.theory.pipelines.pipeline import Pipeline


def quick_bound(pipeline: Pipeline) -> int:
    """Ticks that no schedule of the pipeline undercuts; 0 where a stage stands on two ranks."""
    if pipeline.is_bidirectional:
        return 0
    ticks, ranks = pipeline.ticks, pipeline.stage_ranks
    forward = ticks.forward.sum(axis=1).tolist()
    whole = ticks.backward.sum(axis=1).tolist()
    is_whole = pipeline.split_backward is False
    halves = (ticks.input_backward + ticks.weight_backward).sum(axis=1).tolist()
    backward = whole if is_whole else list(map(min, whole, halves))
    latency = [0 if a == b else pipeline.latency for a, b in pairwise(ranks)]
    heads = _sums(forward, latency)
    tails = _sums(backward, latency) if is_whole else [0] * len(ranks)
    best = 0
    for rank in range(pipeline.num_ranks):
        own = [stage for stage, at in enumerate(ranks) if at == rank]
        work = pipeline.num_microbatches * sum(forward[g] + backward[g] for g in own)
        best = max(best, work + min(heads[g] for g in own) + min(tails[g] for g in own))
    return best


def _sums(ticks: Sequence[int], latency: Sequence[int]) -> list[int]:
    """What the stages before each take together, with the messages between."""
    steps = [a + b for a, b in zip(ticks, latency, strict=False)]
    return [0, *accumulate(steps)]
