"""Mutated twins of the theorems on interleaved 1F1B and on PipeMesh."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bubbleproof.papers.theorems import interleaved, interleaved_starts, pipemesh
from bubbleproof.papers.theorems.closed_form import PAIR, TB, TF, P
from bubbleproof.papers.theorems.terms import Term, all_of, choose
from bubbleproof.papers.theorems.twin import LATE, PEAK, Twin, make_twin


def interleaved_twins() -> Iterator[Twin]:
    """Twins of the makespan for all durations."""
    form = interleaved.InterleavedForm()
    for change, wrong, breaks in (
        ("makespan one pair less", replace(form, makespan=form.makespan - PAIR), LATE),
        (
            "peak one less",
            replace(form, peak=lambda r: interleaved.warmup(r) - 1),
            (PEAK[0], "the peak is reached at the last forward of the warm-up"),
        ),
        (
            "warm-up one forward shorter",
            replace(form, warmup=lambda r: interleaved.warmup(r) - 1),
            ("F after B in the order",),
        ),
    ):
        yield make_twin(change, interleaved.theorem(wrong), *breaks)


def interleaved_starts_twins() -> Iterator[Twin]:
    """Twins of the left-shifted starts."""
    right, starts = interleaved_starts.FORM, interleaved_starts

    def never(rank: Term) -> Term:
        return 0 * rank * TF

    def too_late(rank: Term) -> Term:
        late = (P - 1 - rank) * TF - rank * TB
        return choose(all_of(interleaved.Q >= P, late > 0), late, 0 * TF)

    chunk_before = "F of rank 0 after F of the last rank, one chunk before"
    for change, wrong, breaks in (
        ("makespan one pair less", replace(right, makespan=right.makespan - PAIR), LATE),
        (
            "rank 0 never waits for the last rank",
            starts.starts(never),
            (chunk_before,),
        ),
        (
            "late by one tB more",
            starts.starts(too_late),
            ("F of rank 0 is tight at place (v+1)p",),
        ),
        ("late one place later", starts.starts(onset=1), (chunk_before,)),
    ):
        yield make_twin(change, starts.theorem(wrong), *breaks)
    yield make_twin(
        "tF > tB allowed",
        starts.theorem(assumed=starts.WHOLE),
        "F before B in the order",
    )


def pipemesh_twins() -> Iterator[Twin]:
    """Twins of PipeMesh's makespan and peak."""
    right = interleaved.InterleavedForm()
    for change, wrong, breaks in (
        ("makespan one pair less", replace(right, makespan=right.makespan - PAIR), LATE),
        (
            "peak one less",
            replace(right, peak=lambda r: interleaved.peak(r) - 1),
            (PEAK[0], "the peak is reached at the last forward of the warm-up"),
        ),
    ):
        yield make_twin(change, pipemesh.theorem(wrong), *breaks)
    yield make_twin(
        "an operation of p - 1 microbatches",
        pipemesh.theorem(least=P - 1),
        "F of rank 0 after F of the last rank, an operation before",
        "B of the last rank after B of rank 0, an operation after",
    )
