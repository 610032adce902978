"""V-Half: half of 1F1B's activations, half of its bubble.

The four passes of its building block advance by 1, 2, 1 and 2 ticks per hop. On rank 0 chunk 0
lives for all four, about 6p ticks or p periods, and chunk 1 for next to nothing; on rank p-1 either
chunk lives for the second and third pass, about 3p ticks: p chunk activations on every rank, where
1F1B holds 2p.

The turns are the earliest without a collision. On rank r the starts are r, A-2r, B+r and C-2r;
modulo 6 they differ for all r when neither A, C, B-A nor C-B is a multiple of 3 and neither B nor
C-A one of 6. A = 3p-2 and B = 3p-1 are the first that their inputs allow; C may start at 6p-3, and
6p-2 fits for odd p, 6p+1 for even p. The paper gives the principle and the properties; these
numbers are ours, and so is the order in which W fills the gaps.

Compared with the authors' generator (sail-sg/zero-bubble-pipeline-parallelism,
zerobubble/scheduler/zbv_greedy.py at 064369d) at unit ticks, p = 2..8 and m up to 3p: the peak is
the same at every size. Its passes advance by 2, 1, 2 and 1 ticks, and it reorders the start and the
end of the run before squeezing; here slides do that after squeezing. With m >= 2p both take the
same time (53 ticks at p = 4, m = 8; 161 at p = 8, m = 24), and this family is never longer.

Source: Qi, Wan, Amar and Lin, "Pipeline Parallelism with Controllable Memory" (NeurIPS 2024,
arXiv:2405.15362) section 3, V-Half.
Legal range: any p, m. Peak: (p + 2) div 2 microbatches on the fullest rank, that is twice as many
chunk activations, at most 2m. At tF = tI = tW and m >= 2p the makespan is 6m + 3p-4 ticks for odd
p from 3 on, 6m + 3p-7 for even p from 4 on (6m + 1 where p = 2): found, not derived.
"""

from __future__ import annotations

from bubbleproof.theory.families.v_shape import BuildingBlock, RepeatedBlock, v_block


class VHalf(RepeatedBlock):
    """A building block with passes of 1, 2, 1 and 2 ticks per hop, squeezed."""

    name = "v-half"
    title = "V-Half"
    source = "Pipeline Parallelism with Controllable Memory (NeurIPS 2024) section 3"

    def block(self, num_ranks: int) -> BuildingBlock:
        p = num_ranks
        last = 6 * p - 2 if p % 2 else 6 * p + 1
        return v_block(
            p, hops=(1, 2, 1, 2), turns=(3 * p - 2, 3 * p - 1, last), limit=(p + 2) // 2 * 2
        )
