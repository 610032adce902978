"""MEPipe's Table 3, the rows of SVPP.

Symbols as in ``mepipe_table3``. The bubble is claimed of the generator that section 4.3 prints, at
tF = tB, and then of an order with the same f (``families.svpp``).

Source: Sun et al., "MEPipe" (EuroSys 2025) sections 4.3 and 4.4, Table 3.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from bubbleproof.theory.claims.claim import Claim, Domain, Params, Relation, Value
from bubbleproof.theory.claims.field_schedules import (
    EQUAL_TICKS,
    FULL_TICKS,
    constant,
    idle_ratio,
    peak_of_a,
    shapes,
    stated,
)
from bubbleproof.theory.claims.mepipe_schedules import printed_idle_ratio
from bubbleproof.theory.claims.mepipe_table3 import (
    SLICES,
    SOURCE,
    is_few,
    is_many,
    ratio,
    row,
    share_of_n,
)


def fills_groups(at: Params) -> bool:
    """v = 1, s >= p, or the samples that share a bubble, p div s, divide m or are not fewer."""
    group = max(1, at["p"] // at["s"])
    return at["v"] == 1 or at["s"] >= at["p"] or at["m"] <= group or at["m"] % group == 0


MANY_RANKS = (1, 2, 3, 4, 5)
FEW_RANKS = (1, 2, 3, 4, 5, 6, 7, 8)


def svpp_domain(text: str, keeps: Callable[[Params], bool], ranks: tuple[int, ...]) -> Domain:
    return shapes(text, keeps, ranks=ranks, v=(1, 2, 3), s=SLICES, ticks=EQUAL_TICKS)


SVPP_MANY = svpp_domain("n >= p", is_many, MANY_RANKS)
SVPP_FEW = svpp_domain("n < p", is_few, FEW_RANKS)
GROUPS_MANY = svpp_domain(
    "n >= p; v = 1, s >= p, or p div s divides n",
    lambda at: is_many(at) and fills_groups(at),
    MANY_RANKS,
)
GROUPS_FEW = svpp_domain(
    "n < p; v = 1, s >= p, n <= p div s, or p div s divides n",
    lambda at: is_few(at) and fills_groups(at),
    FEW_RANKS,
)
UNEQUAL = shapes(ranks=(1, 2, 3, 4), v=(1, 2, 3), s=(1, 2, 3, 5), ticks=FULL_TICKS[:3])
LONG = shapes("every p, m, v here", ranks=(1, 2), v=(1, 2), s=(250,), ticks=EQUAL_TICKS)


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
            ("many", "(p-1)/(nsv+p-1)", svpp_many, SVPP_MANY, GROUPS_MANY),
            ("few", "x/(x+nvs), x = p-1+(v-1)max(p-sn,0)", svpp_few, SVPP_FEW, GROUPS_FEW),
        )
        for claim in (
            row(
                f"svpp.bubble-{column}",
                f"SVPP, generated as section 4.3 prints it, has the bubble ratio {text}.",
                every,
                formula,
                printed_idle_ratio,
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
        SVPP_MANY,
        svpp_memory,
        peak_of_a("svpp"),
    ),
    row(
        "svpp.memory-few",
        "SVPP keeps min((v max(p,s) + min(p,s) - 1)/(vsp), n/p) A.",
        SVPP_FEW,
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
    _limit(
        "bubble",
        "With ever more slices the bubble vanishes; here 250.",
        constant(Fraction(0)),
        idle_ratio("svpp"),
    ),
    _limit(
        "memory",
        "With ever more slices SVPP keeps A/p; here 250.",
        lambda at: Fraction(1, at["p"]),
        peak_of_a("svpp"),
    ),
)
