"""The cases of T-Pipe's claims: p ranks, m microbatches, v chunks, r a rank, tF and tB ticks.

The paper speaks of a steady state without saying how many microbatches that takes; "steady" is
m >= 3p here. Times are claimed at tB = 2 tF, for which T-Pipe's round of 6 units is made
(Appendix A); peaks follow from the orders alone and are claimed at any durations.
"""

from __future__ import annotations

from bubbleproof.papers.claims.domain import (
    EVERY,
    RANKS,
    Domain,
    Words,
    among,
    domain,
    scope,
    worded,
)
from bubbleproof.papers.claims.reading import Premise

FILLED_PIPE = Premise(text="m >= p", cases="m >= p")
EXCEEDING = Premise(text="m > p", cases="m > p")
STEADY_STATE = Premise(text="a steady state, m >= 3p", cases="m >= 3*p")
GROUPED = Premise(text="p divides m", cases="m % p == 0")
SEVERAL_GROUPS = Premise(text="p divides m, and m > p", cases="m % p == 0 and m > p")
ROUND = ((1, 2), (2, 4), (3, 6))
SMALL_RANKS = (2, 3, 4, 5, 6, 8)
EACH = (SMALL_RANKS, RANKS)
V = ((2, 3), (2, 3, 4))


UNITS = "T_bwd = 2 T_fwd"
ALL = scope(f"any m, {UNITS}", ranks=EACH, looked_at=EVERY, ratios=())
STEADY = scope(f"m >= 3p, {UNITS}", "m >= 3*p", ranks=EACH, looked_at=EVERY, ratios=())
GROUPS = scope(f"p divides m, {UNITS}", "m % p == 0", ranks=EACH, looked_at=EVERY, ratios=())
TO_6 = scope(
    f"p divides m, {UNITS}",
    "m % p == 0",
    ranks=(SMALL_RANKS[:-1], RANKS[:5]),
    looked_at=EVERY,
    ratios=(),
)
PAIRS = scope(
    f"m in 2p 3p 4p, {UNITS}", "m % p == 0 and m > p", ranks=EACH, looked_at=EVERY, ratios=()
)
# With durations.
TIMED = scope("any m")
TIMED_STEADY = scope("m >= 3p", "m >= 3*p")
TIMED_FILLED = scope("m >= p", "m >= p")
TIMED_EXCEEDING = scope("m > p", "m > p")
TIMED_PAIRS = scope("m in 2p 3p 4p", "m % p == 0 and m > p")
CHUNKS = scope("p divides m", "m % p == 0", v=V)
DEEP = scope("m in 2p 3p 4p", "m % p == 0 and m > p", v=V)
TICKS = scope("tB = 2 tF", ratios=ROUND)


def _windows(condition: str, where: str) -> Domain:
    def counts(most: int) -> dict[str, Words]:
        return {
            "p": among("p", SMALL_RANKS if most == 2 else RANKS),
            "m": (f"m <= {most}p", f"range(1, {most}*p + 1)"),
        }

    every_rank: Words = ("every rank", "range(p)")
    return worded({**counts(2), "r": every_rank}, condition, where, counts(4))


# The first rank and the last are neighbours where there are two.
LINKS = scope(
    "m in 2p 3p 4p, every rank r but the last",
    "m % p == 0 and m > p and r < p - 1",
    ranks=(SMALL_RANKS[1:], RANKS[1:]),
    looked_at=EVERY,
    ratios=(),
    r=(range(7), range(15)),
)
WINDOWS, ANY = _windows("m >= p", "m >= p"), _windows("any m", "True")
LAST = domain("2 <= p <= 16, m = p, rank 0", p=RANKS, m="(p,)", r=(0,))


def delays(first: int, last: int) -> Domain:
    """One case per p with enough microbatches for the rounds between T-Recomp's chunks."""
    text = f"{first} <= p <= {last}, m = floor(p/3) + 4"
    return domain(text, p=range(first, last + 1), m="(p//3 + 4,)")
