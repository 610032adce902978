"""The cases of MEPipe's claims on schedules.

Symbols as in ``mepipe_table3``: p ranks, m microbatches (the paper's n), v chunks, s slices. Each
scope has a condition; its small domain looks at few ranks, its wide one at the ranges of
``claims.domain``. SVPP has p*m*v*s forwards to place, 32768 at the far end, so its scopes look at
fewer m from 6 ranks on (``few_counts``).
"""

from __future__ import annotations

from collections.abc import Iterable

from bubbleproof.papers.claims.domain import (
    CHUNKS,
    RANKS,
    RATIOS,
    SLICES,
    SMALL_RANKS,
    SOME,
    Counts,
    Domain,
    Ratios,
    Words,
    among,
    counts,
    scope,
    worded,
)

EQUAL = RATIOS[:1]
LONGER = tuple(ratio for ratio in RATIOS if ratio[1] >= ratio[0])
V = ((1, 2, 3), CHUNKS)
S = ((1, 2, 4), SLICES)


def few_counts(p: int) -> tuple[int, ...]:
    """Those of ``counts`` that SVPP is looked at with: all up to 5 ranks, beyond it a few.

    >>> few_counts(8)
    (1, 2, 4, 7, 8, 9, 12, 15, 16, 17, 23, 24, 25, 31, 32)
    """
    rests = (0, 1, p // 2, p - 1)
    return tuple(m for m in counts(p) if p <= SMALL_RANKS[-1] or m <= 2 or m % p in rests)


FEW = Counts(
    text=f"{SOME.text}, from p = 6 on of these m <= 2 and m mod p in 0 1 p/2 p-1", of=few_counts
)


# v = 1, s >= p, or the samples that share a bubble, p div s, divide m or are not fewer.
FILLS_GROUPS = "(v == 1 or s >= p or m <= max(1, p//s) or m % max(1, p//s) == 0)"
# The same, with v = 1, s = 1 or s >= p.
HAS_NO_INNER_SLICES = f"{FILLS_GROUPS} and (v == 1 or s == 1 or s >= p)"


def svpp_scope(condition: str, where: str, ratios: Ratios = EQUAL) -> Domain:
    """A scope of SVPP's schedules, with v and s."""
    return scope(condition, where, looked_at=FEW, ratios=ratios, v=V, s=S)


def thin_scope(condition: str, where: str = "True") -> Domain:
    """A scope of SVPP's schedules at equal ticks, with few v and s between the ends."""
    chunks, slices = ((1, 2), (1, 2, 4)), ((1, 2), (1, 2, 8))
    return scope(condition, where, looked_at=FEW, ratios=EQUAL, v=chunks, s=slices)


GRAPHS = thin_scope("problems, not schedules")


def _children(ranks: Iterable[int], size: int) -> dict[str, Words]:
    return {
        "p": among("p", ranks),
        "m": ("n in 1 2 4p", "(1, 2, 4*p)"),
        "v": among("v", V[size]),
        "s": among("s", S[size]),
        "k": ("", "range(s)"),
        "c": ("", "range(v)"),
    }


CHILDREN = worded(
    _children((2, 3), 0), "every slice k and chunk c of rank 0", wider=_children(RANKS, 1)
)
