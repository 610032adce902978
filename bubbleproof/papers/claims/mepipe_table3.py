"""MEPipe's Table 3, row by row and column by column.

Symbols: p ranks, m microbatches (the paper's n), v chunks, s slices, A the activations of one
sample through all layers. The table has two columns, n >= p ("many" in the ids) and n < p ("few"),
each with a bubble ratio (our idle_ratio) and the activation memory of the fullest rank, over A.

The table's derivation states neither durations nor that p divides n; its figures draw equal ticks.
Each formula is therefore claimed for any durations first, and where that fails once more with the
condition. Hanayo's order is given for neither, so there the best of all orders on its placement is
measured. SVPP's bubble is claimed of the generator that section 4.3 prints, at tF = tB.

Source: Sun et al., "MEPipe" (EuroSys 2025) section 4.4, Table 3.
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.papers.claims.any_order import least_idle_ratio
from bubbleproof.papers.claims.claim import Claim, Params, Value, grid
from bubbleproof.papers.claims.field_schedules import constant, idle_ratio, peak_of_a, stated
from bubbleproof.papers.claims.mepipe_domains import EQUAL, S, V, divides, is_few, is_many
from bubbleproof.papers.claims.scope import Cases, scope

SOURCE = "MEPipe Table 3"
PLAIN_MANY = scope("n >= p", is_many)
PLAIN_FEW = scope("n < p", is_few)
SLICED_MANY = scope("n >= p", is_many, s=S)
SLICED_FEW = scope("n < p", is_few, s=S)
VPP_MANY = scope("p divides n", divides, v=V)
WAVES_MANY = scope("n >= p", is_many, v=V)
ORDERS_MANY = grid(
    "p = 2; n in 2 3; v in 1 2; tF and tB in 1 2, every order",
    p=(2,), m=(2, 3), v=(1, 2), tF=(1, 2), tB=(1, 2),
)  # fmt: skip
ORDERS_FEW = grid(
    "p = 3; n in 1 2; v in 1 2; tF and tB in 1 2, every order",
    p=(3,), m=(1, 2), v=(1, 2), tF=(1, 2), tB=(1, 2),
)  # fmt: skip
WAVES_DIVIDED = scope("p divides n", divides, v=V, ratios=EQUAL)
WAVES_FEW = scope("n < p", is_few, v=V)
WAVES_FEW_EQUAL = scope("n < p", is_few, v=V, ratios=EQUAL)
WHOLE = constant(Fraction(1))


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
    cases: Cases,
    predicted: Value,
    measured: Value,
    *,
    corrected: str | None = None,
    source: str = SOURCE,
) -> Claim:
    is_bubble = ".bubble" in name
    return stated(
        f"mepipe.table3.{name}",
        source,
        statement,
        "idle_ratio" if is_bubble else "peak activations of the fullest rank over A",
        cases,
        predicted,
        measured,
        corrected=None if corrected is None else f"mepipe.table3.{corrected}",
    )


_BASELINES: tuple[Claim, ...] = (
    *(
        row(
            f"dapple.bubble-{column}",
            "DAPPLE's bubble ratio is (p-1)/(p-1+n).",
            cases,
            lambda at: ratio(at, at["m"]),
            idle_ratio("1f1b"),
        )
        for column, cases in (("many", PLAIN_MANY), ("few", PLAIN_FEW))
    ),
    row("dapple.memory-many", "DAPPLE keeps A.", PLAIN_MANY, WHOLE, peak_of_a("1f1b")),
    row("dapple.memory-few", "DAPPLE keeps n/p A.", PLAIN_FEW, share_of_n, peak_of_a("1f1b")),
    row(
        "vpp.bubble-many",
        "VPP's bubble ratio is (p-1)/(p-1+nv); VPP needs p to divide n.",
        VPP_MANY,
        lambda at: ratio(at, at["m"] * at["v"]),
        idle_ratio("interleaved"),
    ),
    row(
        "vpp.memory-many",
        "VPP keeps min(1 + (p-1)/(pv), n/(vp)) A.",
        VPP_MANY,
        lambda at: vpp_memory(at, Fraction(at["m"], at["v"] * at["p"])),
        peak_of_a("interleaved"),
        corrected="vpp.memory-corrected",
    ),
    row(
        "vpp.memory-corrected",
        "VPP keeps min(1 + (p-1)/(pv), n/p) A: n samples on v of vp chunks are n/p A.",
        VPP_MANY,
        lambda at: vpp_memory(at, share_of_n(at)),
        peak_of_a("interleaved"),
        source="ours, for MEPipe Table 3",
    ),
    row(
        "hanayo.bubble-many",
        "On Hanayo's placement some order has the bubble ratio (p-1)/(p-1+nv), at any durations "
        "and any n >= p.",
        ORDERS_MANY,
        lambda at: ratio(at, at["m"] * at["v"]),
        least_idle_ratio("hanayo"),
        corrected="hanayo.bubble-divided",
    ),
    row(
        "hanayo.bubble-divided",
        "Hanayo's bubble ratio is (p-1)/(p-1+nv) at tF = tB where p divides n.",
        WAVES_DIVIDED,
        lambda at: ratio(at, at["m"] * at["v"]),
        idle_ratio("hanayo"),
    ),
    row("hanayo.memory-many", "Hanayo keeps A.", WAVES_MANY, WHOLE, peak_of_a("hanayo")),
    row(
        "hanayo.bubble-few",
        "On Hanayo's placement some order has the bubble ratio (vp+n-1-nv)/(vp+n-1), at any "
        "durations.",
        ORDERS_FEW,
        hanayo_few,
        least_idle_ratio("hanayo"),
        corrected="hanayo.bubble-few-equal",
    ),
    row(
        "hanayo.bubble-few-equal",
        "Hanayo's bubble ratio is (vp+n-1-nv)/(vp+n-1) at tF = tB.",
        WAVES_FEW_EQUAL,
        hanayo_few,
        idle_ratio("hanayo"),
    ),
    row("hanayo.memory-few", "Hanayo keeps n/p A.", WAVES_FEW, share_of_n, peak_of_a("hanayo")),
)

_SLICED: tuple[Claim, ...] = (
    *(
        claim
        for column, cases in (("many", SLICED_MANY), ("few", SLICED_FEW))
        for claim in (
            row(
                f"terapipe.bubble-{column}",
                "TeraPipe's bubble ratio is (p-1)/(ns+p-1).",
                cases,
                lambda at: ratio(at, at["m"] * at["s"]),
                idle_ratio("terapipe"),
            ),
            row(
                f"terapipe.memory-{column}",
                "TeraPipe keeps n/p A.",
                cases,
                share_of_n,
                peak_of_a("terapipe"),
            ),
        )
    ),
)

CLAIMS: tuple[Claim, ...] = (*_BASELINES, *_SLICED)
