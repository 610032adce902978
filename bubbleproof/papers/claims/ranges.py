"""The ranges of wide domains, thinned inside and never at the ends.

p ranks from 2 up to 16, every one; m microbatches up to 4p: every one up to 2p and, beyond, those
around the multiples of p; v chunks up to 4; s slices up to 8; forwards and backwards of several
ratios.
"""

from __future__ import annotations

from collections.abc import Iterator

RANKS = range(2, 17)
CHUNKS = (1, 2, 3, 4)
SLICES = (1, 2, 3, 4, 8)
RATIOS = ((1, 1), (1, 2), (2, 1), (2, 3), (3, 2), (3, 5))  # (tF, tB)
TWO_RATIOS = ((1, 2), (3, 2))

COUNTS_TEXT = "2 <= p <= 16, m <= 4p (all up to 2p, then 2p+1, 3p-1, 3p, 3p+1, 4p-1, 4p)"
CHUNKS_TEXT = "v <= 4"
SLICES_TEXT = "s in 1 2 3 4 8"
RATIOS_TEXT = "tF:tB in 1:1 1:2 2:1 2:3 3:2 3:5"


def counts(p: int) -> tuple[int, ...]:
    """The microbatches looked at on p ranks, ascending.

    >>> counts(4)
    (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16)
    """
    beyond = (2 * p + 1, 3 * p - 1, 3 * p, 3 * p + 1, 4 * p - 1, 4 * p)
    return tuple(sorted({*range(1, 2 * p + 1), *(m for m in beyond if m <= 4 * p)}))


def shapes() -> Iterator[tuple[int, int]]:
    """Every (p, m) looked at."""
    return ((p, m) for p in RANKS for m in counts(p))
