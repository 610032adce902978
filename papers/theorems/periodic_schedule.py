"""Periodic schedules: starts that are straight lines in pieces, for a fixed shape and any size.

Fix a family's shape (ranks, chunks, slices, ticks). A *class* is what differs by microbatch alone:
kind, stage and slice (and direction). If the schedule repeats every R microbatches, it is a class
for each remainder of the microbatch by R. Its tasks are numbered by a *place* j = 0, 1, ..., and a
schedule of n periods more has one place more in every class (but in one whose tasks are at the
front or at the back alone):

    m = m0 + R n,    n >= 0,    places 0 .. count - 1 + n

A ``LinearForm`` a + b j + c n gives starts and places; a ``Piece`` is a stretch of places on which
a class's starts are one line. Pieces at the front are the same for all n, pieces at the back move
by n places and n periods, and one piece between them grows.

``Surroundings`` say, for a stretch of places, which tasks stand around a task on its rank: of each
class there, how many come before it. That is the order on the rank, and it gives the load too.
Nothing here is trusted: ``periodic`` proves what these numbers claim, for all n.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from bubbleproof.theory.model.actions import Kind

Holder = tuple[str, int] | None  # why a task starts no sooner; see ``Surroundings``


@dataclass(frozen=True, slots=True)
class LinearForm:
    """base + per_place * j + per_period * n, in ticks or places."""

    base: int
    per_place: int = 0
    per_period: int = 0

    def at(self, place: int, periods: int) -> int:
        """The number at place j and n periods."""
        return self.base + self.per_place * place + self.per_period * periods

    def plus(self, other: LinearForm | int, factor: int = 1) -> LinearForm:
        """self + factor * other."""
        if isinstance(other, int):
            other = LinearForm(other)
        return LinearForm(
            self.base + factor * other.base,
            self.per_place + factor * other.per_place,
            self.per_period + factor * other.per_period,
        )

    def along(self, place: LinearForm) -> LinearForm:
        """The line at a place that is itself a line."""
        return LinearForm(self.base, 0, self.per_period).plus(place, self.per_place)

    def from_period(self, later: int) -> LinearForm:
        """The same line where n counts from ``later`` periods earlier on."""
        return LinearForm(self.base - later * self.per_period, self.per_place, self.per_period)

    def __str__(self) -> str:
        text = str(self.base)
        for factor, name in ((self.per_place, "j"), (self.per_period, "n")):
            if factor:
                text += f" {'+-'[factor < 0]} {abs(factor)}{name}"
        return text


# (kind, stage, remainder of the microbatch) -> where in the published order, by place
Keys = Callable[[Kind, int, int], LinearForm]


@dataclass(frozen=True, slots=True)
class Piece:
    """Places ``first`` to ``last``, both included, whose starts are ``start`` ticks."""

    first: LinearForm
    last: LinearForm
    start: LinearForm


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Of another class on the rank, ``before`` tasks come before; the pieces of the last of them
    and of the next one, None where there is none."""

    before: LinearForm
    last_piece: int | None
    next_piece: int | None


@dataclass(frozen=True, slots=True)
class Input:
    """What a task waits for: class ``number`` at ``place`` (on ``piece``), ``lag`` ticks later."""

    number: int
    place: LinearForm
    piece: int
    lag: int


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What stands around the tasks of a class at places ``first`` to ``last``.

    ``piece`` is their own; ``inputs`` are the tasks that they wait for; ``neighbours`` are the
    classes of the rank, in the order of ``PeriodicSchedule.by_rank``, their own among them.
    ``held_by`` says why they start no sooner: None at tick 0, ("input", k) for the end of input k,
    ("rank", k) for the end of the task before, which is of the rank's class k.
    """

    first: LinearForm
    last: LinearForm
    piece: int
    inputs: tuple[Input, ...]
    neighbours: tuple[Neighbour, ...]
    held_by: Holder


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskClass:
    """Tasks of one kind, stage and slice, one per place.

    ``rank`` numbers the resource they run on, the ranks first. ``acquired`` units are held from the
    start and ``released`` given back at the end. ``key``, where there is one, says when in the
    published order of the rank a task comes.
    """

    name: str
    rank: int
    ticks: int
    count: LinearForm
    pieces: tuple[Piece, ...]
    acquired: int
    released: int
    surroundings: tuple[Surroundings, ...]
    key: LinearForm | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodicSchedule:
    """A schedule of m = ``least`` + ``step`` * n microbatches, for every n >= 0.

    ``makespan`` is in ticks, ``peaks`` are the most units that each rank holds; resources beyond
    the ranks hold none. ``by_rank`` are the numbers of the classes that run on each.
    """

    shape: str
    least: int
    step: int
    classes: tuple[TaskClass, ...]
    makespan: LinearForm
    peaks: tuple[int, ...]
    by_rank: dict[int, tuple[int, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found: dict[int, tuple[int, ...]] = {}
        for number, task in enumerate(self.classes):
            found[task.rank] = (*found.get(task.rank, ()), number)
        object.__setattr__(self, "by_rank", found)

    def starts(self, number: int, periods: int) -> list[int]:
        """The starts of class ``number`` by place, for n = ``periods``."""
        found = []
        for piece in self.classes[number].pieces:
            last = piece.last.at(0, periods)
            places = range(piece.first.at(0, periods), last + 1)
            found += [piece.start.at(j, periods) for j in places]
        return found
