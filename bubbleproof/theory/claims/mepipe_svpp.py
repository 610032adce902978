"""What MEPipe says of SVPP outside Table 3: its examples, the least f, comparisons, figures.

Symbols: p ranks, m microbatches (the paper's n), v chunks, s slices, f forwards before the first
backward, A the activations of one sample. The figures draw equal ticks, and so do we.

Source: Sun et al., "MEPipe" (EuroSys 2025) sections 1 and 4, Figures 1, 4, 5 and 6.
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.theory.claims.claim import Claim, Domain, Params, Relation, Value, grid
from bubbleproof.theory.claims.field_schedules import (
    EQUAL_TICKS,
    constant,
    idle_ratio,
    measures,
    peak,
    peak_of_a,
    shapes,
    stated,
)
from bubbleproof.theory.claims.mepipe_schedules import (
    children,
    first_rank,
    forwards_before_backward,
    least_forwards,
    printed,
)

SMALL = (1, 2, 3, 4, 5)
CHUNKS = (1, 2, 3)
SLICES = (1, 2, 3, 8)
ALL = shapes("every n", ranks=SMALL, ticks=EQUAL_TICKS, v=CHUNKS, s=SLICES)
MANY = shapes(
    "n >= p", lambda at: at["m"] >= at["p"], ranks=SMALL, ticks=EQUAL_TICKS, v=CHUNKS, s=SLICES
)
FEW = shapes(
    "n < p", lambda at: at["m"] < at["p"], ranks=SMALL, ticks=EQUAL_TICKS, v=CHUNKS, s=SLICES
)
DIVIDED = shapes(
    "p divides n",
    lambda at: at["m"] % at["p"] == 0,
    ranks=SMALL,
    ticks=EQUAL_TICKS,
    v=CHUNKS,
    s=SLICES,
)
GRAPHS = grid(
    "p <= 5, n <= 3, v <= 4, s <= 5",
    p=SMALL,
    m=(1, 2, 3),
    v=(1, 2, 3, 4),
    s=(1, 2, 3, 4, 5),
)
CHILDREN = grid(
    "p <= 3, n = 2, v <= 3, s <= 4, every slice k and chunk c of rank 0",
    where=lambda at: at["k"] < at["s"] and at["c"] < at["v"],
    p=(1, 2, 3),
    m=(2,),
    v=(1, 2, 3),
    s=(1, 2, 3, 4),
    k=range(4),
    c=range(3),
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
    return Fraction(max(printed(least).peak_activations), max(printed(at).peak_activations))


def bubble_rise(at: Params) -> Fraction:
    """Idle ratio at the least f over that at the largest f; the printed generator, as in Fig. 5."""
    least = printed({**at, "f": at["v"] * at["s"]}, is_rescheduled=False)
    return least.idle_ratio / printed(at, is_rescheduled=False).idle_ratio


def least_peak(at: Params) -> Fraction:
    """The fullest rank's units at f = vs."""
    return Fraction(max(measures("svpp", {**at, "f": at["v"] * at["s"]}).peak_activations))


def least_bubble(*names: str) -> Value:
    """The least idle ratio of the families."""
    return lambda at: min(idle_ratio(name)(at) for name in names)


def inverse_min(at: Params) -> Fraction:
    """1/min(s,p)."""
    return Fraction(1, min(at["s"], at["p"]))


_EXAMPLES: tuple[Claim, ...] = (
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
        "The rescheduled form of Figure 5(a) peaks at A/2.",
        "peak activations over A",
        FIGURE_5,
        constant(Fraction(1, 2)),
        lambda at: Fraction(max(printed(at).peak_activations), at["p"] * at["v"] * at["s"]),
    ),
    stated(
        "mepipe.figure-6.bubble",
        "MEPipe section 4.3, Figure 6, and Table 3",
        "Rescheduling gives Figure 5(a) the bubble ratio of Table 3, 3/11.",
        "idle_ratio",
        FIGURE_5,
        constant(Fraction(3, 11)),
        lambda at: printed(at).idle_ratio,
        corrected="mepipe.figure-6.bubble-reached",
    ),
    stated(
        "mepipe.figure-6.bubble-reached",
        "ours, for MEPipe Figure 6",
        "Backwards of the highest chunk first give 3/11 with the same f.",
        "idle_ratio",
        FIGURE_5,
        constant(Fraction(3, 11)),
        idle_ratio("svpp"),
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
        "Figure 5(c) has a bubble ratio 50% above that of 5(a).",
        "idle_ratio over idle_ratio",
        FIGURE_5,
        constant(Fraction(3, 2)),
        bubble_rise,
        corrected="mepipe.figure-5.bubble-corrected",
    ),
    stated(
        "mepipe.figure-5.bubble-corrected",
        "ours, for MEPipe section 4.2",
        "16 idle ticks of 32 against 9 of 25: 39% above, as the generator is printed.",
        "idle_ratio over idle_ratio",
        FIGURE_5,
        constant(Fraction(16, 32) / Fraction(9, 25)),
        bubble_rise,
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
        )
        for point, s, percent in zip(FIGURE_1.points, (4, 8), (70, 80), strict=True)
    ),
)

_STATEMENTS: tuple[Claim, ...] = (
    stated(
        "mepipe.section-4.1.peak",
        "MEPipe section 4.1",
        "The peak of rank 0 is the number of its forwards before its first backward.",
        "peak activations of rank 0 (units)",
        ALL,
        forwards_before_backward,
        first_rank("svpp"),
    ),
    stated(
        "mepipe.section-4.1.first-rank",
        "MEPipe section 4.1",
        "No rank needs more than rank 0.",
        "peak activations of the fullest rank (units)",
        ALL,
        first_rank("svpp"),
        peak("svpp"),
        relation=Relation.AT_MOST,
    ),
    stated(
        "mepipe.section-4.2.least-f",
        "MEPipe section 4.2",
        "No order may start a backward on rank 0 before v*s of its forwards.",
        "forwards of rank 0 that its first possible backward depends on",
        GRAPHS,
        lambda at: Fraction(at["v"] * at["s"]),
        least_forwards,
    ),
    stated(
        "mepipe.section-4.2.least-f-runs",
        "MEPipe section 4.2",
        "The variant with f = v*s exists and needs v*s units.",
        "peak activations of the fullest rank (units)",
        ALL,
        lambda at: Fraction(at["v"] * at["s"]),
        least_peak,
    ),
    stated(
        "mepipe.section-4.3.children",
        "MEPipe section 4.3; the example gives 3 for slice 1 of chunk 1",
        "The backward of slice k on chunk c has (k+1)(c+1) - 1 children in its sample.",
        "backwards of the sample on rank 0 that depend on it",
        CHILDREN,
        lambda at: Fraction((at["k"] + 1) * (at["c"] + 1) - 1),
        children,
    ),
    stated(
        "mepipe.section-4.4.around",
        "MEPipe section 4.4",
        "SVPP's memory is about A/min(s,p), here taken as exact.",
        "peak activations over A",
        MANY,
        inverse_min,
        peak_of_a("svpp"),
        corrected="mepipe.section-4.4.around-below",
    ),
    stated(
        "mepipe.section-4.4.around-below",
        "ours, for MEPipe section 4.4",
        "SVPP's memory is at most 1 + (min(s,p)-1)/(v max(s,p)), below 2, times A/min(s,p).",
        "peak activations over A",
        MANY,
        lambda at: (
            inverse_min(at)
            * (1 + Fraction(min(at["s"], at["p"]) - 1, at["v"] * max(at["s"], at["p"])))
        ),
        peak_of_a("svpp"),
        relation=Relation.AT_MOST,
    ),
    stated(
        "mepipe.section-4.4.bubble-many",
        "MEPipe section 4.4",
        "With n >= p, where VPP takes n, SVPP's bubble ratio is no higher than any other's.",
        "idle_ratio",
        DIVIDED,
        least_bubble("1f1b", "interleaved", "hanayo", "terapipe"),
        idle_ratio("svpp"),
        relation=Relation.AT_MOST,
    ),
    stated(
        "mepipe.section-4.4.bubble-few",
        "MEPipe section 4.4",
        "With n < p SVPP's bubble ratio is no higher than any other's.",
        "idle_ratio",
        FEW,
        least_bubble("1f1b", "hanayo", "terapipe"),
        idle_ratio("svpp"),
        relation=Relation.AT_MOST,
    ),
    stated(
        "mepipe.section-4.4.memory-few",
        "MEPipe section 4.4",
        "With n < p SVPP's memory is no more than that of the others.",
        "peak activations over A",
        FEW,
        lambda at: min(peak_of_a(name)(at) for name in ("1f1b", "hanayo", "terapipe")),
        peak_of_a("svpp"),
        relation=Relation.AT_MOST,
    ),
)

CLAIMS: tuple[Claim, ...] = (*_EXAMPLES, *_STATEMENTS)
