"""Interleaved and breadth-first orders with fewer microbatches than ranks.

Symbols: p ranks, m < p microbatches, v chunks per rank, tF and tB the ticks of one action. Both
papers speak of m >= p, where the bubble is (p-1)/(vm). With m < p the last stage, p v - 1, waits
for p v - 1 forwards, runs m forwards and m backwards, and p v - 1 backwards follow: no order takes
less than

    (pv + m-1)(tF + tB),   idle over work (pv + m-1 - mv)/(mv)

and both take no more.
"""

from __future__ import annotations

from bubbleproof.papers.claims.any_order import least
from bubbleproof.papers.claims.claim import PaperClaim, stated
from bubbleproof.papers.claims.domain import CHUNKS, Counts, domain, scope
from bubbleproof.papers.claims.measured_pipelines import idle_over_work, makespan
from bubbleproof.papers.field.field_first import BREADTH, MEGATRON

FEW = scope(
    "m < p",
    ranks=((2, 3, 4, 5), (2, 3, 4, 5, 7, 8, 11, 16)),
    looked_at=Counts(text="every m < p", of=lambda p: range(1, p)),
    v=((1, 2, 3), CHUNKS),
)
ANY_ORDER = domain(
    "3 <= p <= 5, 2 <= m < p, v in 2 3, tF:tB in 1:1 1:2 2:1",
    p=(3, 4, 5),
    m="range(2, p)",
    v="(2, 3) if p == 3 else (2,)",
    tF_tB=((1, 1), (1, 2), (2, 1)),
)
TIME, BUBBLE = "(p*v + m-1)*(tF + tB)", "(p*v + m-1 - m*v)/(m*v)"


CLAIMS: tuple[PaperClaim, ...] = (
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
                makespan(name),
                "==",
                TIME,
                FEW,
            ),
            stated(
                f"field.{name}.bubble-few",
                f"ours, for {source}",
                f"{title} has the bubble (pv + m-1 - mv)/(mv) with m < p.",
                "idle_over_work",
                idle_over_work(name),
                "==",
                BUBBLE,
                FEW,
            ),
        )
    ),
    stated(
        "field.few.least",
        "ours",
        "With m < p no order of v chunks, stage g on rank g mod p, is shorter.",
        "least makespan of any order (ticks)",
        least(makespan("bfs")),
        "==",
        TIME,
        ANY_ORDER,
    ),
)
