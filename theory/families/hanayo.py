"""Hanayo: v chunks per rank in wave placement; a microbatch runs down the ranks and back up.

With two chunks (one wave) microbatch j visits ranks 0..p-1 and p-1..0, with 2w chunks it makes w
such waves; odd v end half a wave later. At ticks of one action each microbatch is placed by the
slots of its rounds (``wave_rounds``): p microbatches at a time where p divides m, and where it does
not the last ones share the slots so that none is empty.

That closed form fits tF = tB; at other durations it leaves gaps (``papers.mepipe.mepipe_hanayo``
says how many ticks). A search begins from a shorter order too, "hanayo, improved".

Source: Liu, Cheng, Zhou and You, "Hanayo: Harnessing Wave-like Pipeline Parallelism for Enhanced
Large Model Training Efficiency" (SC 2023, arXiv:2308.15762) for waves and their placement; MEPipe
(EuroSys 2025) Table 3 for the makespan at tF = tB and the memory. The orders are ours, not a copy
of Hanayo's generator. Of Hanayo's own text only the abstract was at hand, and no code of its
authors, so neither was compared.
Legal range: any p, m, v. At tF = tB the makespan is MEPipe's (mv + p-1)(tF + tB) for m >= p and its
(vp + m-1)(tF + tB) for m <= p; where ``wave_rounds`` finds no way (not at v <= 4, p <= 16) the last
group of b < p costs 2(v-1)(p-b) ticks more in the closed form. Peak: at most min(p, m)*v
activations.
"""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.families.base import Family, program_of_ranks
from bubbleproof.theory.families.wave_rounds import round_slots
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline


class Hanayo(Family):
    """Rounds of p microbatches, two ticks apart, along v chunks in wave placement."""

    name = "hanayo"
    title = "Hanayo"
    source = "Hanayo (SC 2023) for the placement; MEPipe (EuroSys 2025) Table 3 for the time"
    least = frozenset({"bubble"})
    options = frozenset({"v"})
    placement = "wave"
    default_chunks = 2

    def program(self, pipeline: Pipeline) -> Program:
        return closed_form_order(pipeline)

    def ours(self, pipeline: Pipeline) -> str | None:
        del pipeline
        return (
            "The placement is Hanayo's; the order is bubbleproof's, made for MEPipe's Table 3 at "
            "tF = tB."
        )


def closed_form_order(pipeline: Pipeline) -> Program:
    """Each rank's actions by their starts in the closed form."""
    p, m, v = pipeline.num_ranks, pipeline.num_microbatches, pipeline.num_chunks
    rank_of_stage = np.array(pipeline.stage_ranks)
    slots = round_slots(p, m, v)
    rows = []
    for rank in range(p):
        stage = np.tile(np.flatnonzero(rank_of_stage == rank), m)
        microbatch = np.repeat(np.arange(m), v)
        step = np.concatenate([stage, 2 * p * v - 1 - stage])
        turn, place = np.divmod(step, 2 * p)
        order = np.argsort(2 * slots[np.tile(microbatch, 2), turn] + place)
        kind = np.repeat([Kind.F, Kind.B], m * v)
        rows.append((kind[order], np.tile(stage, 2)[order], np.tile(microbatch, 2)[order]))
    return program_of_ranks(rows)
