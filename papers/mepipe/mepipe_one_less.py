"""SVPP with one forward less than the largest f: what the best order costs.

Symbols: p ranks, m microbatches (the paper's n), v chunks, s slices, f_max = v max(p,s) + min(p,s)
- 1 (Table 3), the units that the shortest SVPP holds; one unit is a slice on a chunk. Section 4.2
says that fewer forwards before the first backward save memory and cost time, and shows one example.
Here every rank may hold f_max - 1 units, and the least makespan of any order is asked for at tF =
tB = 1: a checked schedule that meets a checked certificate (``any_order``), no order of ours.

Table 3's time is 2(nvs + p-1) where n >= p. One unit less costs

    2 floor((n-1) / ceil((p-1)/s))      for v = 1 or s >= p
    2                                   for s = 1, v >= 2

Source: Sun et al., "MEPipe" (EuroSys 2025) sections 4.2 and 4.4; the formulas are ours.
"""

from __future__ import annotations

from functools import lru_cache

from bubbleproof.papers.claims.any_order import makespan_of_any_order
from bubbleproof.papers.claims.claim import PaperClaim, stated
from bubbleproof.papers.claims.domain import Domain, Params, domain
from bubbleproof.theory.families import member
from bubbleproof.theory.families.svpp import most_forwards

NAMES = ("p", "m", "v", "s")


def _looked_at(text: str, *counts: tuple[int, int, int, tuple[int, ...]]) -> Domain:
    """The rows (p, v, s, the n looked at)."""
    return domain(text, p_m_v_s=[(p, m, v, s) for p, v, s, chosen in counts for m in chosen])


# n from the first of which f_max - 1 units are fewer than all nvs, up to two jumps of the formula.
PLAIN = _looked_at(
    "2 <= p <= 4, v = 1 or s >= p, n up to 7 with nvs >= f_max",
    (2, 1, 1, (2, 3, 4)), (2, 1, 2, (2, 3)), (3, 1, 1, (3, 4, 5)), (3, 1, 2, (2, 3)),
    (4, 1, 1, (4, 6, 7)), (4, 1, 2, (3, 4, 5)), (2, 2, 2, (2, 3)),
)  # fmt: skip
CHUNKED = _looked_at(
    "2 <= p <= 4, p <= n <= 5, v in 2 3, s = 1",
    (2, 2, 1, (2, 3, 5)), (2, 3, 1, (2, 3)), (3, 2, 1, (3, 4)), (4, 2, 1, (4,)),
)  # fmt: skip


def table_3(at: Params) -> int:
    """2(nvs + p-1 + (v-1) max(p-sn, 0)): Table 3's time at ticks of 1."""
    p, m, v, s = (at[name] for name in NAMES)
    few = (v - 1) * max(p - s * m, 0) if m < p else 0
    return 2 * (m * v * s + p - 1 + few)


def one_less(at: Params) -> int:
    """Table 3's time and 2 floor((n-1) / ceil((p-1)/s))."""
    rounds = -(-(at["p"] - 1) // at["s"])
    return table_3(at) + 2 * ((at["m"] - 1) // rounds)


@lru_cache(maxsize=256)
def _least(p: int, m: int, v: int, s: int, fewer: int) -> int:
    widest = member("svpp", p=p, m=m, v=v, s=s, tF=1, tB=1)
    forwards = most_forwards(widest.pipeline) - fewer
    made = member("svpp", p=p, m=m, v=v, s=s, f=forwards, tF=1, tB=1)
    begun = [("svpp", made.schedule.program)]
    return makespan_of_any_order(made.problem.with_capacity(forwards), begun)


def least(at: Params, fewer: int) -> int:
    """The least makespan of any order within f_max - ``fewer`` units on every rank."""
    return _least(*(at[name] for name in NAMES), fewer)


CLAIMS: tuple[PaperClaim, ...] = (
    stated("mepipe.section-4.2.most", "sections 4.2 and 4.4, Table 3",
           "Within f_max units no order is shorter than Table 3 says, and one is as short.",
           "least makespan of any order (ticks)", lambda at: least(at, 0), "==",
           lambda at: table_3(at), PLAIN),
    stated("mepipe.section-4.2.one-less", "ours, for MEPipe section 4.2",
           "Within f_max - 1 units the best order takes 2 floor((n-1) / ceil((p-1)/s)) ticks more "
           "(v = 1 or s >= p).", "least makespan of any order (ticks)", lambda at: least(at, 1),
           "==", one_less, PLAIN),
    stated("mepipe.section-4.2.one-less-chunks", "ours, for MEPipe section 4.2",
           "With s = 1 and v >= 2 the best order within f_max - 1 units takes 2 ticks more, "
           "however many samples there are.", "least makespan of any order (ticks)",
           lambda at: least(at, 1), "==", lambda at: table_3(at) + 2, CHUNKED),
    stated("mepipe.section-4.2.trade", "section 4.2",
           "Less memory costs time: a unit less makes every order longer, by 2 ticks at least.",
           "least makespan of any order (ticks)", lambda at: least(at, 1), ">=",
           lambda at: least(at, 0) + 2, CHUNKED),
)  # fmt: skip
