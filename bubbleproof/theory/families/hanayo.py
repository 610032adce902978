"""Hanayo: v chunks per rank in wave placement; a microbatch runs down the ranks and back up.

With two chunks (one wave) microbatch j visits ranks 0..p-1 and p-1..0, with 2w chunks it makes w
such waves; odd v end half a wave later. Let an action last one tick and p microbatches be a group.
Then microbatch j = ap + b (b < p) runs its forward of stage g in tick x + g and its backward in
tick x + 2pv-1 - g, where x = 2pva + 2b. No two of them meet on a rank: in one tick the stages of
two forwards differ by an even number below 2p, so wave placement puts them on different ranks, and
so for a forward and a backward of different b; equal b in the next group start 2pv ticks later,
when the earlier microbatch has left. The family runs each rank's actions in this order whatever
they last.

Source: Liu, Cheng, Zhou and You, "Hanayo: Harnessing Wave-like Pipeline Parallelism for Enhanced
Large Model Training Efficiency" (SC 2023, arXiv:2308.15762) for waves and their placement; MEPipe
(EuroSys 2025) Table 3 for the closed forms. The order is ours, not a copy of Hanayo's generator: it
is the one in which microbatches follow each other as closely as wave placement allows. Of Hanayo's
own text only the abstract was at hand, and no code of its authors, so neither was compared.
Legal range: any p, m, v. At tF = tB the makespan is 2pva + 2b + 2pv ticks with ap + b = m-1, which
is MEPipe's (mv + p-1)(tF + tB) where p divides m and its (vp + m-1)(tF + tB) where m <= p; other m
cost 2(v-1)(p-b-1) ticks more in this order. Where that weighs most, in a short second group
(p < m < 2p), ``few_microbatches`` finds a shorter one: 62 ticks in place of 81 at tF = 1, tB = 2,
p = 6, m = 7, v = 2. Peak: min(p, m)*v activations on the worst rank.
"""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.actions import Kind
from bubbleproof.theory.families.family import Family, program_of_ranks
from bubbleproof.theory.families.few_microbatches import shortest_order
from bubbleproof.theory.pipeline import Pipeline
from bubbleproof.theory.schedule import Program


class Hanayo(Family):
    """Groups of p microbatches, two ticks apart, along v chunks in wave placement."""

    name = "hanayo"
    title = "Hanayo"
    source = "Hanayo (SC 2023); MEPipe (EuroSys 2025) Table 3"
    options = frozenset({"v"})
    placement = "wave"
    default_chunks = 2

    def program(self, pipeline: Pipeline) -> Program:
        p, m = pipeline.num_ranks, pipeline.num_microbatches
        closed = closed_form_order(pipeline)
        return shortest_order(pipeline, closed) if p < m < 2 * p else closed


def closed_form_order(pipeline: Pipeline) -> Program:
    """Each rank's actions by their starts in the closed form."""
    p, m, v = pipeline.num_ranks, pipeline.num_microbatches, pipeline.num_chunks
    rank_of_stage = np.array(pipeline.stage_ranks)
    first = 2 * p * v * (np.arange(m) // p) + 2 * (np.arange(m) % p)
    rows = []
    for rank in range(p):
        stage = np.tile(np.flatnonzero(rank_of_stage == rank), m)
        microbatch = np.repeat(np.arange(m), v)
        forth = first[microbatch] + stage
        back = first[microbatch] + 2 * p * v - 1 - stage
        order = np.argsort(np.concatenate([forth, back]))
        kind = np.repeat([Kind.F, Kind.B], m * v)
        rows.append((kind[order], np.tile(stage, 2)[order], np.tile(microbatch, 2)[order]))
    return program_of_ranks(rows)
