"""The cases of T-Pipe's claims: p ranks, m microbatches, v chunks, r a rank, tF and tB ticks.

The paper speaks of a steady state without saying how many microbatches that takes; "steady" is
m >= 3p here. Times are claimed at tB = 2 tF, for which T-Pipe's round of 6 units is made
(Appendix A); peaks follow from the orders alone and are claimed at any durations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from bubbleproof.papers.claims.claim import Domain, Params, listed
from bubbleproof.papers.claims.points import Row
from bubbleproof.papers.claims.ranges import RANKS
from bubbleproof.papers.claims.scope import EVERY, Scope, scope, spelled

ROUND = ((1, 2), (2, 4), (3, 6))
SMALL_RANKS = (2, 3, 4, 5, 6, 8)
EACH = (SMALL_RANKS, RANKS)
V = ((2, 3), (2, 3, 4))


def is_any(at: Params) -> bool:
    del at
    return True


def is_steady(at: Params) -> bool:
    return at["m"] >= 3 * at["p"]


def is_filled(at: Params) -> bool:
    return at["m"] >= at["p"]


def exceeds(at: Params) -> bool:
    return at["m"] > at["p"]


def divides(at: Params) -> bool:
    return at["m"] % at["p"] == 0


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


def _windows(
    condition: str, where: Callable[[int, int], bool], ranks: Iterable[int], most: int
) -> Domain:
    ranks = tuple(ranks)

    def rows() -> Iterator[Row]:
        for p in ranks:
            for m in range(1, most * p + 1):
                if where(p, m):
                    yield from ((p, m, r) for r in range(p))

    text = f"p in {spelled(ranks)}; m <= {most}p; every rank; {condition}"
    return listed(text, ("p", "m", "r"), rows)


def _window_scope(condition: str, where: Callable[[int, int], bool]) -> Scope:
    return Scope(
        small=_windows(condition, where, SMALL_RANKS, 2), wide=_windows(condition, where, RANKS, 4)
    )


WINDOWS = _window_scope("m >= p", lambda p, m: m >= p)
ANY = _window_scope("any m", lambda _p, _m: True)
LAST = listed("2 <= p <= 16, m = p, rank 0", ("p", "m", "r"), lambda: ((p, p, 0) for p in RANKS))


def delays(first: int, last: int) -> Domain:
    """One case per p with enough microbatches for the rounds between T-Recomp's chunks."""
    return listed(
        f"{first} <= p <= {last}, m = floor(p/3) + 4",
        ("p", "m"),
        lambda: ((p, p // 3 + 4) for p in range(first, last + 1)),
    )
