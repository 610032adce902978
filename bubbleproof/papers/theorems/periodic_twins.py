"""Mutated twins of the theorems on families that repeat: one shape of each, one number wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bubbleproof.papers.theorems.periodic_families import Periodic, periodic_theorem
from bubbleproof.papers.theorems.periodic_list import listed
from bubbleproof.papers.theorems.periodic_schedule import Line, PeriodicSchedule, TaskClass
from bubbleproof.papers.theorems.twin import Twin, make_twin


def periodic_twins() -> Iterator[Twin]:
    """Two twins of every such theorem, and more of T-Pipe's."""
    for about in listed():
        shape = about.shapes[0]
        one = replace(about, shapes=(shape,))
        right = shape.schedule()
        name = right.shape
        yield _twin(
            one,
            "makespan one tick less",
            replace(right, makespan=right.makespan.plus(-1)),
            f"{name}: no task ends after the makespan",
            f"{name}: the makespan is reached",
        )
        yield _twin(
            one,
            "peak one less",
            replace(right, peaks=(right.peaks[0] - 1, *right.peaks[1:])),
            f"{name}, rank 0: memory",
            f"{name}, rank 0: the peak is reached",
        )
        if about.id == "tpipe":
            yield from _more(one, right)


def _twin(about: Periodic, change: str, wrong: PeriodicSchedule, *breaks: str) -> Twin:
    return make_twin(change, periodic_theorem(about, (wrong,)), *breaks)


def _more(about: Periodic, right: PeriodicSchedule) -> Iterator[Twin]:
    """Starts, boundaries, order, keys and formula of T-Pipe, each with one number wrong."""
    first, last = right.classes[0], right.classes[-1]
    front, end = f"{right.shape}, rank {first.rank}", f"{right.shape}, rank {last.rank}"
    piece = last.pieces[-1]
    late = replace(piece, start=piece.start.plus(1))
    yield _twin(
        about,
        "the last starts one tick late",
        _with(right, replace(last, pieces=(*last.pieces[:-1], late))),
        f"{end}: tight",
    )
    grown = max(range(len(first.pieces)), key=lambda k: first.pieces[k].last.per_period)
    steep = replace(first.pieces[grown], start=first.pieces[grown].start.plus(Line(0, -1)))
    pieces = (*first.pieces[:grown], steep, *first.pieces[grown + 1 :])
    yield _twin(
        about,
        "a period one tick shorter for one class",
        _with(right, replace(first, pieces=pieces)),
        f"{front}: one at a time",
        f"{front}: tight",
    )
    kept, *others = right.classes[1].surroundings
    missed = replace(kept.neighbours[0], before=kept.neighbours[0].before.plus(-1))
    moved = replace(kept, neighbours=(missed, *kept.neighbours[1:]))
    yield _twin(
        about,
        "one task less before another",
        _with(right, replace(right.classes[1], surroundings=(moved, *others))),
        f"{front}: one at a time",
    )
    shorter = replace(kept, last=kept.last.plus(-1))
    yield _twin(
        about,
        "a place left out",
        _with(right, replace(right.classes[1], surroundings=(shorter, *others))),
        f"{front}: cover",
    )
    assert first.key is not None, "T-Pipe's order has keys"
    yield _twin(
        about,
        "forwards a round later in the published order",
        _with(right, replace(first, key=first.key.plus(6))),
        f"{front}: order",
    )
    yield _twin(
        about,
        "one more rank's worth of bubble in the formula",
        replace(right, makespan=right.makespan.plus(6)),
        f"{right.shape}: the formula's makespan",
        f"{right.shape}: the makespan is reached",
    )


def _with(schedule: PeriodicSchedule, task: TaskClass) -> PeriodicSchedule:
    """The schedule with one class in place of the one of its name."""
    classes = tuple(task if old.name == task.name else old for old in schedule.classes)
    return replace(schedule, classes=classes)
