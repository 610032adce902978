"""MEPipe's Table 3, the rows of SVPP.

Symbols as in ``mepipe_table3``. The bubble is claimed of the generator that section 4.3 prints, at
tF = tB and by any tie-break, which is every way to break its ties; and then of an order with the
same f (``families.svpp``). Where the durations matter, over every order within f.

Source: Sun et al., "MEPipe" (EuroSys 2025) sections 4.3 and 4.4, Table 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

from bubbleproof.papers.claims.any_order import least_idle_ratio, least_over_ties
from bubbleproof.papers.claims.claim import Claim, Domain, Params, Relation, Value, grid, listed
from bubbleproof.papers.claims.field_schedules import (
    constant,
    idle_ratio,
    made,
    peak_of_a,
    stated,
)
from bubbleproof.papers.claims.mepipe_domains import (
    LONGER,
    fills_groups,
    has_no_inner_slices,
    is_every,
    is_few,
    is_many,
    svpp_scope,
)
from bubbleproof.papers.claims.mepipe_table3 import SOURCE, ratio, row, share_of_n
from bubbleproof.papers.claims.points import Row
from bubbleproof.papers.claims.ranges import RATIOS
from bubbleproof.papers.claims.scope import Scope
from bubbleproof.theory.families.svpp import most_forwards

TIES_MANY = grid(
    "p in 2 3; n <= 4, v in 1 2, s in 1 2 with n v s <= 8; tF:tB = 1:1; n >= p, all tie-breaks",
    where=lambda at: is_many(at) and at["m"] * at["v"] * at["s"] <= 8,
    p=(2, 3), m=range(1, 5), v=(1, 2), s=(1, 2), tF=(1,), tB=(1,),
)  # fmt: skip
TIES_FEW = grid(
    "p in 2 3 4; n <= 3, v in 1 2, s in 1 2 4 with n v s <= 8; tF:tB = 1:1; n < p, all tie-breaks",
    where=lambda at: is_few(at) and at["m"] * at["v"] * at["s"] <= 8,
    p=(2, 3, 4), m=range(1, 4), v=(1, 2), s=(1, 2, 4), tF=(1,), tB=(1,),
)  # fmt: skip
TIMED_MANY = svpp_scope("n >= p", is_many, ratios=RATIOS)
TIMED_FEW = svpp_scope("n < p", is_few, ratios=RATIOS)
GROUPS_MANY = svpp_scope(
    "n >= p; v = 1, s >= p, or p div s divides n", lambda at: is_many(at) and fills_groups(at)
)
GROUPS_FEW = svpp_scope(
    "n < p; v = 1, s >= p, n <= p div s, or p div s divides n",
    lambda at: is_few(at) and fills_groups(at),
)
ORDERS = listed(
    "p in 2 3; n <= 4, v in 1 2, s in 1 2 4 with n v s <= 8; tF:tB in 1:1 1:2 2:1 2:3 3:2 3:5; "
    "v = 1, s >= p, n <= p div s, or p div s divides n; every order",
    ("p", "m", "v", "s", "tF", "tB"),
    lambda: (
        (p, m, v, s, *ticks)
        for p, m, v, s in product((2, 3), range(1, 5), (1, 2), (1, 2, 4))
        if m * v * s <= 8 and fills_groups({"p": p, "m": m, "v": v, "s": s})
        for ticks in RATIOS
    ),
)
ENDS = svpp_scope(
    "tB >= tF; v = 1, s >= p, or s = 1 and n <= p or p divides n",
    has_no_inner_slices,
    ratios=LONGER,
)
UNEQUAL = svpp_scope("every n", is_every, ratios=RATIOS)


def _long(ranks: tuple[int, ...], chunks: tuple[int, ...]) -> Domain:
    """Very many slices, n = 1 and 2; more samples only make the bubble smaller."""

    def rows() -> Iterator[Row]:
        return ((p, m, v, 200 * p, 1, 1) for p, m, v in product(ranks, (1, 2), chunks))

    text = f"p in {' '.join(map(str, ranks))}; n in 1 2; v in {' '.join(map(str, chunks))}; "
    return listed(f"{text}s = 200 p; tF:tB = 1:1", ("p", "m", "v", "s", "tF", "tB"), rows)


LONG = Scope(small=_long((2, 3), (1, 2)), wide=_long((2, 3, 4, 5, 7, 8, 11, 16), (1, 2, 4)))


def svpp_many(at: Params) -> Fraction:
    """(p-1)/(nsv + p-1)."""
    return ratio(at, at["m"] * at["s"] * at["v"])


def svpp_few(at: Params) -> Fraction:
    """(p-1 + (v-1)max(p-sn, 0)) over itself plus nvs."""
    idle = at["p"] - 1 + (at["v"] - 1) * max(at["p"] - at["s"] * at["m"], 0)
    return Fraction(idle, idle + at["m"] * at["v"] * at["s"])


def svpp_bubble(at: Params) -> Fraction:
    """The column that n belongs to."""
    return svpp_many(at) if is_many(at) else svpp_few(at)


def svpp_memory(at: Params) -> Fraction:
    """(v max(p,s) + min(p,s) - 1)/(vsp)."""
    p, v, s = at["p"], at["v"], at["s"]
    return Fraction(v * max(p, s) + min(p, s) - 1, v * s * p)


_ROWS: tuple[Claim, ...] = (
    *(
        claim
        for column, text, formula, every, groups in (
            ("many", "(p-1)/(nsv+p-1)", svpp_many, TIES_MANY, GROUPS_MANY),
            ("few", "x/(x+nvs), x = p-1+(v-1)max(p-sn,0)", svpp_few, TIES_FEW, GROUPS_FEW),
        )
        for claim in (
            row(
                f"svpp.bubble-{column}",
                "SVPP, generated as section 4.3 prints it with some tie-break, has the bubble "
                f"ratio {text}.",
                every,
                formula,
                least_over_ties,
                corrected=f"svpp.bubble-{column}-reached",
                source=f"{SOURCE}, section 4.3",
            ),
            row(
                f"svpp.bubble-{column}-reached",
                f"An order of the same f has the bubble ratio {text} where the samples that share "
                "a bubble come in full groups.",
                groups,
                formula,
                idle_ratio("svpp"),
            ),
        )
    ),
    row(
        "svpp.memory-many",
        "SVPP keeps (v max(p,s) + min(p,s) - 1)/(vsp) A.",
        TIMED_MANY,
        svpp_memory,
        peak_of_a("svpp"),
    ),
    row(
        "svpp.memory-few",
        "SVPP keeps min((v max(p,s) + min(p,s) - 1)/(vsp), n/p) A.",
        TIMED_FEW,
        lambda at: min(svpp_memory(at), share_of_n(at)),
        peak_of_a("svpp"),
    ),
)


def _limit(name: str, statement: str, limit: Value, measured: Value) -> Claim:
    quantity = "idle_ratio" if name == "bubble" else "peak activations over A"
    return stated(
        f"mepipe.table3.svpp-limit.{name}",
        SOURCE,
        statement,
        f"{quantity}, to two decimals",
        LONG,
        limit,
        measured,
        relation=Relation.ABOUT,
        places=2,
    )


CLAIMS: tuple[Claim, ...] = (
    *_ROWS,
    stated(
        "mepipe.table3.svpp.bubble-least",
        "ours, for MEPipe Table 3",
        "No order of ours with the same f idles less than Table 3 says, at any size and durations.",
        "idle_ratio",
        UNEQUAL,
        svpp_bubble,
        idle_ratio("svpp"),
        relation=Relation.AT_LEAST,
    ),
    stated(
        "mepipe.table3.svpp.bubble-durations",
        SOURCE,
        "At any durations some order within f has Table 3's bubble ratio, and none has less, where "
        "the samples that share a bubble come in full groups.",
        "least idle_ratio of any order",
        ORDERS,
        svpp_bubble,
        least_idle_ratio("svpp", room=lambda at: most_forwards(made("svpp", at).pipeline)),
    ),
    stated(
        "mepipe.table3.svpp.bubble-durations-ends",
        "ours, for MEPipe Table 3",
        "Our order has it where tB >= tF and, of these, v = 1, s = 1 or s >= p.",
        "idle_ratio",
        ENDS,
        svpp_bubble,
        idle_ratio("svpp"),
    ),
    _limit(
        "bubble",
        "With ever more slices the bubble vanishes; here 200 p.",
        constant(Fraction(0)),
        idle_ratio("svpp"),
    ),
    _limit(
        "memory",
        "With ever more slices SVPP keeps A/p; here 200 p.",
        lambda at: Fraction(1, at["p"]),
        peak_of_a("svpp"),
    ),
)
