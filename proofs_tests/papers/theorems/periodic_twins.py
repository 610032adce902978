"""Mutated twins of the theorems on families that repeat: one shape of each, one number wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bubbleproof.papers.theorems.periodic_families import PeriodicTheorem, periodic_theorem
from bubbleproof.papers.theorems.periodic_list import listed
from bubbleproof.papers.theorems.periodic_schedule import LinearForm, PeriodicSchedule, TaskClass
from proofs_tests.papers.theorems.twin import Twin, TwinMaker


def periodic_twins(of: Sequence[PeriodicTheorem] | None = None) -> Iterator[Twin]:
    """Two twins of every such theorem, or of these, and more of T-Recomp's."""
    for about in listed() if of is None else of:
        one = replace(about, shapes=about.shapes[:1])
        right = one.shapes[0].schedule()
        twin, name = _changes(one), right.shape
        ends = (f"{name}: no task ends after the makespan", f"{name}: the makespan is reached")
        yield twin("makespan one tick less", _later(right, -1), *ends)
        if about.makespan is not None:
            told = f"{name}: the formula's makespan"
            yield twin("makespan one tick more than the formula's", _later(right, 1), told, ends[1])
        lower = replace(right, peaks=(right.peaks[0] - 1, *right.peaks[1:]))
        peaks = (f"{name}, rank 0: memory", f"{name}, rank 0: the peak is reached")
        yield twin("peak one less", lower, *peaks)
        if about.id == "trecomp":
            yield from _more(one, right)


def _changes(about: PeriodicTheorem) -> TwinMaker[PeriodicSchedule]:
    return TwinMaker(lambda wrong: periodic_theorem(about, (wrong,)))


def _later(schedule: PeriodicSchedule, ticks: int) -> PeriodicSchedule:
    return replace(schedule, makespan=schedule.makespan.plus(ticks))


def _more(about: PeriodicTheorem, right: PeriodicSchedule) -> Iterator[Twin]:
    """Starts, boundaries, order and keys of one family, each with one number wrong."""
    twin = _changes(about)
    first, last = right.classes[0], right.classes[-1]
    front, end = f"{right.shape}, rank {first.rank}", f"{right.shape}, rank {last.rank}"
    piece = last.pieces[-1]
    late = replace(piece, start=piece.start.plus(1))
    wrong = _with(right, replace(last, pieces=(*last.pieces[:-1], late)))
    yield twin("the last starts one tick late", wrong, f"{end}: tight")
    grown = max(range(len(first.pieces)), key=lambda k: first.pieces[k].last.per_period)
    steep = replace(first.pieces[grown], start=first.pieces[grown].start.plus(LinearForm(0, -1)))
    pieces = (*first.pieces[:grown], steep, *first.pieces[grown + 1 :])
    wrong = _with(right, replace(first, pieces=pieces))
    breaks = (f"{front}: one at a time", f"{front}: tight")
    yield twin("a period one tick shorter for one class", wrong, *breaks)
    kept, *others = right.classes[1].surroundings
    missed = replace(kept.neighbours[0], before=kept.neighbours[0].before.plus(-1))
    moved = replace(kept, neighbours=(missed, *kept.neighbours[1:]))
    wrong = _with(right, replace(right.classes[1], surroundings=(moved, *others)))
    yield twin("one task less before another", wrong, f"{front}: one at a time")
    shorter = replace(kept, last=kept.last.plus(-1))
    wrong = _with(right, replace(right.classes[1], surroundings=(shorter, *others)))
    yield twin("a place left out", wrong, f"{front}: cover")
    if first.key is not None:
        wrong = _with(right, replace(first, key=first.key.plus(7)))
        yield twin("forwards a round later in the published order", wrong, f"{front}: order")


def _with(schedule: PeriodicSchedule, task: TaskClass) -> PeriodicSchedule:
    """The schedule with one class in place of the one of its name."""
    classes = tuple(task if old.name == task.name else old for old in schedule.classes)
    return replace(schedule, classes=classes)
