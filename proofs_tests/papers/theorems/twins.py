"""Mutated twins: each theorem with one thing wrong, and obligations that must then fail.

A theorem whose premises contradicted each other, or whose obligations said nothing, would survive
its mutation. Each twin changes what is claimed (makespan, peak, bound) or what is built (a boundary
of a case, a duration, a place) by the least amount.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from bubbleproof.papers.bpipe import bpipe_pairs, bpipe_theorem
from bubbleproof.papers.field import (
    frontier,
    gpipe_theorem,
    interleaved_starts,
    interleaved_theorem,
    one_f_one_b_theorem,
    zb_h1_theorem,
)
from bubbleproof.papers.field.split_form import SplitForm
from bubbleproof.papers.pipemesh import pipemesh_theorem
from bubbleproof.papers.theorems import list_places, parametric_bounds
from bubbleproof.papers.theorems.closed_form import PAIR, TB, TF, ClosedForm, M, P
from bubbleproof.papers.theorems.list_places import Places
from bubbleproof.papers.theorems.terms import Term, all_of, choose
from proofs_tests.papers.theorems.row_twins import row_twins
from proofs_tests.papers.theorems.twin import LATE, PEAK, Twin, TwinMaker, make_twin

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
        *_bpipe(),
        *_bpipe_pairs(),
        *row_twins(),
    )


def _sooner(form: ClosedForm) -> ClosedForm:
    return replace(form, makespan=form.makespan - PAIR)


def _lower(form: ClosedForm) -> ClosedForm:
    return replace(form, peak=lambda i: form.peak(i) - 1)


def _gpipe() -> Iterator[Twin]:
    form, twin = gpipe_theorem.FORM, TwinMaker(gpipe_theorem.theorem)
    early = replace(form, backward=lambda i, j: gpipe_theorem.backward(i, j) - TF)
    yield twin("makespan one pair less", _sooner(form), *LATE)
    yield twin("peak one less", _lower(form), *PEAK)
    yield twin("backwards one tF earlier", early, "B after its own F", "B is tight")
    sliced = TwinMaker(gpipe_theorem.terapipe)
    yield sliced("makespan one pair less", _sooner(form), *LATE)
    yield sliced("backwards one tF earlier", early, "every B after every F")
    yield TwinMaker(gpipe_theorem.breadth_first)("makespan one pair less", _sooner(form), *LATE)
    few = gpipe_theorem.breadth_first(least=P - 1)
    yield make_twin("m = p - 1 allowed", few, _CHUNK_BEFORE, _CHUNK_AFTER)


def _one_f_one_b() -> Iterator[Twin]:
    form, twin = one_f_one_b_theorem.FORM, TwinMaker(one_f_one_b_theorem.theorem)
    rising = "live activations never exceed the peak"

    def warmed_up(until: int) -> ClosedForm:
        def forward(i: Term, j: Term) -> Term:
            return choose(j <= P - i - until, (i + j) * TF, i * TF + j * PAIR)

        return replace(form, forward=forward)

    def swapped(i: Term, j: Term) -> Term:
        return P * TB + (P - 1 - i) * TF + j * PAIR

    yield twin("makespan one pair less", _sooner(form), *LATE)
    yield twin("peak one less", _lower(form), *PEAK)
    yield twin("warm-up one forward longer", warmed_up(0), "F after B in the order", rising)
    yield twin("warm-up one forward shorter", warmed_up(2), "F is tight")
    breaks = ("B after its own F", "B after B of the next rank", "B is tight")
    yield twin("tF and tB swapped in B", replace(form, backward=swapped), *breaks)


def _bounds() -> Iterator[Twin]:
    more = parametric_bounds.makespan_theorem((M + P) * PAIR)
    yield make_twin("bound one pair more", more, "head, busy time and tail add up")
    stages = TwinMaker(parametric_bounds.stages_theorem)
    every = parametric_bounds.stages_bound
    ends = "late head, busy time and tail of rank r add up"
    yield stages("a trip of one pair more", lambda q: every(q) + q * PAIR, ends)
    yield stages("the bound of stages one pair more", lambda q: every(q) + PAIR, ends)


def _frontier() -> Iterator[Twin]:
    form, twin = frontier.FrontierForm(), TwinMaker(frontier.theorem)
    rests = "no more activations than stated: F(j) starts after backward j - most ends"

    def undelayed(i: Term, j: frontier.WindowPlace) -> Term:
        return frontier.forward(i, j) - choose(j.window <= 0, 0 * PAIR, PAIR)

    sooner = replace(form, makespan=lambda q: form.makespan(q) - PAIR)
    yield twin("makespan one pair less", sooner, *LATE, "the bound is this makespan")
    yield twin("one activation less", replace(form, most=form.most - 1), rests)
    yield twin("windows one pair early", replace(form, forward=undelayed), rests)


def _second_place(chunk: Term, microbatch: Term, operation: list_places.MicrobatchRange) -> Term:
    return list_places.forward_place(chunk, microbatch, operation) + 1


_SECOND = Places(forward=_second_place)


def _interleaved() -> Iterator[Twin]:
    """Twins of the makespan for all durations, and of the places in the lists."""
    form, twin = interleaved_theorem.InterleavedForm(), TwinMaker(interleaved_theorem.theorem)
    shorter = replace(form, warmup=lambda r: interleaved_theorem.warmup(r) - 1)
    lower = replace(form, peak=lambda r: interleaved_theorem.warmup(r) - 1)
    yield twin("makespan one pair less", replace(form, makespan=form.makespan - PAIR), *LATE)
    yield twin("peak one less", lower, *_PLACED)
    yield twin("warm-up one forward shorter", shorter, "F after B in the order")
    yield make_twin(
        "backwards take the chunks as forwards do",
        interleaved_theorem.theorem(places=Places(backward=list_places.forward_place)),
        "B list: the next chunk begins one place further",
        "B list: one chunk stands an operation behind the other",
        "last stage: the forward stands Q places after the backward",
    )
    ends = ("F list: begins at place 0", "F list: ends at place N-1")
    second = interleaved_theorem.theorem(places=_SECOND)
    yield make_twin("forwards stand one place further", second, *ends)


def _interleaved_starts() -> Iterator[Twin]:
    """Twins of the left-shifted starts."""
    right, starts = interleaved_starts.FORM, interleaved_starts.starts
    theorem = interleaved_starts.theorem
    twin = TwinMaker(theorem)

    def never(rank: Term) -> Term:
        return 0 * rank * TF

    def too_late(rank: Term) -> Term:
        late = (P - 1 - rank) * TF - rank * TB
        return choose(all_of(interleaved_theorem.Q >= P, late > 0), late, 0 * TF)

    yield twin("makespan one pair less", replace(right, makespan=right.makespan - PAIR), *LATE)
    yield twin("rank 0 never waits for the last rank", starts(never), _CHUNK_BEFORE)
    tight = "F of rank 0 is tight at place (v+1)p"
    yield twin("late by one tB more", starts(too_late), tight)
    yield twin("late one place later", starts(onset=1), _CHUNK_BEFORE)
    equal = theorem(assumed=interleaved_starts.WHOLE)
    yield make_twin("tF > tB allowed", equal, "F before B in the order")
    of_chunks = (
        "places v groups on, as many as a group has, are of chunk 0",
        "the place v + 1 groups on is of chunk 1",
    )
    yield make_twin("forwards stand one place further", theorem(places=_SECOND), *of_chunks)


def _pipemesh() -> Iterator[Twin]:
    """Twins of PipeMesh's makespan and peak, and of the places in the lists."""
    right, twin = interleaved_theorem.InterleavedForm(), TwinMaker(pipemesh_theorem.theorem)
    lower = replace(right, peak=lambda r: interleaved_theorem.peak(r) - 1)
    yield twin("makespan one pair less", replace(right, makespan=right.makespan - PAIR), *LATE)
    yield twin("peak one less", lower, *_PLACED)
    yield make_twin(
        "an operation of p - 1 microbatches",
        pipemesh_theorem.theorem(least=P - 1),
        "F of rank 0 after F of the last rank, an operation before",
        "B of the last rank after B of rank 0, an operation after",
        "sizes: Q >= 0 and N >= Q + p",
    )
    yield make_twin(
        "forwards stand one place further",
        pipemesh_theorem.theorem(places=_SECOND),
        "F list: begins at place 0",
        "last stage: the forward stands at most Q places after the backward",
    )


def _zb_h1() -> Iterator[Twin]:
    """Twins of the makespan for all durations; one is the published bubble."""
    right, zb = zb_h1_theorem.FORM, zb_h1_theorem
    twin, too_late = TwinMaker(zb.theorem), "no rank ends after the makespan"

    def ending(makespan: Term) -> SplitForm:
        return replace(right, makespan=makespan)

    def early(i: Term, j: Term) -> Term:
        return zb.input_backward(i, j) - choose(j <= i - 1, 0 * zb.U, zb.U)

    yield twin("makespan one tF less", ending(right.makespan - zb.TF), too_late)
    yield twin(
        "makespan one tF more",
        ending(right.makespan + zb.TF),
        "no timing of this order ends earlier",
        "no schedule at all is faster where tI <= min(tF, tW)",
    )
    published = ending(M * zb.ROUND + (P - 1) * (zb.TF + zb.TI - zb.TW))
    yield twin("the bubble (p-1)(tF+tI-tW) for all durations", published, too_late)
    yield twin("steady I one u early", replace(right, input_backward=early), "I after its own F")
    kept = "F(j) follows W(j-p): never more than the peak"
    yield twin("peak one less", replace(right, peak=P - 1), kept)

    def later(i: Term, j: Term) -> Term:
        return zb.input_backward(i, j) + choose(j <= i, 0 * zb.U, zb.U)

    yield twin("steady I one u late", replace(right, input_backward=later), "I is tight")


def _bpipe() -> Iterator[Twin]:
    right, mu, twin = bpipe_theorem.Balance(), bpipe_theorem.MU, TwinMaker(bpipe_theorem.theorem)
    down = replace(right, rounded=(2 * mu >= P + 1, 2 * mu <= P + 2))
    late = replace(right, evicts=lambda x: right.evicts(x - 1))
    within = ("warm-up: within the objective", "plain round: within the objective")
    yield twin("mu = ceil((p+1)/2)", down, "round with transfers: within the objective")
    yield twin("one activation less", replace(right, most=mu - 1), *within)
    yield twin("evictions one slot late", late, "warm-up: one forward more")


def _bpipe_pairs() -> Iterator[Twin]:
    right, twin = bpipe_pairs.PrintedAlgorithm(), TwinMaker(bpipe_pairs.theorem)
    nearer = replace(right, victim=2)
    longer = replace(right, evicts=lambda x: right.evicts(x - 1))
    within = ("warm-up: within the objective", "a pair's forward is within the objective")
    yield twin(
        "line 22 names C_{i-2}", nearer, "line 22: C_{i-3} is the forward of the pair before"
    )
    yield twin("one activation less", replace(right, most=bpipe_theorem.MU - 1), *within)
    yield twin("the warm-up evicts one slot late", longer, "warm-up: one forward more")
