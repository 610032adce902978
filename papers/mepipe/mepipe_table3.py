"""MEPipe's Table 3, row by row and column by column.

Symbols: p ranks, m microbatches (the paper's n), v chunks, s slices, A the activations of one
sample through all layers. The table has two columns, n >= p ("many" in the ids) and n < p ("few"),
each with a bubble ratio (our idle_ratio) and the activation memory of the fullest rank, over A.

The figures draw equal ticks, and section 5 assumes them; the table names no durations. Where they
matter a cell is read at equal ticks first and at any durations beside. SVPP's bubble is that of the
version with the lowest, so the best of all orders within f is measured, and beside it what the
generator gives that section 4.3 prints, by any tie-break; then an order of ours with the same f
(``families.svpp``). Where the durations matter, over every order within f.

Source: Sun et al., "MEPipe" (EuroSys 2025) sections 4.3 and 4.4, Table 3.
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.papers.claims.any_order import least_idle_ratio, least_over_ties
from bubbleproof.papers.claims.claim import PaperClaim, read_as, reading, stated
from bubbleproof.papers.claims.domain import (
    RANKS,
    RATIOS,
    Choice,
    Domain,
    Params,
    Values,
    Words,
    among,
    domain,
    scope,
    worded,
)
from bubbleproof.papers.claims.measured_pipelines import idle_ratio, made, peak_of_a
from bubbleproof.papers.claims.reading import EQUAL_TICKS, NumberOf
from bubbleproof.papers.mepipe.mepipe_domains import (
    EQUAL,
    FILLS_GROUPS,
    HAS_NO_INNER_SLICES,
    LONGER,
    S,
    V,
    svpp_scope,
)
from bubbleproof.theory.families.svpp import most_forwards

SOURCE = "Table 3"
PLAIN_MANY = scope("n >= p", "m >= p")
PLAIN_FEW = scope("n < p", "m < p")
SLICED_MANY = scope("n >= p", "m >= p", s=S)
SLICED_FEW = scope("n < p", "m < p", s=S)
VPP_MANY = scope("p divides n", "m % p == 0", v=V)
WAVES_MANY = scope("n >= p", "m >= p", v=V)
ORDERS_MANY = domain(
    "p = 2; n in 2 3; v in 1 2; tF and tB in 1 2, every order",
    p=(2,),
    m=(2, 3),
    v=(1, 2),
    tF=(1, 2),
    tB=(1, 2),
)
ORDERS_FEW = domain(
    "p = 3; n in 1 2; v in 1 2; tF and tB in 1 2, every order",
    p=(3,),
    m=(1, 2),
    v=(1, 2),
    tF=(1, 2),
    tB=(1, 2),
)
WAVES_MANY_EQUAL = scope("n >= p", "m >= p", ranks=((2, 3, 4), RANKS), v=V, ratios=EQUAL)
WAVES_FEW = scope("n < p", "m < p", v=V)
WAVES_FEW_EQUAL = scope("n < p", "m < p", v=V, ratios=EQUAL)


HANAYO_FEW = "(v*p + m-1 - m*v)/(v*p + m-1)"
VPP_BUBBLE, VPP_MEMORY = "(p-1)/(p-1 + m*v)", "1 + (p-1)/(p*v)"


def row(
    name: str,
    statement: str,
    measured: NumberOf,
    predicted: str | int,
    cases: Domain,
    corrected: str | None = None,
    source: str = SOURCE,
) -> PaperClaim:
    """A cell of the table: a bubble ratio, or the activations of the fullest rank over A."""
    is_bubble = ".bubble" in name
    quantity = "idle_ratio" if is_bubble else "peak activations of the fullest rank over A"
    corrected = None if corrected is None else f"table3.{corrected}"
    name = f"mepipe.table3.{name}"
    return stated(name, source, statement, quantity, measured, "==", predicted, cases, corrected)


def _hanayo(column: str, text: str, formula: str, equal: Domain, every: Domain) -> PaperClaim:
    """Hanayo's bubble ratio: of its order at equal ticks, and of every order at any durations."""
    return read_as(
        f"mepipe.table3.hanayo.bubble-{column}", SOURCE, f"Hanayo's bubble ratio is {text}.",
        "idle_ratio", (
            reading("at equal ticks", "Table 3's figures draw them; section 5 assumes them, too",
                    idle_ratio("hanayo"), "==", formula, equal, [EQUAL_TICKS]),
            reading("some order on its placement, at any durations", "Table 3 by itself",
                    least_idle_ratio("hanayo"), "==", formula, every),
        ))  # fmt: skip


_BASELINES: tuple[PaperClaim, ...] = (
    *(
        row(f"dapple.bubble-{column}", "DAPPLE's bubble ratio is (p-1)/(p-1+n).",
            idle_ratio("1f1b"), "(p-1)/(p-1+m)", cases)
        for column, cases in (("many", PLAIN_MANY), ("few", PLAIN_FEW))
    ),
    row("dapple.memory-many", "DAPPLE keeps A.", peak_of_a("1f1b"), 1, PLAIN_MANY),
    row("dapple.memory-few", "DAPPLE keeps n/p A.", peak_of_a("1f1b"), "m/p", PLAIN_FEW),
    row("vpp.bubble-many", "VPP's bubble ratio is (p-1)/(p-1+nv); VPP needs p to divide n.",
        idle_ratio("interleaved"), VPP_BUBBLE, VPP_MANY),
    row("vpp.memory-many", "VPP keeps min(1 + (p-1)/(pv), n/(vp)) A.", peak_of_a("interleaved"),
        f"min({VPP_MEMORY}, m/(v*p))", VPP_MANY, "vpp.memory-corrected"),
    row("vpp.memory-corrected",
        "VPP keeps min(1 + (p-1)/(pv), n/p) A: n samples on v of vp chunks are n/p A.",
        peak_of_a("interleaved"), f"min({VPP_MEMORY}, m/p)", VPP_MANY,
        source="ours, for MEPipe Table 3"),
    _hanayo("many", "(p-1)/(p-1+nv)", VPP_BUBBLE, WAVES_MANY_EQUAL, ORDERS_MANY),
    row("hanayo.memory-many", "Hanayo keeps A.", peak_of_a("hanayo"), 1, WAVES_MANY),
    _hanayo("few", "(vp+n-1-nv)/(vp+n-1)", HANAYO_FEW, WAVES_FEW_EQUAL, ORDERS_FEW),
    row("hanayo.memory-few", "Hanayo keeps n/p A.", peak_of_a("hanayo"), "m/p", WAVES_FEW),
)  # fmt: skip

_SLICED: tuple[PaperClaim, ...] = (
    *(
        claim
        for column, cases in (("many", SLICED_MANY), ("few", SLICED_FEW))
        for claim in (
            row(
                f"terapipe.bubble-{column}",
                "TeraPipe's bubble ratio is (p-1)/(ns+p-1).",
                idle_ratio("terapipe"),
                "(p-1)/(m*s + p-1)",
                cases,
            ),
            row(
                f"terapipe.memory-{column}",
                "TeraPipe keeps n/p A.",
                peak_of_a("terapipe"),
                "m/p",
                cases,
            ),
        )
    ),
)


_FEWEST: dict[str, tuple[str, str, dict[str, Values]]] = {
    "many": (
        "p in 2 3; n <= 4, v in 1 2, s in 1 2 with n v s <= 8; tF:tB = 1:1; n >= p",
        "m >= p and m*v*s <= 8",
        {"p": (2, 3), "m": range(1, 5), "s": (1, 2)},
    ),
    "few": (
        "p in 2 3 4; n <= 3, v in 1 2, s in 1 2 4 with n v s <= 8; tF:tB = 1:1; n < p",
        "m < p and m*v*s <= 8",
        {"p": (2, 3, 4), "m": range(1, 4), "s": (1, 2, 4)},
    ),
}


def _small(column: str, over: str) -> Domain:
    """Sizes at which all orders, or all tie-breaks, can be looked at."""
    text, where, columns = _FEWEST[column]
    every: dict[str, Choice] = {
        "p": columns["p"],
        "m": columns["m"],
        "v": (1, 2),
        "s": columns["s"],
        "tF": (1,),
        "tB": (1,),
    }
    return domain(f"{text}, {over}", every, where=where)


TIES_MANY, TIES_FEW = (_small(column, "all tie-breaks") for column in ("many", "few"))
EVERY_MANY, EVERY_FEW = (_small(column, "every order") for column in ("many", "few"))
LEAST_WITHIN_F = least_idle_ratio("svpp", room=lambda at: most_forwards(made("svpp", at).pipeline))
TIMED_MANY = svpp_scope("n >= p", "m >= p", ratios=RATIOS)
TIMED_FEW = svpp_scope("n < p", "m < p", ratios=RATIOS)
GROUPS_MANY = svpp_scope(
    "n >= p; v = 1, s >= p, or p div s divides n", f"m >= p and {FILLS_GROUPS}"
)
GROUPS_FEW = svpp_scope(
    "n < p; v = 1, s >= p, n <= p div s, or p div s divides n", f"m < p and {FILLS_GROUPS}"
)
ORDERS = domain(
    "p in 2 3; n <= 4, v in 1 2, s in 1 2 4 with n v s <= 8; tF:tB in 1:1 1:2 2:1 2:3 3:2 3:5; "
    "v = 1, s >= p, n <= p div s, or p div s divides n; every order",
    where=f"m*v*s <= 8 and {FILLS_GROUPS}",
    p=(2, 3),
    m=range(1, 5),
    v=(1, 2),
    s=(1, 2, 4),
    tF_tB=RATIOS,
)
ENDS = svpp_scope(
    "tB >= tF; v = 1, s >= p, or s = 1 and n <= p or p divides n",
    HAS_NO_INNER_SLICES,
    ratios=LONGER,
)
UNEQUAL = svpp_scope("every n", "True", ratios=RATIOS)


_LONG: dict[str, Words] = {
    "p": among("p", (2, 3)),
    "m": among("n", (1, 2)),  # more samples only make the bubble smaller
    "v": among("v", (1, 2)),
    "s": ("s = 200 p", "(200*p,)"),
    "tF_tB": ("", EQUAL),
}
_LONGER = {"p": among("p", (2, 3, 4, 5, 7, 8, 11, 16)), "v": among("v", (1, 2, 4))}
LONG = worded(_LONG, "tF:tB = 1:1", wider=_LONGER)
SVPP_MANY = "(p-1)/(m*s*v + p-1)"
_IDLE = "(p-1 + (v-1)*max(p - s*m, 0))"
SVPP_FEW = f"{_IDLE}/({_IDLE} + m*v*s)"
SVPP_BUBBLE = f"{SVPP_MANY} if m >= p else {SVPP_FEW}"  # the column that n belongs to
SVPP_MEMORY = "(v*max(p, s) + min(p, s) - 1)/(v*s*p)"


def better_of_both(at: Params) -> Fraction:
    """The idle ratio of section 4.3's generator, rescheduled by its best tie-break or not."""
    return min(least_over_ties(at), idle_ratio("svpp-filled")(at))


def _svpp(column: str, text: str, formula: str, every: Domain, ties: Domain) -> PaperClaim:
    """SVPP's bubble ratio: of the best order within f, and of section 4.3's generator."""
    return read_as(
        f"mepipe.table3.svpp.bubble-{column}", f"{SOURCE}, section 4.3",
        f"SVPP has the bubble ratio {text}.", "idle_ratio", (
            reading("some order within f", "section 4.4: the version of the lowest bubble ratio",
                    LEAST_WITHIN_F, "==", formula, every, [EQUAL_TICKS]),
            reading("section 4.3's generator, rescheduled or not", "section 4.3: the schedule can "
                    "be further optimized by rescheduling", better_of_both, "==", formula, ties,
                    [EQUAL_TICKS]),
            reading("section 4.3's generator, always rescheduled", "section 4.3 by its last step",
                    least_over_ties, "==", formula, ties, [EQUAL_TICKS]),
        ))  # fmt: skip


_SVPP: tuple[PaperClaim, ...] = (
    *(
        claim
        for column, text, formula, every, ties, groups in (
            ("many", "(p-1)/(nsv+p-1)", SVPP_MANY, EVERY_MANY, TIES_MANY, GROUPS_MANY),
            (
                "few",
                "x/(x+nvs), x = p-1+(v-1)max(p-sn,0)",
                SVPP_FEW,
                EVERY_FEW,
                TIES_FEW,
                GROUPS_FEW,
            ),
        )
        for claim in (
            _svpp(column, text, formula, every, ties),
            row(
                f"svpp.bubble-{column}-reached",
                f"An order of the same f has the bubble ratio {text} where the samples that share "
                "a bubble come in full groups.",
                idle_ratio("svpp"),
                formula,
                groups,
                source="ours, for MEPipe Table 3",
            ),
        )
    ),
    row(
        "svpp.memory-many",
        "SVPP keeps (v max(p,s) + min(p,s) - 1)/(vsp) A.",
        peak_of_a("svpp"),
        SVPP_MEMORY,
        TIMED_MANY,
    ),
    row(
        "svpp.memory-few",
        "SVPP keeps min((v max(p,s) + min(p,s) - 1)/(vsp), n/p) A.",
        peak_of_a("svpp"),
        f"min({SVPP_MEMORY}, m/p)",
        TIMED_FEW,
    ),
)


CLAIMS: tuple[PaperClaim, ...] = (
    *_BASELINES,
    *_SLICED,
    *_SVPP,
    stated("mepipe.table3.svpp.bubble-least", "ours, for MEPipe Table 3",
           "No order of ours with the same f idles less than Table 3 says, at any size and "
           "durations.", "idle_ratio", idle_ratio("svpp"), ">=", SVPP_BUBBLE, UNEQUAL),
    stated("mepipe.table3.svpp.bubble-durations", SOURCE,
           "At any durations some order within f has Table 3's bubble ratio, and none has less, "
           "where the samples that share a bubble come in full groups.",
           "least idle_ratio of any order",
           LEAST_WITHIN_F, "==", SVPP_BUBBLE, ORDERS),
    stated("mepipe.table3.svpp.bubble-durations-ends", "ours, for MEPipe Table 3",
           "Our order has it where tB >= tF and, of these, v = 1, s = 1 or s >= p.", "idle_ratio",
           idle_ratio("svpp"), "==", SVPP_BUBBLE, ENDS),
    stated("mepipe.table3.svpp-limit.bubble", SOURCE,
           "With ever more slices the bubble vanishes; here 200 p.", "idle_ratio, to two decimals",
           idle_ratio("svpp"), "~2", 0, LONG),
    stated("mepipe.table3.svpp-limit.memory", SOURCE,
           "With ever more slices SVPP keeps A/p; here 200 p.",
           "peak activations over A, to two decimals", peak_of_a("svpp"), "~2", "1/p", LONG),
)  # fmt: skip
