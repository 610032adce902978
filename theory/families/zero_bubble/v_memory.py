"""V-Half and V-Min: a half and a third of 1F1B's activations, by a building block of a V.

V-Half: half of 1F1B's activations, half of its bubble.

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
Legal range: any p, m. Peak: (p + 2) div 2 microbatches on the fullest rank, that is twice as many
chunk activations, at most 2m. At tF = tI = tW and m >= 2p the makespan is 6m + 3p-4 ticks for odd
p from 3 on, 6m + 3p-7 for even p from 4 on (6m + 1 where p = 2): found, not derived.

V-Min: a third of 1F1B's activations, two thirds of its bubble.

All passes of its building block advance by 1 tick per hop, the fastest there is. On rank 0 chunk 0
lives for all four, about 4p ticks, and on rank p-1 either chunk for two of them, about 2p ticks:
with a period of 6 ticks, 2p/3 chunk activations on every rank, where 1F1B holds 2p.

On rank r the starts are r, A-r, B+r and C-r; modulo 6 they differ for all r when A, C and B-A are
odd, B is no multiple of 6 and C-A is none. The first turns that the inputs allow are A = 2p-1,
B = 2p and C = 4p-1. Where p is a multiple of 3, B would be one of 6: A, B and C then come 2, 2
and 4 ticks later. The paper gives the principle and the properties; these numbers are ours, and so
is the order in which W fills the gaps.

Compared with the authors' generator (sail-sg/zero-bubble-pipeline-parallelism,
zerobubble/scheduler/zbv_greedy.py at 064369d) at unit ticks, p = 2..8 and m up to 3p: the peak is
the same at every size, and so are the turns unless 3 divides p. Then it delays only B and C, by 2
ticks. It reorders the start and the end of the run; so do slides here, and this family is never
longer (167 ticks in place of 171 at p = 8, m = 24).
Legal range: any p, m. Peak: (p + 4) div 3 microbatches on the fullest rank, that is twice as many
chunk activations, at most 2m. At tF = tI = tW and m >= 2p the makespan is 6m + 4p-5 ticks where p
is 1 more than a multiple of 3, 2 less where it is a multiple and 4 less otherwise (6m + 1 where
p = 2, 6m where p = 1): found, not derived.

Source: Qi, Wan, Amar and Lin, "Pipeline Parallelism with Controllable Memory" (NeurIPS 2024,
arXiv:2405.15362) section 3, V-Half and V-Min.
"""

from __future__ import annotations

from bubbleproof.theory.families.zero_bubble.v_shape import BuildingBlock, RepeatedBlock, v_block


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


class VMin(RepeatedBlock):
    """A building block with passes of 1 tick per hop, squeezed."""

    name = "v-min"
    title = "V-Min"
    source = "Pipeline Parallelism with Controllable Memory (NeurIPS 2024) section 3"

    def block(self, num_ranks: int) -> BuildingBlock:
        p, late = num_ranks, 0 if num_ranks % 3 else 2
        turns = (2 * p - 1 + late, 2 * p + late, 4 * p - 1 + 2 * late)
        return v_block(p, hops=(1, 1, 1, 1), turns=turns, limit=(p + 4) // 3 * 2)
