"""Chimera: two 1F1B pipelines in opposite directions that fill each other's bubbles.

Every stage is on two ranks (``bidirectional`` placement); the first half of the microbatches runs
downward, the second half upward, and m counts both. Microbatches come in units of p, half of them
in either direction. At tF = tB = 1 microbatch i of unit n in its direction starts

    F on stage g at  2pn + 2i + g        B on stage g at  2pn + 2i + 2p-1-g        (i < p/2)

On rank r, downward F and upward B start at r + 2i and r + p + 2i modulo 2p, the others at
r + p-1 + ... of the other parity (p is even), so nothing collides and units join without a gap: the
makespan is 2m + p - 2 ticks. The program is this order. With tB = 2tF units joined directly leave
gaps between them; the paper's remedies (forward doubling, backward halving) change microbatch
sizes and are not part of this family.

Source: Li & Hoefler, "Chimera: Efficiently Training Large-Scale Neural Networks with Bidirectional
Pipelines" (SC 2021, arXiv:2107.06925) section 3, two pipelines, direct concatenation. Compared with
it: the bubble and the peaks where p divides m (tests and claims). The authors' code
(Shigangli/Chimera at 6b78ac7, chimera_pipeline_rank.py) gives the same order at p = 4, m = 4 to 16,
and at p = 6 and 8 for one unit and two; beyond them it puts two actions on a rank at a time.
Legal range: even p, any m; a last unit that is not full is a full one less the microbatches that
are not there (the source splits m < p over the directions likewise). Where p does not divide m the
source says no more (its code gives a last half unit to one direction). Peak where p divides m:
p/2 + 1 activations on ranks 0 and p-1, one more per rank towards the middle, p on p/2-1 and p/2.
"""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.families.base import Family, program_of_ranks
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.placement import BIDIRECTIONAL, num_downward


class Chimera(Family):
    """Units of p microbatches, half of them from either end."""

    name = "chimera"
    title = "Chimera"
    source = "Chimera (SC 2021) section 3"
    least = frozenset({"bubble"})
    placement = BIDIRECTIONAL

    def refusal(self, pipeline: Pipeline) -> str | None:
        if pipeline.num_ranks % 2:
            return f"{self.name} needs an even number of ranks, got p={pipeline.num_ranks}"
        return super().refusal(pipeline)

    def program(self, pipeline: Pipeline) -> Program:
        return closed_form_order(pipeline)

    def ours(self, pipeline: Pipeline) -> str | None:
        p, m = pipeline.num_ranks, pipeline.num_microbatches
        if m < p or m % p == 0:
            return None
        return f"The source joins full units of p={p}; bubbleproof cuts the last one short."


def closed_form_order(pipeline: Pipeline) -> Program:
    """Each rank's actions by their starts in the closed form."""
    p, m = pipeline.num_ranks, pipeline.num_microbatches
    microbatch = np.arange(m)
    half = num_downward(m)
    unit, place = np.divmod(np.where(microbatch < half, microbatch, microbatch - half), p // 2)
    injected = 2 * p * unit + 2 * place
    kind = np.repeat([Kind.F, Kind.B], m)
    rows = []
    for rank in range(p):
        stage = np.where(microbatch < half, rank, p - 1 - rank)
        starts = np.concatenate([injected + stage, injected + 2 * p - 1 - stage])
        order = np.argsort(starts, kind="stable")
        rows.append((kind[order], np.tile(stage, 2)[order], np.tile(microbatch, 2)[order]))
    return program_of_ranks(rows)
