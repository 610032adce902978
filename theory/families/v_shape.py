"""V-shaped building blocks: schedules that repeat one microbatch's pattern, then close its gaps.

Each rank r holds stage r (chunk 0, going down the V) and stage 2p-1-r (chunk 1, going up). At unit
ticks a rank works 6 ticks per microbatch (F, I, W of two chunks), so a *building block*, the starts
of one microbatch's actions, repeats every 6 ticks, and it fits when the F and I starts of each rank
differ modulo 6. The four passes over the ranks advance by a constant number of ticks per hop: the
slower they go, the longer activations live, and the lifespan divided by 6 is the peak.

Source: Qi et al., "Pipeline Parallelism with Controllable Memory" (NeurIPS 2024) section 3; what
becomes of the repeated block where the run begins and ends is ``reordering``.

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

from abc import abstractmethod

import numpy as np

from bubbleproof.theory.families.base import Family, program_of_ranks
from bubbleproof.theory.families.reordering import reordered
from bubbleproof.theory.model.actions import Ints, Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline

PERIOD = 6  # unit ticks of one microbatch on a rank: F, I and W of two chunks
# The passes of a block in the order of a microbatch: kind and chunk.
PASSES = ((Kind.F, 0), (Kind.F, 1), (Kind.I, 1), (Kind.I, 0))
WEIGHTS = ((Kind.W, 1), (Kind.W, 0))


def v_block(num_ranks: int, *, down: int, turns: tuple[int, int, int]) -> Ints:
    """The starts of microbatch 0, shape (4, p): F down, F up, I down, I up on each rank.

    Passes that go down advance by ``down`` ticks a hop, those that go up by 1.

    Parameters
    ----------
    num_ranks
        p.
    down
        Ticks a hop of F of chunk 0 and I of chunk 1.
    turns
        Ticks at which F of chunk 1, I of chunk 1 and I of chunk 0 start on rank 0.
    """
    rank = np.arange(num_ranks)
    up, back, end = turns
    return np.stack([down * rank, up - rank, back + down * rank, end - rank])


class VShape(Family):
    """Two chunks per rank, placed as a V, with split backwards."""

    options = frozenset({"v"})
    default_chunks = 2
    has_two_chunks = True
    placement = "wave"
    is_split = True


class RepeatedBlock(VShape):
    """A building block repeated for every microbatch, reordered where the run begins and ends."""

    @abstractmethod
    def block(self, num_ranks: int) -> Ints:
        """The building block for p ranks, as ``v_block`` gives it.

        Parameters
        ----------
        num_ranks
            p.
        """

    def program(self, pipeline: Pipeline) -> Program:
        p, m = pipeline.num_ranks, pipeline.num_microbatches
        repeated = self.block(p)[:, :, None] + PERIOD * np.arange(m)
        starts, weights = reordered(repeated)
        return program_of_ranks([_row(p, r, starts[:, r], weights[r]) for r in range(p)])


def _row(p: int, rank: int, starts: Ints, weights: tuple[list[int], list[int]]) -> tuple[Ints, ...]:
    """(kind, stage, microbatch) of a rank's actions in the order of their starts."""
    start = np.concatenate([starts.ravel(), *weights])
    kind, chunk = np.repeat(np.array([*PASSES, *WEIGHTS]), starts.shape[1], axis=0).T
    stage = np.where(chunk == 0, rank, 2 * p - 1 - rank)
    order = np.argsort(start)
    microbatch = np.tile(np.arange(starts.shape[1]), len(PASSES) + len(WEIGHTS))
    return kind[order], stage[order], microbatch[order]


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
