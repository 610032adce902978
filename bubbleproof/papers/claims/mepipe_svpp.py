"""What MEPipe says of SVPP outside Table 3 and the figures: the least f, its peak, comparisons.

Symbols: p ranks, m microbatches (the paper's n), v chunks, s slices, f forwards before the first
backward, A the activations of one sample; equal ticks.

Source: Sun et al., "MEPipe" (EuroSys 2025) sections 4.1 to 4.4.
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.papers.claims.claim import Claim, Params, Relation, Value
from bubbleproof.papers.claims.field_schedules import idle_ratio, measures, peak, peak_of_a, stated
from bubbleproof.papers.claims.mepipe_domains import (
    CHILDREN,
    GRAPHS,
    divides,
    is_every,
    is_few,
    is_many,
    thin_scope,
)
from bubbleproof.papers.claims.mepipe_schedules import (
    children,
    first_rank,
    forwards_before_backward,
    least_forwards,
)

ALL = thin_scope("every n", is_every)
MANY = thin_scope("n >= p", is_many)
FEW = thin_scope("n < p", is_few)
DIVIDED = thin_scope("p divides n", divides)


def least_peak(at: Params) -> Fraction:
    """The fullest rank's units at f = vs."""
    return Fraction(max(measures("svpp", {**at, "f": at["v"] * at["s"]}).peak_activations))


def least_bubble(*names: str) -> Value:
    """The least idle ratio of the families."""
    return lambda at: min(idle_ratio(name)(at) for name in names)


def inverse_min(at: Params) -> Fraction:
    """1/min(s,p)."""
    return Fraction(1, min(at["s"], at["p"]))


CLAIMS: tuple[Claim, ...] = (
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
        "With n >= p, where VPP takes n, some order of SVPP (ours) has no higher a bubble ratio "
        "than any other.",
        "idle_ratio",
        DIVIDED,
        least_bubble("1f1b", "interleaved", "hanayo", "terapipe"),
        idle_ratio("svpp"),
        relation=Relation.AT_MOST,
    ),
    stated(
        "mepipe.section-4.4.bubble-few",
        "MEPipe section 4.4",
        "With n < p some order of SVPP (ours) has no higher a bubble ratio than any other.",
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
