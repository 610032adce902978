"""MEPipe's Table 3, row by row and column by column.

Symbols: p ranks, m microbatches (the paper's n), v chunks, s slices, A the activations of one
sample through all layers. The table has two columns, n >= p ("many" in the ids) and n < p ("few"),
each with a bubble ratio (our idle_ratio) and the activation memory of the fullest rank, over A.

The table's derivation states neither durations nor that p divides n; its figures draw equal ticks.
Each formula is therefore claimed for any durations first, and where that fails once more with the
condition. Hanayo's order is given for neither, so there the best of all orders on its placement is
measured. SVPP's bubble is claimed of the generator that section 4.3 prints, at tF = tB and by any
tie-break, which is every way to break its ties; and then of an order with the same f
(``families.svpp``). Where the durations matter, over every order within f.

Source: Sun et al., "MEPipe" (EuroSys 2025) sections 4.3 and 4.4, Table 3.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from bubbleproof.papers.claims.any_order import least_idle_ratio, least_over_ties
from bubbleproof.papers.claims.claim import Claim, Value, stated
from bubbleproof.papers.claims.domain import (
    RATIOS,
    Domain,
    Params,
    Words,
    among,
    divides,
    domain,
    is_any,
    is_filled,
    scope,
    worded,
)
from bubbleproof.papers.claims.measured_pipelines import idle_ratio, made, peak_of_a
from bubbleproof.papers.claims.mepipe_domains import (
    EQUAL,
    LONGER,
    S,
    V,
    fills_groups,
    has_no_inner_slices,
    is_few,
    svpp_scope,
)
from bubbleproof.theory.families.svpp import most_forwards

SOURCE = "Table 3"
PLAIN_MANY = scope("n >= p", is_filled)
PLAIN_FEW = scope("n < p", is_few)
SLICED_MANY = scope("n >= p", is_filled, s=S)
SLICED_FEW = scope("n < p", is_few, s=S)
VPP_MANY = scope("p divides n", divides, v=V)
WAVES_MANY = scope("n >= p", is_filled, v=V)
ORDERS_MANY = domain(
    "p = 2; n in 2 3; v in 1 2; tF and tB in 1 2, every order",
    p=(2,), m=(2, 3), v=(1, 2), tF=(1, 2), tB=(1, 2),
)  # fmt: skip
ORDERS_FEW = domain(
    "p = 3; n in 1 2; v in 1 2; tF and tB in 1 2, every order",
    p=(3,), m=(1, 2), v=(1, 2), tF=(1, 2), tB=(1, 2),
)  # fmt: skip
WAVES_DIVIDED = scope("p divides n", divides, v=V, ratios=EQUAL)
WAVES_FEW = scope("n < p", is_few, v=V)
WAVES_FEW_EQUAL = scope("n < p", is_few, v=V, ratios=EQUAL)


def ratio(at: Params, slots: int) -> Fraction:
    """idle/(idle + work) for a work of ``slots``, and p-1 idle."""
    return Fraction(at["p"] - 1, at["p"] - 1 + slots)


def share_of_n(at: Params) -> Fraction:
    """n/p."""
    return Fraction(at["m"], at["p"])


def hanayo_few(at: Params) -> Fraction:
    """(vp + n-1 - nv)/(vp + n-1)."""
    slots = at["v"] * at["p"] + at["m"] - 1
    return Fraction(slots - at["m"] * at["v"], slots)


def vpp_memory(at: Params, last: Fraction) -> Fraction:
    """min(1 + (p-1)/(pv), last)."""
    return min(1 + Fraction(at["p"] - 1, at["p"] * at["v"]), last)


def row(
    name: str,
    statement: str,
    measured: Value,
    predicted: Value | int,
    cases: Domain,
    corrected: str | None = None,
    source: str = SOURCE,
) -> Claim:
    """A cell of the table: a bubble ratio, or the activations of the fullest rank over A."""
    is_bubble = ".bubble" in name
    quantity = "idle_ratio" if is_bubble else "peak activations of the fullest rank over A"
    corrected = None if corrected is None else f"table3.{corrected}"
    name = f"mepipe.table3.{name}"
    return stated(name, source, statement, quantity, measured, "==", predicted, cases, corrected)


_BASELINES: tuple[Claim, ...] = (
    *(
        row(f"dapple.bubble-{column}", "DAPPLE's bubble ratio is (p-1)/(p-1+n).",
            idle_ratio("1f1b"), lambda at: ratio(at, at["m"]), cases)
        for column, cases in (("many", PLAIN_MANY), ("few", PLAIN_FEW))
    ),
    row("dapple.memory-many", "DAPPLE keeps A.", peak_of_a("1f1b"), 1, PLAIN_MANY),
    row("dapple.memory-few", "DAPPLE keeps n/p A.", peak_of_a("1f1b"), share_of_n, PLAIN_FEW),
    row("vpp.bubble-many", "VPP's bubble ratio is (p-1)/(p-1+nv); VPP needs p to divide n.",
        idle_ratio("interleaved"), lambda at: ratio(at, at["m"] * at["v"]), VPP_MANY),
    row("vpp.memory-many", "VPP keeps min(1 + (p-1)/(pv), n/(vp)) A.", peak_of_a("interleaved"),
        lambda at: vpp_memory(at, Fraction(at["m"], at["v"] * at["p"])), VPP_MANY,
        "vpp.memory-corrected"),
    row("vpp.memory-corrected",
        "VPP keeps min(1 + (p-1)/(pv), n/p) A: n samples on v of vp chunks are n/p A.",
        peak_of_a("interleaved"), lambda at: vpp_memory(at, share_of_n(at)), VPP_MANY,
        source="ours, for MEPipe Table 3"),
    row("hanayo.bubble-many",
        "On Hanayo's placement some order has the bubble ratio (p-1)/(p-1+nv), at any durations "
        "and any n >= p.", least_idle_ratio("hanayo"), lambda at: ratio(at, at["m"] * at["v"]),
        ORDERS_MANY, "hanayo.bubble-divided"),
    row("hanayo.bubble-divided",
        "Hanayo's bubble ratio is (p-1)/(p-1+nv) at tF = tB where p divides n.",
        idle_ratio("hanayo"), lambda at: ratio(at, at["m"] * at["v"]), WAVES_DIVIDED),
    row("hanayo.memory-many", "Hanayo keeps A.", peak_of_a("hanayo"), 1, WAVES_MANY),
    row("hanayo.bubble-few",
        "On Hanayo's placement some order has the bubble ratio (vp+n-1-nv)/(vp+n-1), at any "
        "durations.", least_idle_ratio("hanayo"), hanayo_few, ORDERS_FEW,
        "hanayo.bubble-few-equal"),
    row("hanayo.bubble-few-equal", "Hanayo's bubble ratio is (vp+n-1-nv)/(vp+n-1) at tF = tB.",
        idle_ratio("hanayo"), hanayo_few, WAVES_FEW_EQUAL),
    row("hanayo.memory-few", "Hanayo keeps n/p A.", peak_of_a("hanayo"), share_of_n, WAVES_FEW),
)  # fmt: skip

_SLICED: tuple[Claim, ...] = (
    *(
        claim
        for column, cases in (("many", SLICED_MANY), ("few", SLICED_FEW))
        for claim in (
            row(f"terapipe.bubble-{column}", "TeraPipe's bubble ratio is (p-1)/(ns+p-1).",
                idle_ratio("terapipe"), lambda at: ratio(at, at["m"] * at["s"]), cases),
            row(f"terapipe.memory-{column}", "TeraPipe keeps n/p A.", peak_of_a("terapipe"),
                share_of_n, cases),
        )
    ),
)  # fmt: skip


TIES_MANY = domain(
    "p in 2 3; n <= 4, v in 1 2, s in 1 2 with n v s <= 8; tF:tB = 1:1; n >= p, all tie-breaks",
    where=lambda at: is_filled(at) and at["m"] * at["v"] * at["s"] <= 8,
    p=(2, 3), m=range(1, 5), v=(1, 2), s=(1, 2), tF=(1,), tB=(1,),
)  # fmt: skip
TIES_FEW = domain(
    "p in 2 3 4; n <= 3, v in 1 2, s in 1 2 4 with n v s <= 8; tF:tB = 1:1; n < p, all tie-breaks",
    where=lambda at: is_few(at) and at["m"] * at["v"] * at["s"] <= 8,
    p=(2, 3, 4), m=range(1, 4), v=(1, 2), s=(1, 2, 4), tF=(1,), tB=(1,),
)  # fmt: skip
TIMED_MANY = svpp_scope("n >= p", is_filled, ratios=RATIOS)
TIMED_FEW = svpp_scope("n < p", is_few, ratios=RATIOS)
GROUPS_MANY = svpp_scope(
    "n >= p; v = 1, s >= p, or p div s divides n", lambda at: is_filled(at) and fills_groups(at)
)
GROUPS_FEW = svpp_scope(
    "n < p; v = 1, s >= p, n <= p div s, or p div s divides n",
    lambda at: is_few(at) and fills_groups(at),
)
ORDERS = domain(
    "p in 2 3; n <= 4, v in 1 2, s in 1 2 4 with n v s <= 8; tF:tB in 1:1 1:2 2:1 2:3 3:2 3:5; "
    "v = 1, s >= p, n <= p div s, or p div s divides n; every order",
    where=lambda at: at["m"] * at["v"] * at["s"] <= 8 and fills_groups(at),
    p=(2, 3), m=range(1, 5), v=(1, 2), s=(1, 2, 4), tF_tB=RATIOS,
)  # fmt: skip
ENDS = svpp_scope(
    "tB >= tF; v = 1, s >= p, or s = 1 and n <= p or p divides n",
    has_no_inner_slices,
    ratios=LONGER,
)
UNEQUAL = svpp_scope("every n", is_any, ratios=RATIOS)


def _long(ranks: Iterable[int], chunks: Iterable[int], wide: Domain | None = None) -> Domain:
    """Very many slices, n = 1 and 2; more samples only make the bubble smaller."""
    parts: dict[str, Words] = {
        "p": among("p", ranks),
        "m": among("n", (1, 2)),
        "v": among("v", chunks),
        "s": ("s = 200 p", lambda at: (200 * at["p"],)),
        "tF_tB": ("", EQUAL),
    }
    return worded(parts, "tF:tB = 1:1", wide=wide)


LONG = _long((2, 3), (1, 2), _long((2, 3, 4, 5, 7, 8, 11, 16), (1, 2, 4)))


def svpp_many(at: Params) -> Fraction:
    """(p-1)/(nsv + p-1)."""
    return ratio(at, at["m"] * at["s"] * at["v"])


def svpp_few(at: Params) -> Fraction:
    """(p-1 + (v-1)max(p-sn, 0)) over itself plus nvs."""
    idle = at["p"] - 1 + (at["v"] - 1) * max(at["p"] - at["s"] * at["m"], 0)
    return Fraction(idle, idle + at["m"] * at["v"] * at["s"])


def svpp_bubble(at: Params) -> Fraction:
    """The column that n belongs to."""
    return svpp_many(at) if is_filled(at) else svpp_few(at)


def svpp_memory(at: Params) -> Fraction:
    """(v max(p,s) + min(p,s) - 1)/(vsp)."""
    p, v, s = at["p"], at["v"], at["s"]
    return Fraction(v * max(p, s) + min(p, s) - 1, v * s * p)


_SVPP: tuple[Claim, ...] = (
    *(
        claim
        for column, text, formula, every, groups in (
            ("many", "(p-1)/(nsv+p-1)", svpp_many, TIES_MANY, GROUPS_MANY),
            ("few", "x/(x+nvs), x = p-1+(v-1)max(p-sn,0)", svpp_few, TIES_FEW, GROUPS_FEW),
        )
        for claim in (
            row(f"svpp.bubble-{column}",
                "SVPP, generated as section 4.3 prints it with some tie-break, has the bubble "
                f"ratio {text}.", least_over_ties, formula, every, f"svpp.bubble-{column}-reached",
                source=f"{SOURCE}, section 4.3"),
            row(f"svpp.bubble-{column}-reached",
                f"An order of the same f has the bubble ratio {text} where the samples that share "
                "a bubble come in full groups.", idle_ratio("svpp"), formula, groups),
        )
    ),
    row("svpp.memory-many", "SVPP keeps (v max(p,s) + min(p,s) - 1)/(vsp) A.", peak_of_a("svpp"),
        svpp_memory, TIMED_MANY),
    row("svpp.memory-few", "SVPP keeps min((v max(p,s) + min(p,s) - 1)/(vsp), n/p) A.",
        peak_of_a("svpp"), lambda at: min(svpp_memory(at), share_of_n(at)), TIMED_FEW),
)  # fmt: skip


CLAIMS: tuple[Claim, ...] = (
    *_BASELINES,
    *_SLICED,
    *_SVPP,
    stated("mepipe.table3.svpp.bubble-least", "ours, for MEPipe Table 3",
           "No order of ours with the same f idles less than Table 3 says, at any size and "
           "durations.", "idle_ratio", idle_ratio("svpp"), ">=", svpp_bubble, UNEQUAL),
    stated("mepipe.table3.svpp.bubble-durations", SOURCE,
           "At any durations some order within f has Table 3's bubble ratio, and none has less, "
           "where the samples that share a bubble come in full groups.",
           "least idle_ratio of any order",
           least_idle_ratio("svpp", room=lambda at: most_forwards(made("svpp", at).pipeline)), "==",
           svpp_bubble, ORDERS),
    stated("mepipe.table3.svpp.bubble-durations-ends", "ours, for MEPipe Table 3",
           "Our order has it where tB >= tF and, of these, v = 1, s = 1 or s >= p.", "idle_ratio",
           idle_ratio("svpp"), "==", svpp_bubble, ENDS),
    stated("mepipe.table3.svpp-limit.bubble", SOURCE,
           "With ever more slices the bubble vanishes; here 200 p.", "idle_ratio, to two decimals",
           idle_ratio("svpp"), "~2", 0, LONG),
    stated("mepipe.table3.svpp-limit.memory", SOURCE,
           "With ever more slices SVPP keeps A/p; here 200 p.",
           "peak activations over A, to two decimals", peak_of_a("svpp"), "~2",
           lambda at: Fraction(1, at["p"]), LONG),
)  # fmt: skip
