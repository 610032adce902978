"""The cases of T-Pipe's claims: p ranks, m microbatches, v chunks, r a rank, tF and tB ticks.

The paper speaks of a steady state without saying how many microbatches that takes; "steady" is
m >= 3p here. Times are claimed at tB = 2 tF, for which T-Pipe's round of 6 units is made
(Appendix A); peaks follow from the orders alone and are claimed at any durations.
"""

from __future__ import annotations

from bubbleproof.papers.claims.domain import (
    EVERY,
    RANKS,
    Condition,
    Domain,
    Params,
    among,
    divides,
    domain,
    is_any,
    is_filled,
    scope,
    worded,
)

ROUND = ((1, 2), (2, 4), (3, 6))
SMALL_RANKS = (2, 3, 4, 5, 6, 8)
EACH = (SMALL_RANKS, RANKS)
V = ((2, 3), (2, 3, 4))


def is_steady(at: Params) -> bool:
    return at["m"] >= 3 * at["p"]


def exceeds(at: Params) -> bool:
    return at["m"] > at["p"]


def is_multiple(at: Params) -> bool:
    return divides(at) and at["m"] > at["p"]


ALL = scope("any m", is_any, ranks=EACH, looked_at=EVERY, ratios=())
STEADY = scope("m >= 3p", is_steady, ranks=EACH, looked_at=EVERY, ratios=())
GROUPS = scope("p divides m", divides, ranks=EACH, looked_at=EVERY, ratios=())
TO_6 = scope(
    "p divides m", divides, ranks=(SMALL_RANKS[:-1], RANKS[:5]), looked_at=EVERY, ratios=()
)
PAIRS = scope("m in 2p 3p 4p", is_multiple, ranks=EACH, looked_at=EVERY, ratios=())
# With durations.
TIMED = scope("any m", is_any)
TIMED_STEADY = scope("m >= 3p", is_steady)
TIMED_FILLED = scope("m >= p", is_filled)
TIMED_EXCEEDING = scope("m > p", exceeds)
TIMED_PAIRS = scope("m in 2p 3p 4p", is_multiple)
CHUNKS = scope("p divides m", divides, v=V)
DEEP = scope("m in 2p 3p 4p", is_multiple, v=V)
TICKS = scope("tB = 2 tF", is_any, ratios=ROUND)


def _windows(condition: str, where: Condition = is_any) -> Domain:
    def cases(size: int, most: int, wide: Domain | None) -> Domain:
        parts = {
            "p": among("p", EACH[size]),
            "m": (f"m <= {most}p", lambda at: range(1, most * at["p"] + 1)),
            "r": ("every rank", lambda at: range(at["p"])),
        }
        return worded(parts, condition, where, wide)

    return cases(0, 2, cases(1, 4, None))


WINDOWS, ANY = _windows("m >= p", is_filled), _windows("any m")
LAST = domain("2 <= p <= 16, m = p, rank 0", p=RANKS, m=lambda at: (at["p"],), r=(0,))


def delays(first: int, last: int) -> Domain:
    """One case per p with enough microbatches for the rounds between T-Recomp's chunks."""
    return domain(
        f"{first} <= p <= {last}, m = floor(p/3) + 4",
        p=range(first, last + 1),
        m=lambda at: (at["p"] // 3 + 4,),
    )
