"""T-Pipe's and T-Recomp's rounds of two chunks, written out from Figure 16 and Figure 6(d).

A second statement beside ``theory.families.rounds``, which lays cells for any number of
chunks: starts of microbatch 0 by (kind, chunk) in units, one round of 6 or 7 units per microbatch.
"""

from __future__ import annotations

from bubbleproof.theory.model.actions import Kind

Starts = dict[tuple[Kind, int], int]


def tpipe_starts(p: int, rank: int) -> Starts:
    """Appendix A: chunk 2 is x rounds behind chunk 1 forwards, chunk 1 y behind it backwards."""
    second = 3 + 6 * max(0, -(-(p - 3) // 6))
    deep_back = second + p + 2 * (p - 1 - rank)
    return {
        (Kind.F, 0): rank,
        (Kind.F, 1): rank + second,
        (Kind.B, 1): deep_back,
        (Kind.B, 0): deep_back + 3 + 6 * max(0, -(-(2 * p - 3) // 6)),
    }


def trecomp_starts(p: int, rank: int) -> Starts:
    """Appendices B and C; times count from chunk 2's first backward on the last rank."""
    hops = p - 1 - rank
    again = 2 * hops + 3 + 7 * max(0, -(-(2 * p - 4) // 7))
    return {
        (Kind.F, 0): 2 - 7 * (forward_rounds(p) + 1) - hops - hops // 2,
        (Kind.F, 1): -1 - hops - (hops + 1) // 2,
        (Kind.B, 1): 2 * hops,
        (Kind.R, 0): again,
        (Kind.B, 0): again + 1,
    }


def forward_rounds(p: int) -> int:
    """x of T-Recomp: rounds by which chunk 2 follows chunk 1 forwards."""
    return max(0, -(-(p + p // 2 - 4) // 7))
