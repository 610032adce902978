"""Interleaved and breadth-first orders with fewer microbatches than ranks.

Symbols: p ranks, m < p microbatches, v chunks per rank, tF and tB the ticks of one action. Both
papers speak of m >= p, where the bubble is (p-1)/(vm). With m < p the last stage, p v - 1, waits
for p v - 1 forwards, runs m forwards and m backwards, and p v - 1 backwards follow: no order takes
less than

    (pv + m-1)(tF + tB),   idle over work (pv + m-1 - mv)/(mv)

and both take no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from bubbleproof.papers.claims.claim import Claim, Params, listed
from bubbleproof.papers.claims.field_first import BREADTH, MEGATRON
from bubbleproof.papers.claims.field_schedules import idle_over_work, makespan, stated
from bubbleproof.papers.claims.optimum import least_makespan
from bubbleproof.papers.claims.points import Row
from bubbleproof.papers.claims.ranges import CHUNKS
from bubbleproof.papers.claims.scope import Counts, scope
from bubbleproof.theory.families import member

BELOW = Counts(text="every m < p", of=lambda p: range(1, p))
FEW = scope(
    "m < p",
    lambda at: at["m"] < at["p"],
    ranks=((2, 3, 4, 5), (2, 3, 4, 5, 7, 8, 11, 16)),
    looked_at=BELOW,
    v=((1, 2, 3), CHUNKS),
)


def _any_order() -> Iterator[Row]:
    for p, v in ((3, 2), (3, 3), (4, 2), (5, 2)):
        for m in range(2, p):
            yield from ((p, m, v, *ticks) for ticks in ((1, 1), (1, 2), (2, 1)))


ANY_ORDER = listed(
    "3 <= p <= 5, 2 <= m < p, v in 2 3, tF:tB in 1:1 1:2 2:1",
    ("p", "m", "v", "tF", "tB"),
    _any_order,
)


def slots(at: Params) -> int:
    """pv + m-1."""
    return at["p"] * at["v"] + at["m"] - 1


def time(at: Params) -> Fraction:
    """(pv + m-1)(tF + tB)."""
    return Fraction(slots(at) * (at["tF"] + at["tB"]))


def bubble(at: Params) -> Fraction:
    """(pv + m-1 - mv)/(mv)."""
    work = at["m"] * at["v"]
    return Fraction(slots(at) - work, work)


def least(at: Params) -> Fraction:
    """The least makespan of any order of v chunks in loop placement."""
    made = member("bfs", p=at["p"], m=at["m"], v=at["v"], tF=at["tF"], tB=at["tB"])
    return Fraction(least_makespan(made.problem, [("bfs", made.schedule.program)]))


CLAIMS: tuple[Claim, ...] = (
    *(
        claim
        for name, source, title in (
            ("interleaved", f"{MEGATRON} section 2.2", "Interleaved 1F1B, one group of m,"),
            ("bfs", f"{BREADTH} section 4", "Breadth-first order"),
        )
        for claim in (
            stated(
                f"field.{name}.makespan-few",
                f"ours, for {source}",
                f"{title} takes (pv + m-1)(tF + tB) with m < p, at any durations.",
                "makespan (ticks)",
                FEW,
                time,
                makespan(name),
            ),
            stated(
                f"field.{name}.bubble-few",
                f"ours, for {source}",
                f"{title} has the bubble (pv + m-1 - mv)/(mv) with m < p.",
                "idle_over_work",
                FEW,
                bubble,
                idle_over_work(name),
            ),
        )
    ),
    stated(
        "field.few.least",
        "ours",
        "With m < p no order of v chunks, stage g on rank g mod p, is shorter.",
        "least makespan of any order (ticks)",
        ANY_ORDER,
        time,
        least,
    ),
)
