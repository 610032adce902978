"""ZB-H2: 1F1B with the backward split and enough forwards ahead to leave no rank waiting.

Rank r warms up with 2(p-r)-1 forwards, which lasts until the first input gradient arrives where
tF = tI. Then each I is followed by the W of 2r microbatches earlier and by the next forward, and
the last 2r weight gradients close. At tF = tI = tW and m >= 2p-1 no rank waits between its first
forward and its last W: ``span_idle`` is 0. (The makespan still holds p-1 ticks of start-up: ranks
start and end one tick after each other, so the optimizer step must not wait for all ranks.)

Source: Qi et al., "Zero Bubble Pipeline Parallelism" (ICLR 2024) section 2.2, schedule ZB-H2. The
paper shows it for one size; the counts 2(p-r)-1 and 2r are what its memory limit leaves. They are
made for m >= 2p-1; with fewer microbatches slides (``families.slides``) close the gaps that they
leave: at equal ticks the makespan is then 3m + p-1 too, from m = p on.
Legal range: any p, m. Peak on rank r: min(2p-1, m) activations (held until W).
"""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.families.base import Family, program_of_ranks
from bubbleproof.theory.families.few_microbatches import slid_order
from bubbleproof.theory.families.zb_h1 import delayed_weights
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline


class ZeroBubbleH2(Family):
    """2(p-r)-1 forwards ahead on rank r, and W delayed by 2r microbatches."""

    name = "zb-h2"
    title = "ZB-H2"
    source = "Zero Bubble Pipeline Parallelism (ICLR 2024) section 2"
    is_split = True

    def program(self, pipeline: Pipeline) -> Program:
        counted = counted_order(pipeline)
        is_few = pipeline.num_microbatches < 2 * pipeline.num_ranks - 1
        return slid_order(pipeline, counted) if is_few else counted


def counted_order(pipeline: Pipeline) -> Program:
    """The order by its counts: 2(p-r)-1 forwards ahead, W delayed by 2r."""
    p, m = pipeline.num_ranks, pipeline.num_microbatches
    rows = []
    for rank in range(p):
        kind, microbatch = delayed_weights(m, warmup=2 * (p - rank) - 1, delay=2 * rank)
        rows.append((kind, np.full(3 * m, rank), microbatch))
    return program_of_ranks(rows)
