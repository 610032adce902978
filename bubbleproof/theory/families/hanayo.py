"""Hanayo: v chunks per rank in wave placement; a microbatch runs down the ranks and back up.

With two chunks (one wave) microbatch j visits ranks 0..p-1 and p-1..0, with 2w chunks it makes w
such waves; odd v end half a wave later. Let an action last one tick and p microbatches be a group.
Then microbatch j = ap + b (b < p) runs its forward of stage g in tick x + g and its backward in
tick x + 2pv-1 - g, where x = 2pva + 2b. No two of them meet on a rank: in one tick the stages of
two forwards differ by an even number below 2p, so wave placement puts them on different ranks, and
so for a forward and a backward of different b; equal b in the next group start 2pv ticks later,
when the earlier microbatch has left.

That closed form fits tF = tB and groups that are full. Elsewhere it leaves gaps, and a better order
is looked for (``few_microbatches``) which at tF = tB is never longer and never holds more: with two
chunks forwards of later stages come first, at any m, and with tF = 1, tB = 2 the makespan is
6m + 4(p-1), p-1 above the least (138 ticks in place of 173 at p = 4, m = 21; proved for p = 2, 3, 4
and all m from about 5p on). Large shapes keep the closed form.

Source: Liu, Cheng, Zhou and You, "Hanayo: Harnessing Wave-like Pipeline Parallelism for Enhanced
Large Model Training Efficiency" (SC 2023, arXiv:2308.15762) for waves and their placement; MEPipe
(EuroSys 2025) Table 3 for the makespan at tF = tB and the memory. The orders are ours, not a copy
of Hanayo's generator. Of Hanayo's own text only the abstract was at hand, and no code of its
authors, so neither was compared.
Legal range: any p, m, v. At tF = tB the makespan of the closed form is 2pva + 2b + 2pv ticks with
ap + b = m-1, which is MEPipe's (mv + p-1)(tF + tB) where p divides m and its (vp + m-1)(tF + tB)
where m <= p; other m cost 2(v-1)(p-b-1) ticks more in it. Peak: at most min(p, m)*v activations.
"""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.families.base import Family, program_of_ranks
from bubbleproof.theory.families.few_microbatches import improved_order
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline


class Hanayo(Family):
    """Groups of p microbatches, two ticks apart, along v chunks in wave placement."""

    name = "hanayo"
    title = "Hanayo"
    source = "Hanayo (SC 2023); MEPipe (EuroSys 2025) Table 3"
    options = frozenset({"v"})
    placement = "wave"
    default_chunks = 2

    def program(self, pipeline: Pipeline) -> Program:
        return improved_order(pipeline, closed_form_order, pipeline.num_ranks)


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
