"""ZB-H1: 1F1B with the backward split, weight gradients delayed until rank r holds p activations.

Rank r warms up with min(p - r, m) forwards; then each I is followed by the W of r microbatches
earlier and by the next forward, and the last r weight gradients close. So every rank holds at most
p activations, 1F1B's highest peak, and at tF = tI = tW idles p-1 ticks instead of 3(p-1).

Source: Qi et al., "Zero Bubble Pipeline Parallelism" (ICLR 2024) section 2.1, schedule ZB-H1.
Legal range: any p, m. Peak on rank r: min(p, m) activations (held until W).
"""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.families.base import Family, program_of_ranks
from bubbleproof.theory.model.actions import Ints, Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline


class ZeroBubbleH1(Family):
    """1F1B with split backwards and W delayed by r microbatches on rank r."""

    name = "zb-h1"
    title = "ZB-H1"
    source = "Zero Bubble Pipeline Parallelism (ICLR 2024) section 2.2"
    is_split = True

    def program(self, pipeline: Pipeline) -> Program:
        p, m = pipeline.num_ranks, pipeline.num_microbatches
        rows = []
        for rank in range(p):
            kind, microbatch = delayed_weights(m, warmup=p - rank, delay=rank)
            rows.append((kind, np.full(3 * m, rank), microbatch))
        return program_of_ranks(rows)


def delayed_weights(m: int, *, warmup: int, delay: int) -> tuple[Ints, Ints]:
    """(kind, microbatch) of one rank: ``warmup`` F, then I(j), W(j-delay), F(j+warmup) in turn."""
    index = np.arange(m)
    # Sort keys: step j holds I, W, F in this order; warm-up forwards come before step 0 and the
    # weight gradients left over after step m-1.
    keys = np.concatenate([3 * (index - warmup) + 2, 3 * index, 3 * (index + delay) + 1])
    order = np.argsort(keys, kind="stable")
    kind = np.repeat([Kind.F, Kind.I, Kind.W], m)[order]
    return kind, np.tile(index, 3)[order]
