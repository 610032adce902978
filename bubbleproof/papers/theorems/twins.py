"""Mutated twins: each theorem with one thing wrong, and obligations that must then fail.

A theorem whose premises contradicted each other, or whose obligations said nothing, would survive
its mutation. Each twin changes what is claimed (makespan, peak, bound) or what is built (a boundary
of a case, a duration, a place) by the least amount.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from bubbleproof.papers.theorems import (
    bounds,
    bpipe,
    frontier,
    gpipe,
    interleaved,
    interleaved_starts,
    list_places,
    one_f_one_b,
    pipemesh,
    zb_h1,
    zb_h1_durations,
)
from bubbleproof.papers.theorems.closed_form import PAIR, TB, TF, ClosedForm, M, P
from bubbleproof.papers.theorems.list_places import Places
from bubbleproof.papers.theorems.periodic_twins import periodic_twins
from bubbleproof.papers.theorems.terms import Term, all_of, choose
from bubbleproof.papers.theorems.twin import LATE, PEAK, Twin, make_twin, twins_of

_PLACED = (PEAK[0], "the peak is reached at the last forward of the warm-up")
_CHUNK_BEFORE = "F of rank 0 after F of the last rank, one chunk before"
_CHUNK_AFTER = "B of the last rank after B of rank 0, one chunk after"


@cache
def twins() -> tuple[Twin, ...]:
    """Every twin, several per theorem."""
    return (
        *_gpipe(),
        *_one_f_one_b(),
        *_bounds(),
        *_frontier(),
        *_interleaved(),
        *_interleaved_starts(),
        *_pipemesh(),
        *_zb_h1(),
        *_zb_h1_durations(),
        *_bpipe(),
        *periodic_twins(),
    )


def _sooner(form: ClosedForm) -> ClosedForm:
    return replace(form, makespan=form.makespan - PAIR)


def _lower(form: ClosedForm) -> ClosedForm:
    return replace(form, peak=lambda i: form.peak(i) - 1)


def _gpipe() -> Iterator[Twin]:
    form = gpipe.FORM
    early = replace(form, backward=lambda i, j: gpipe.backward(i, j) - TF)
    yield from twins_of(
        gpipe.theorem,
        ("makespan one pair less", _sooner(form), LATE),
        ("peak one less", _lower(form), PEAK),
        ("backwards one tF earlier", early, ("B after its own F", "B is tight")),
    )
    yield from twins_of(
        gpipe.terapipe,
        ("makespan one pair less", _sooner(form), LATE),
        ("backwards one tF earlier", early, ("every B after every F",)),
    )
    yield make_twin("makespan one pair less", gpipe.breadth_first(_sooner(form)), *LATE)
    few = gpipe.breadth_first(least=P - 1)
    yield make_twin("m = p - 1 allowed", few, _CHUNK_BEFORE, _CHUNK_AFTER)


def _one_f_one_b() -> Iterator[Twin]:
    form = one_f_one_b.FORM

    def forward(i: Term, j: Term) -> Term:
        return choose(j <= P - i, (i + j) * TF, i * TF + j * PAIR)

    def short(i: Term, j: Term) -> Term:
        return choose(j <= P - i - 2, (i + j) * TF, i * TF + j * PAIR)

    def swapped(i: Term, j: Term) -> Term:
        return P * TB + (P - 1 - i) * TF + j * PAIR

    yield from twins_of(
        one_f_one_b.theorem,
        ("makespan one pair less", _sooner(form), LATE),
        ("peak one less", _lower(form), PEAK),
        (
            "warm-up one forward longer",
            replace(form, forward=forward),
            ("F after B in the order", "live activations never exceed the peak"),
        ),
        ("warm-up one forward shorter", replace(form, forward=short), ("F is tight",)),
        (
            "tF and tB swapped in B",
            replace(form, backward=swapped),
            ("B after its own F", "B after B of the next rank", "B is tight"),
        ),
    )


def _bounds() -> Iterator[Twin]:
    more, late = (M + P) * PAIR, ("late head, busy time and tail add up",)
    yield make_twin(
        "bound one pair more", bounds.makespan_theorem(more), "head, busy time and tail add up"
    )
    yield from twins_of(
        bounds.memory_theorem,
        ("a window costs one pair more", lambda q: bounds.memory_bound(q) + q * PAIR, late),
        ("bound one pair more", lambda q: bounds.memory_bound(q) + PAIR, late),
    )


def _frontier() -> Iterator[Twin]:
    form = frontier.FrontierForm()
    rests = ("no more activations than stated: F(j) starts after backward j - most ends",)

    def undelayed(i: Term, j: frontier.Place) -> Term:
        return frontier.forward(i, j) - choose(j.window <= 0, 0 * PAIR, PAIR)

    yield from twins_of(
        frontier.theorem,
        (
            "makespan one pair less",
            replace(form, makespan=lambda q: form.makespan(q) - PAIR),
            (*LATE, "memory-bound is this makespan"),
        ),
        ("one activation less", replace(form, most=form.most - 1), rests),
        ("windows one pair early", replace(form, forward=undelayed), rests),
    )


def _second_place(chunk: Term, microbatch: Term, operation: list_places.Operation) -> Term:
    return list_places.forward_place(chunk, microbatch, operation) + 1


def _interleaved() -> Iterator[Twin]:
    """Twins of the makespan for all durations, and of the places in the lists."""
    form = interleaved.InterleavedForm()
    yield from twins_of(
        interleaved.theorem,
        ("makespan one pair less", replace(form, makespan=form.makespan - PAIR), LATE),
        ("peak one less", replace(form, peak=lambda r: interleaved.warmup(r) - 1), _PLACED),
        (
            "warm-up one forward shorter",
            replace(form, warmup=lambda r: interleaved.warmup(r) - 1),
            ("F after B in the order",),
        ),
    )
    yield from twins_of(
        lambda places: interleaved.theorem(places=places),
        (
            "backwards take the chunks as forwards do",
            Places(backward=list_places.forward_place),
            (
                "B list: the next chunk begins one place further",
                "B list: one chunk stands an operation behind the other",
                "last stage: the forward stands Q places after the backward",
            ),
        ),
        (
            "forwards stand one place further",
            Places(forward=_second_place),
            ("F list: begins at place 0", "F list: ends at place N-1"),
        ),
    )


def _interleaved_starts() -> Iterator[Twin]:
    """Twins of the left-shifted starts."""
    right, starts = interleaved_starts.FORM, interleaved_starts

    def never(rank: Term) -> Term:
        return 0 * rank * TF

    def too_late(rank: Term) -> Term:
        late = (P - 1 - rank) * TF - rank * TB
        return choose(all_of(interleaved.Q >= P, late > 0), late, 0 * TF)

    yield from twins_of(
        starts.theorem,
        ("makespan one pair less", replace(right, makespan=right.makespan - PAIR), LATE),
        ("rank 0 never waits for the last rank", starts.starts(never), (_CHUNK_BEFORE,)),
        (
            "late by one tB more",
            starts.starts(too_late),
            ("F of rank 0 is tight at place (v+1)p",),
        ),
        ("late one place later", starts.starts(onset=1), (_CHUNK_BEFORE,)),
    )
    equal = starts.theorem(assumed=starts.WHOLE)
    yield make_twin("tF > tB allowed", equal, "F before B in the order")
    yield make_twin(
        "forwards stand one place further",
        starts.theorem(places=Places(forward=_second_place)),
        "places v*p to (v+1)p - 1 are of chunk 0",
        "place (v+1)p is of chunk 1",
    )


def _pipemesh() -> Iterator[Twin]:
    """Twins of PipeMesh's makespan and peak, and of the places in the lists."""
    right = interleaved.InterleavedForm()
    yield from twins_of(
        pipemesh.theorem,
        ("makespan one pair less", replace(right, makespan=right.makespan - PAIR), LATE),
        ("peak one less", replace(right, peak=lambda r: interleaved.peak(r) - 1), _PLACED),
    )
    yield make_twin(
        "an operation of p - 1 microbatches",
        pipemesh.theorem(least=P - 1),
        "F of rank 0 after F of the last rank, an operation before",
        "B of the last rank after B of rank 0, an operation after",
        "sizes: Q >= 0 and N >= Q + p",
    )
    yield make_twin(
        "forwards stand one place further",
        pipemesh.theorem(places=Places(forward=_second_place)),
        "F list: begins at place 0",
        "last stage: the forward stands at most Q places after the backward",
    )


def _zb_h1() -> Iterator[Twin]:
    """Twins of the closed form at equal durations."""
    form, t = zb_h1.SplitForm(), zb_h1.T

    def weight(i: Term, j: Term) -> Term:
        late = choose(j <= M - i - 1, (M + P + i + 2 * j) * t, (2 * M + P - 1 + j) * t)
        return choose(j <= M - P + 1, (2 * P + i + 3 * j) * t, late)

    def early(i: Term, j: Term) -> Term:
        return zb_h1.input_backward(i, j) - t

    yield from twins_of(
        zb_h1.theorem,
        ("makespan one tick less", replace(form, makespan=form.makespan - t), LATE),
        ("peak one less", replace(form, peak=form.peak - 1), PEAK),
        ("W's boundary off by one", replace(form, weight_backward=weight), ("W is tight",)),
        ("I one tick early", replace(form, input_backward=early), ("I after its own F",)),
    )


def _zb_h1_durations() -> Iterator[Twin]:
    """Twins of the makespan for all durations; one is the published bubble."""
    right, zb = zb_h1_durations.FORM, zb_h1_durations
    published = M * zb.ROUND + (P - 1) * (zb.TF + zb.TI - zb.TW)
    too_late = ("no rank ends after the makespan",)

    def early(i: Term, j: Term) -> Term:
        return zb.input_backward(i, j) - choose(j <= i - 1, 0 * zb.U, zb.U)

    yield from twins_of(
        zb.theorem,
        ("makespan one tF less", replace(right, makespan=right.makespan - zb.TF), too_late),
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
            too_late,
        ),
        ("steady I one u early", replace(right, input_backward=early), ("I after its own F",)),
        (
            "peak one less",
            replace(right, peak=P - 1),
            ("F(j) follows W(j-p): never more than the peak",),
        ),
    )


def _bpipe() -> Iterator[Twin]:
    right, mu = bpipe.Balance(), bpipe.MU
    rounded_down = (2 * mu >= P + 1, 2 * mu <= P + 2)
    late = replace(right, evicts=lambda x: right.evicts(x - 1))
    yield from twins_of(
        bpipe.theorem,
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
    )
