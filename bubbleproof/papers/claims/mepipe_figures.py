"""What MEPipe's Figures 1, 4, 5 and 6 show of SVPP.

Symbols: p ranks, m microbatches (the paper's n), v chunks, s slices, f forwards before the first
backward, A the activations of one sample. The figures draw equal ticks, and so do we.

Source: Sun et al., "MEPipe" (EuroSys 2025) sections 1 and 4.
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.papers.claims.any_order import (
    least_idle_ratio,
    least_over_ties,
    most_over_ties,
    peak_over_ties,
)
from bubbleproof.papers.claims.claim import Claim, Domain, Params, Relation, grid
from bubbleproof.papers.claims.field_schedules import (
    constant,
    idle_ratio,
    peak,
    peak_of_a,
    stated,
)


def case(text: str, **values: int) -> Domain:
    """One case."""
    return Domain(text=text, points=(values,))


FIGURE_4A = case("p=4, n=4, s=2", p=4, m=4, v=1, s=2, tF=1, tB=1)
FIGURE_4B = case("p=4, n=4, s=2, v=2", p=4, m=4, v=2, s=2, tF=1, tB=1)
FIGURE_5 = case("p=4, n=2, s=2, v=2", p=4, m=2, v=2, s=2, tF=1, tB=1)
FIGURE_1 = grid("p=8, v=2, n=8, s of 4 and 8", p=(8,), m=(8,), v=(2,), s=(4, 8), tF=(1,), tB=(1,))


def reduction(at: Params) -> Fraction:
    """By how much SVPP's peak over A is below the least of DAPPLE, VPP and Hanayo."""
    others = min(peak_of_a(name)(at) for name in ("1f1b", "interleaved", "hanayo"))
    return 1 - peak_of_a("svpp")(at) / others


def memory_drop(at: Params) -> Fraction:
    """Peak at the least f over the peak at the largest f, in the printed generator."""
    least = {**at, "f": at["v"] * at["s"]}
    return peak("svpp-printed")(least) / peak("svpp-printed")(at)


def bubble_rise(at: Params) -> Fraction:
    """Idle ratio at the least f over that at the largest f; the printed generator, as in Fig. 5."""
    filled = idle_ratio("svpp-filled")
    return filled({**at, "f": at["v"] * at["s"]}) / filled(at)


CLAIMS: tuple[Claim, ...] = (
    *(
        stated(
            f"mepipe.figure-4{letter}.memory",
            f"MEPipe section 4.1, Figure 4({letter})",
            f"The peak is {value} A.",
            "peak activations over A",
            domain,
            constant(value),
            peak_of_a("svpp"),
        )
        for letter, value, domain in (
            ("a", Fraction(5, 8), FIGURE_4A),
            ("b", Fraction(9, 16), FIGURE_4B),
        )
    ),
    stated(
        "mepipe.figure-6.memory",
        "MEPipe Figure 6",
        "The rescheduled form of Figure 5(a) peaks at A/2, by every tie-break.",
        "largest peak activations over A of any tie-break",
        FIGURE_5,
        constant(Fraction(1, 2)),
        peak_over_ties,
    ),
    stated(
        "mepipe.figure-6.bubble",
        "MEPipe section 4.3, Figure 6, and Table 3",
        "Rescheduling gives Figure 5(a) the bubble ratio of Table 3, 3/11: some tie-break does.",
        "least idle_ratio of any tie-break",
        FIGURE_5,
        constant(Fraction(3, 11)),
        least_over_ties,
    ),
    stated(
        "mepipe.figure-6.bubble-every",
        "MEPipe section 4.3, Figure 6, and Table 3",
        "Rescheduling gives Figure 5(a) the bubble ratio of Table 3, 3/11, by every tie-break; "
        "the text says nothing of equal numbers of children.",
        "largest idle_ratio of any tie-break",
        FIGURE_5,
        constant(Fraction(3, 11)),
        most_over_ties,
        corrected="mepipe.figure-6.bubble",
    ),
    stated(
        "mepipe.figure-5.memory",
        "MEPipe section 4.2",
        "Figure 5(c), with the least f, needs half the memory of 5(a).",
        "peak over peak",
        FIGURE_5,
        constant(Fraction(1, 2)),
        memory_drop,
    ),
    stated(
        "mepipe.figure-5.bubble",
        "MEPipe section 4.2",
        "Figure 5(c) has a bubble ratio 50% above that of 5(a), both made by the steps of section "
        "4.3 as we read them (16 idle ticks of 32 against 9 of 25; against Table 3's 6 of 22 it "
        "is 83% above).",
        "idle_ratio over idle_ratio",
        FIGURE_5,
        constant(Fraction(3, 2)),
        bubble_rise,
        corrected="mepipe.figure-5.bubble-to",
    ),
    stated(
        "mepipe.figure-5.bubble-to",
        'MEPipe section 4.2, "by 50%" read as "to 50%"',
        "Figure 5(c), with the least f, has a bubble ratio of 50%: no order within its memory has "
        "less.",
        "least idle_ratio of any order",
        FIGURE_5,
        constant(Fraction(1, 2)),
        least_idle_ratio("svpp", room=lambda at: at["v"] * at["s"]),
    ),
    *(
        stated(
            f"mepipe.figure-1.memory-{s}",
            "MEPipe section 1, Figure 1",
            f"With {s} slices the peak falls by more than {percent}% against the other schedules.",
            "reduction of the peak",
            Domain(text=f"p=8, v=2, n=8, s={s}", points=(point,)),
            constant(Fraction(percent, 100)),
            reduction,
            relation=Relation.AT_LEAST,
            slack="a round number",
        )
        for point, s, percent in zip(FIGURE_1.points, (4, 8), (70, 80), strict=True)
    ),
)
