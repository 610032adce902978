"""Placements: which rank holds which stage.

With p ranks and v chunks per rank there are p*v stages g = 0..p*v-1; chunk c of a rank is the stage
with g div p = c. Three named placements (docs/guide/design.md):

- ``loop``: stage g on rank g mod p (Megatron's interleaving).
- ``wave``: even chunks on g mod p, odd chunks on p-1-(g mod p) (V shape, Hanayo, ZB-V, DualPipeV).
- ``bidirectional``: every stage on two ranks (Chimera, DualPipe). *Downward* microbatches run stage
  g on rank g mod p, *upward* ones on rank p-1-(g mod p). Of m microbatches the first (m+1) div 2
  run downward.

>>> stage_ranks("wave", num_ranks=3, num_chunks=2)
(0, 1, 2, 2, 1, 0)
"""

from __future__ import annotations

from typing import Annotated

from bubbleproof.theory.pipelines.value_types import Expectation, OneOf

BIDIRECTIONAL = "bidirectional"
PLACEMENTS = ("loop", "wave", BIDIRECTIONAL)
PlacementChoice = Annotated[
    Annotated[str, OneOf(PLACEMENTS)] | tuple[int, ...],
    Expectation("loop, wave, bidirectional or a rank per stage"),
]


def stage_ranks(placement: str, *, num_ranks: int, num_chunks: int) -> tuple[int, ...]:
    """The rank of each stage g = 0..p*v-1, for downward microbatches where it has two.

    Parameters
    ----------
    placement
        ``loop``, ``wave`` or ``bidirectional``.
    num_ranks, num_chunks
        p and v; there are p v stages.

    Raises
    ------
    ValueError
        For an unknown placement.
    """
    stages = range(num_ranks * num_chunks)
    if placement in ("loop", BIDIRECTIONAL):
        return tuple(g % num_ranks for g in stages)
    if placement == "wave":
        return tuple(
            g % num_ranks if (g // num_ranks) % 2 == 0 else num_ranks - 1 - g % num_ranks
            for g in stages
        )
    raise ValueError(f"placement must be one of {', '.join(PLACEMENTS)}, got {placement!r}")


def num_downward(num_microbatches: int) -> int:
    """How many of a bidirectional pipeline's microbatches run downward: the first half.

    Parameters
    ----------
    num_microbatches
        All that the pipeline has, in both directions together.
    """
    return (num_microbatches + 1) // 2
