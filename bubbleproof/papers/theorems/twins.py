"""Mutated twins: each theorem with one thing wrong, and obligations that must then fail.

A theorem whose premises contradicted each other, or whose obligations said nothing, would survive
its mutation. Each twin changes what is claimed (makespan, peak, bound) or what is built (a boundary
of a case, a duration) by the least amount.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from bubbleproof.papers.theorems import bounds, bpipe, frontier, gpipe, one_f_one_b
from bubbleproof.papers.theorems.closed_form import PAIR, TB, TF, ClosedForm, M, P
from bubbleproof.papers.theorems.interleaved_twins import (
    interleaved_starts_twins,
    interleaved_twins,
    pipemesh_twins,
)
from bubbleproof.papers.theorems.periodic_twins import periodic_twins
from bubbleproof.papers.theorems.terms import Term, choose
from bubbleproof.papers.theorems.twin import LATE, PEAK, Twin, make_twin
from bubbleproof.papers.theorems.zb_h1_twins import zb_h1_durations_twins, zb_h1_twins

_SUM_LATE = "late head, busy time and tail add up"
_RESTS = "no more activations than stated: F(j) starts after backward j - most ends"


@cache
def twins() -> tuple[Twin, ...]:
    """Every twin, several per theorem."""
    return (
        *_gpipe(),
        *_one_f_one_b(),
        *_bounds(),
        *_frontier(),
        *interleaved_twins(),
        *interleaved_starts_twins(),
        *pipemesh_twins(),
        *zb_h1_twins(),
        *zb_h1_durations_twins(),
        *_bpipe(),
        *periodic_twins(),
    )


def _sooner(form: ClosedForm) -> ClosedForm:
    return replace(form, makespan=form.makespan - PAIR)


def _lower(form: ClosedForm) -> ClosedForm:
    return replace(form, peak=lambda i: form.peak(i) - 1)


def _gpipe() -> Iterator[Twin]:
    form = gpipe.FORM
    yield make_twin("makespan one pair less", gpipe.theorem(_sooner(form)), *LATE)
    yield make_twin("peak one less", gpipe.theorem(_lower(form)), *PEAK)
    early = replace(form, backward=lambda i, j: gpipe.backward(i, j) - TF)
    yield make_twin(
        "backwards one tF earlier", gpipe.theorem(early), "B after its own F", "B is tight"
    )
    yield make_twin("makespan one pair less", gpipe.terapipe(_sooner(form)), *LATE)
    yield make_twin("backwards one tF earlier", gpipe.terapipe(early), "every B after every F")
    yield make_twin("makespan one pair less", gpipe.breadth_first(_sooner(form)), *LATE)
    yield make_twin(
        "m = p - 1 allowed",
        gpipe.breadth_first(least=P - 1),
        "F of rank 0 after F of the last rank, one chunk before",
        "B of the last rank after B of rank 0, one chunk after",
    )


def _one_f_one_b() -> Iterator[Twin]:
    form = one_f_one_b.FORM

    def forward(i: Term, j: Term) -> Term:
        return choose(j <= P - i, (i + j) * TF, i * TF + j * PAIR)

    def short(i: Term, j: Term) -> Term:
        return choose(j <= P - i - 2, (i + j) * TF, i * TF + j * PAIR)

    def swapped(i: Term, j: Term) -> Term:
        return P * TB + (P - 1 - i) * TF + j * PAIR

    for change, wrong, breaks in (
        ("makespan one pair less", _sooner(form), LATE),
        ("peak one less", _lower(form), PEAK),
        (
            "warm-up one forward longer",
            replace(form, forward=forward),
            ("F after B in the order", "live activations never exceed the peak"),
        ),
        (
            "warm-up one forward shorter",
            replace(form, forward=short),
            ("F is tight",),
        ),
        (
            "tF and tB swapped in B",
            replace(form, backward=swapped),
            ("B after its own F", "B after B of the next rank", "B is tight"),
        ),
    ):
        yield make_twin(change, one_f_one_b.theorem(wrong), *breaks)


def _bounds() -> Iterator[Twin]:
    yield make_twin(
        "bound one pair more",
        bounds.makespan_theorem((M + P) * PAIR),
        "head, busy time and tail add up",
    )
    yield make_twin(
        "a window costs one pair more",
        bounds.memory_theorem(lambda q: bounds.memory_bound(q) + q * PAIR),
        _SUM_LATE,
    )
    yield make_twin(
        "bound one pair more",
        bounds.memory_theorem(lambda q: bounds.memory_bound(q) + PAIR),
        _SUM_LATE,
    )


def _frontier() -> Iterator[Twin]:
    form = frontier.FrontierForm()
    yield make_twin(
        "makespan one pair less",
        frontier.theorem(replace(form, makespan=lambda q: form.makespan(q) - PAIR)),
        *LATE,
        "memory-bound is this makespan",
    )
    yield make_twin(
        "one activation less", frontier.theorem(replace(form, most=form.most - 1)), _RESTS
    )

    def undelayed(i: Term, j: frontier.Place) -> Term:
        return frontier.forward(i, j) - choose(j.window <= 0, 0 * PAIR, PAIR)

    yield make_twin(
        "windows one pair early", frontier.theorem(replace(form, forward=undelayed)), _RESTS
    )


def _bpipe() -> Iterator[Twin]:
    right, mu = bpipe.Balance(), bpipe.MU
    rounded_down = (2 * mu >= P + 1, 2 * mu <= P + 2)
    late = replace(right, evicts=lambda x: right.evicts(x - 1))
    for change, wrong, breaks in (
        (
            "mu = ceil((p+1)/2)",
            replace(right, rounded=rounded_down),
            ("round with transfers: within the objective",),
        ),
        (
            "one activation less",
            replace(right, most=mu - 1),
            ("warm-up: within the objective", "plain round: within the objective"),
        ),
        ("evictions one slot late", late, ("warm-up: one forward more",)),
    ):
        yield make_twin(change, bpipe.theorem(wrong), *breaks)
