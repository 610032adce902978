"""V-Half and V-Min: a half and a third of 1F1B's activations, by a building block of a V.

V-Half: half of 1F1B's activations, half of its bubble. The four passes of its building block
advance by 2, 1, 2 and 1 ticks per hop. Chunk 0 of rank 0 lives for all four, about 6p ticks or p
periods: p chunk activations on every rank, where 1F1B holds 2p.

V-Min: a third of 1F1B's activations, two thirds of its bubble. All passes advance by 1 tick per
hop, the fastest there is: with a period of 6 ticks 2p/3 chunk activations on every rank.

Where the turns that the inputs allow first would collide, the backwards come later: by 3 ticks at
even p (V-Half), by 2 where 3 divides p (V-Min).

Source: Qi, Wan, Amar and Lin, "Pipeline Parallelism with Controllable Memory" (NeurIPS 2024,
arXiv:2405.15362) section 3; blocks and orders are those of the authors' code (``reordering``),
compared with it for p = 1..8 and m up to 4p, action by action.
Legal range: any p, m. Peak: (p + 2) div 2 and (p + 4) div 3 microbatches on the fullest rank for
m >= p, that is twice as many chunk activations.
"""

from __future__ import annotations

from bubbleproof.theory.families.zero_bubble.v_shape import RepeatedBlock, v_block
from bubbleproof.theory.model.actions import Ints


class VHalf(RepeatedBlock):
    """A building block with passes of 2, 1, 2 and 1 ticks per hop, squeezed."""

    name = "v-half"
    title = "V-Half"
    source = "Pipeline Parallelism with Controllable Memory (NeurIPS 2024) section 3"

    def block(self, num_ranks: int) -> Ints:
        p, late = num_ranks, 0 if num_ranks % 2 else 3
        return v_block(p, down=2, turns=(3 * p - 2, 3 * p - 1 + late, 6 * p - 2 + late))


class VMin(RepeatedBlock):
    """A building block with passes of 1 tick per hop, squeezed."""

    name = "v-min"
    title = "V-Min"
    source = "Pipeline Parallelism with Controllable Memory (NeurIPS 2024) section 3"

    def block(self, num_ranks: int) -> Ints:
        p, late = num_ranks, 0 if num_ranks % 3 else 2
        return v_block(p, down=1, turns=(2 * p - 1, 2 * p + late, 4 * p - 1 + late))
