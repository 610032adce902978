"""ZB-H1 and ZB-H2: 1F1B with the backward split and weight gradients delayed.

Rank r warms up with a(p - r) - a + 1 forwards, a = 1 for ZB-H1 and a = 2 for ZB-H2; then each I is
followed by the W of a r microbatches earlier and by the next forward, and the last a r weight
gradients close.

ZB-H1: every rank holds at most p activations, 1F1B's highest peak, and at tF = tI = tW idles p-1
ticks instead of 3(p-1).

ZB-H2: the 2(p-r)-1 forwards last until the first input gradient arrives where tF = tI, which leaves
no rank waiting. At tF = tI = tW and m >= 2p-1 no rank waits between its first forward and its last
W: ``span_idle`` is 0. (The makespan still holds p-1 ticks of start-up: ranks start and end one tick
after each other, so the optimizer step must not wait for all ranks.) The paper shows it for one
size; the counts 2(p-r)-1 and 2r are what its memory limit leaves. They are made for m >= 2p-1; with
fewer microbatches they are cut short and leave gaps, which "zb-h2, improved" closes: a search
begins from it too.

Source: Qi et al., "Zero Bubble Pipeline Parallelism" (ICLR 2024) sections 2.1 and 2.2.
Legal range: any p, m. Peak on rank r, held until W: min(p, m) and min(2p-1, m) activations.
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
    least = frozenset({"bubble", "memory"})
    is_split = True

    def program(self, pipeline: Pipeline) -> Program:
        return counted_order(pipeline, ahead=1)


class ZeroBubbleH2(Family):
    """2(p-r)-1 forwards ahead on rank r, and W delayed by 2r microbatches."""

    name = "zb-h2"
    title = "ZB-H2"
    source = "Zero Bubble Pipeline Parallelism (ICLR 2024) section 2"
    least = frozenset({"bubble"})
    is_split = True

    def program(self, pipeline: Pipeline) -> Program:
        return counted_order(pipeline, ahead=2)

    def ours(self, pipeline: Pipeline) -> str | None:
        least = 2 * pipeline.num_ranks - 1
        if pipeline.num_microbatches >= least:
            return None
        return (
            f"The source has 2p-1={least} microbatches or more; bubbleproof cuts its counts short."
        )


def counted_order(pipeline: Pipeline, *, ahead: int) -> Program:
    """The order by its counts, with ``ahead`` forwards and delayed W per hop.

    Parameters
    ----------
    ahead
        Forwards per hop, 1 for ZB-H1 and 2 for ZB-H2.
    """
    p, m = pipeline.num_ranks, pipeline.num_microbatches
    rows = []
    for rank in range(p):
        warmup = ahead * (p - rank) - ahead + 1
        kind, microbatch = delayed_weights(m, warmup=warmup, delay=ahead * rank)
        rows.append((kind, np.full(3 * m, rank), microbatch))
    return program_of_ranks(rows)


def delayed_weights(m: int, *, warmup: int, delay: int) -> tuple[Ints, Ints]:
    """(kind, microbatch) of one rank: ``warmup`` F, then I(j), W(j-delay), F(j+warmup) in turn.

    Parameters
    ----------
    m
        Microbatches.
    warmup
        Forwards before the first I.
    delay
        How many microbatches a W comes after its I.
    """
    index = np.arange(m)
    # Sort keys: step j holds I, W, F in this order; warm-up forwards come before step 0 and the
    # weight gradients left over after step m-1.
    keys = np.concatenate([3 * (index - warmup) + 2, 3 * index, 3 * (index + delay) + 1])
    order = np.argsort(keys, kind="stable")
    kind = np.repeat([Kind.F, Kind.I, Kind.W], m)[order]
    return kind, np.tile(index, 3)[order]
