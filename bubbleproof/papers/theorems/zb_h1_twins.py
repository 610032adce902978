"""Mutated twins of the two theorems on ZB-H1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bubbleproof.papers.theorems import zb_h1, zb_h1_durations
from bubbleproof.papers.theorems.closed_form import M, P
from bubbleproof.papers.theorems.terms import Term, choose
from bubbleproof.papers.theorems.twin import LATE, PEAK, Twin, make_twin


def zb_h1_twins() -> Iterator[Twin]:
    """Twins of the closed form at equal durations."""
    form, t = zb_h1.SplitForm(), zb_h1.T

    def weight(i: Term, j: Term) -> Term:
        late = choose(j <= M - i - 1, (M + P + i + 2 * j) * t, (2 * M + P - 1 + j) * t)
        return choose(j <= M - P + 1, (2 * P + i + 3 * j) * t, late)

    def early(i: Term, j: Term) -> Term:
        return zb_h1.input_backward(i, j) - t

    for change, wrong, breaks in (
        ("makespan one tick less", replace(form, makespan=form.makespan - t), LATE),
        ("peak one less", replace(form, peak=form.peak - 1), PEAK),
        ("W's boundary off by one", replace(form, weight_backward=weight), ("W is tight",)),
        ("I one tick early", replace(form, input_backward=early), ("I after its own F",)),
    ):
        yield make_twin(change, zb_h1.theorem(wrong), *breaks)


def zb_h1_durations_twins() -> Iterator[Twin]:
    """Twins of the makespan for all durations; one is the published bubble."""
    right, zb = zb_h1_durations.FORM, zb_h1_durations
    published = M * zb.ROUND + (P - 1) * (zb.TF + zb.TI - zb.TW)

    def early(i: Term, j: Term) -> Term:
        return zb.input_backward(i, j) - choose(j <= i - 1, 0 * zb.U, zb.U)

    for change, wrong, breaks in (
        (
            "makespan one tF less",
            replace(right, makespan=right.makespan - zb.TF),
            ("no rank ends after the makespan",),
        ),
        (
            "makespan one tF more",
            replace(right, makespan=right.makespan + zb.TF),
            (
                "no timing of this order ends earlier",
                "no schedule at all is faster where tI <= min(tF, tW)",
            ),
        ),
        (
            "the bubble (p-1)(tF+tI-tW) for all durations",
            replace(right, makespan=published),
            ("no rank ends after the makespan",),
        ),
        (
            "steady I one u early",
            replace(right, input_backward=early),
            ("I after its own F",),
        ),
        (
            "peak one less",
            replace(right, peak=P - 1),
            ("F(j) follows W(j-p): never more than the peak",),
        ),
    ):
        yield make_twin(change, zb.theorem(wrong), *breaks)
