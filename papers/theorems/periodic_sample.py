"""One schedule by classes, and the stretches of places on which its starts and order are lines.

``Sample.classes`` cuts every class into pieces (starts are one line) and surroundings (what comes
before and what is waited for are lines, and always of the same pieces).

A row of places has a ``RowPoint`` per place: values that must follow lines, tags that must be equal
all along a stretch, and options of which one must be common to it. When n periods are put in, the
stretch around the middle place gets n places longer, its values going on by their slopes; what is
behind it moves by n places, and its values by n times their slopes. Rows that do not grow stay as
they are (``FRONT``), or keep their places while their values move (``BACK``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from bubbleproof.papers.theorems.periodic_classes import ClassKey, Rules, name_of
from bubbleproof.papers.theorems.periodic_schedule import (
    Holder,
    Input,
    Keys,
    LinearForm,
    Neighbour,
    Piece,
    Surroundings,
    TaskClass,
)
from bubbleproof.theory.model.actions import NONE, Kind


class Sample:
    """One schedule by classes, ordered by rank; n = 0 there.

    ``rows[k][j]`` is the start of class k at place j; ``before[k][j]`` says of each class of the
    rank how many of its tasks come before.
    """

    def __init__(
        self,
        rows: dict[ClassKey, list[int]],
        period: int,
        growth: dict[ClassKey, Growth],
        rules: Rules,
    ) -> None:
        self.period, self.rules = period, rules
        self.keys = sorted(rows, key=lambda key: (rules.rank[key], key))
        self.rows = [rows[key] for key in self.keys]
        self.growth = [growth[key] for key in self.keys]
        self.on_rank: dict[int, list[int]] = {}
        for number, key in enumerate(self.keys):
            self.on_rank.setdefault(rules.rank[key], []).append(number)
        self.before = counts_before(self.on_rank, self.rows)

    def classes(self, keys: Keys | None) -> list[TaskClass]:
        number = {key: k for k, key in enumerate(self.keys)}
        pieces = [self._pieces(k) for k in range(len(self.keys))]
        rules = self.rules
        at = [_piece_numbers(parts) for parts in pieces]
        return [
            TaskClass(
                name=name_of(key),
                rank=rules.rank[key],
                ticks=rules.ticks[key],
                count=LinearForm(len(self.rows[k]), 0, self._gains(k)),
                pieces=pieces[k],
                acquired=rules.acquired[key],
                released=rules.released[key],
                surroundings=self._surroundings(k, number, at),
                key=keys(Kind(key[0]), key[1], key[5]) if keys else None,
            )
            for k, key in enumerate(self.keys)
        ]

    def _gains(self, number: int) -> int:
        """Places that a class gains per period."""
        return int(self.growth[number] is Growth.MIDDLE)

    def _pieces(self, number: int) -> tuple[Piece, ...]:
        points = [
            RowPoint((), frozenset({None}), (start,), (self.period,)) for start in self.rows[number]
        ]
        return tuple(
            Piece(part.first, part.last, part.lines[0])
            for part in stretches(points, self.growth[number])
        )

    def _surroundings(
        self, number: int, numbers: dict[ClassKey, int], at: list[list[int]]
    ) -> tuple[Surroundings, ...]:
        near = self.on_rank[self.rules.rank[self.keys[number]]]
        points = [self._point(number, j, near, numbers, at) for j in range(len(self.rows[number]))]
        return tuple(_around(part, len(near)) for part in stretches(points, self.growth[number]))

    def _point(
        self,
        number: int,
        place: int,
        near: list[int],
        numbers: dict[ClassKey, int],
        at: list[list[int]],
    ) -> RowPoint:
        """Tags: own piece, two pieces per neighbour, (class, piece, lag) per input."""
        before = self.before[number][place]
        inputs = [
            (numbers[other], there, lag)
            for other, there, lag in self.rules.inputs[self.keys[number], place]
        ]
        tags = [at[number][place]]
        for k, count in zip(near, before, strict=True):
            following = count + (k == number)
            tags.append(at[k][count - 1] if count else NONE)
            tags.append(at[k][following] if following < len(at[k]) else NONE)
        for other, there, lag in inputs:
            tags += [other, at[other][there], lag]
        return RowPoint(
            tuple(tags),
            self._holders(number, place, inputs, near),
            (*before, *(there for _, there, _ in inputs)),
            tuple(self._gains(k) for k in (*near, *(other for other, _, _ in inputs))),
        )

    def _holders(
        self, number: int, place: int, inputs: list[tuple[int, int, int]], near: list[int]
    ) -> frozenset[Holder]:
        """What the task waits for to the tick: tick 0, an input, or a task before it."""
        start, ticks = self.rows[number][place], self.rules.ticks
        found: set[Holder] = set() if start else {None}
        for k, (other, there, lag) in enumerate(inputs):
            if self.rows[other][there] + ticks[self.keys[other]] + lag == start:
                found.add(("input", k))
        for k, (other, count) in enumerate(zip(near, self.before[number][place], strict=True)):
            if count and self.rows[other][count - 1] + ticks[self.keys[other]] == start:
                found.add(("rank", k))
        if not found:
            raise ValueError(f"{name_of(self.keys[number])} at place {place} starts late")
        return frozenset(found)


def counts_before(
    on_rank: dict[int, list[int]], rows: list[list[int]]
) -> list[list[tuple[int, ...]]]:
    """For every class and place, how many tasks of each class of its rank start before."""
    found: list[list[tuple[int, ...]]] = [[] for _ in rows]
    for near in on_rank.values():
        done = dict.fromkeys(near, 0)
        for _, number in sorted((start, k) for k in near for start in rows[k]):
            found[number].append(tuple(done.values()))
            done[number] += 1
    return found


def _around(part: RowStretch, neighbours: int) -> Surroundings:
    """Surroundings from a stretch of ``_point``s."""
    piece, tags = part.tags[0], part.tags[1:]
    pieces, inputs = tags[: 2 * neighbours], tags[2 * neighbours :]
    return Surroundings(
        first=part.first,
        last=part.last,
        piece=piece,
        inputs=tuple(
            Input(number=number, place=place, piece=there, lag=lag)
            for number, there, lag, place in zip(
                inputs[::3], inputs[1::3], inputs[2::3], part.lines[neighbours:], strict=True
            )
        ),
        neighbours=tuple(
            Neighbour(line, _number(last), _number(following))
            for line, last, following in zip(
                part.lines[:neighbours], pieces[::2], pieces[1::2], strict=True
            )
        ),
        held_by=part.option,
    )


def _number(tag: int) -> int | None:
    return None if tag == NONE else tag


def _piece_numbers(pieces: tuple[Piece, ...]) -> list[int]:
    """The number of the piece of each place, at n = 0."""
    return [
        number
        for number, piece in enumerate(pieces)
        for _ in range(piece.first.base, piece.last.base + 1)
    ]


class Growth(Enum):
    """What n periods more do to a row."""

    FRONT = "nothing"
    MIDDLE = "n places more in the middle"
    BACK = "the same places, n periods later"


@dataclass(frozen=True, slots=True)
class RowPoint:
    """One place of a row; ``slopes`` are what the values gain per period (0 or 1 for places)."""

    tags: tuple[int, ...]
    options: frozenset[Holder]
    values: tuple[int, ...]
    slopes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RowStretch:
    """Places ``first`` to ``last``; ``lines`` are the values, ``option`` the common one."""

    first: LinearForm
    last: LinearForm
    tags: tuple[int, ...]
    option: Holder
    lines: tuple[LinearForm, ...]


def stretches(points: Sequence[RowPoint], growth: Growth) -> Iterator[RowStretch]:
    """The stretches of a row in order; n is 0 for the row as given."""
    end = len(points) - 1
    if growth is not Growth.MIDDLE:
        yield from _run(points, 0, end, moves=0, periods=int(growth is Growth.BACK))
        return
    middle = len(points) // 2
    low, high = _grown(points, middle)
    yield from _run(points, 0, low - 1, moves=0, periods=0)
    options = frozenset.intersection(*(point.options for point in points[low : high + 1]))
    yield RowStretch(
        LinearForm(low),
        LinearForm(high, 0, 1),
        points[middle].tags,
        _first(options),
        tuple(
            LinearForm(value - slope * middle, slope)
            for value, slope in zip(points[middle].values, points[middle].slopes, strict=True)
        ),
    )
    yield from _run(points, high + 1, end, moves=1, periods=1)


def _grown(points: Sequence[RowPoint], middle: int) -> tuple[int, int]:
    """The first and last place of the stretch around the middle."""
    centre = points[middle]
    options = centre.options

    def joins(place: int) -> bool:
        nonlocal options
        if not 0 <= place < len(points) or points[place].tags != centre.tags:
            return False
        common, away = options & points[place].options, place - middle
        straight = all(
            value == start + slope * away
            for value, start, slope in zip(
                points[place].values, centre.values, centre.slopes, strict=True
            )
        )
        if not straight or not common:
            return False
        options = common
        return True

    high = middle
    while joins(high + 1):
        high += 1
    low = middle
    while joins(low - 1):
        low -= 1
    return low, high


def _run(
    points: Sequence[RowPoint], first: int, end: int, *, moves: int, periods: int
) -> Iterator[RowStretch]:
    """Greedy stretches of places ``first`` to ``end``.

    With n periods they lie n * ``moves`` places on and their values n * ``periods`` slopes on.
    """
    while first <= end:
        last, options = first, points[first].options
        steps: tuple[int, ...] = (0,) * len(points[first].values)
        while last < end and points[last + 1].tags == points[first].tags:
            before, after = points[last].values, points[last + 1].values
            step = tuple(b - a for a, b in zip(before, after, strict=True))
            common = options & points[last + 1].options
            if not common or (last > first and step != steps):
                break
            last, steps, options = last + 1, step, common
        lines = tuple(
            LinearForm(value - step * first, step, periods * slope - moves * step)
            for value, step, slope in zip(
                points[first].values, steps, points[first].slopes, strict=True
            )
        )
        place = LinearForm(first, 0, moves), LinearForm(last, 0, moves)
        yield RowStretch(*place, points[first].tags, _first(options), lines)
        first = last + 1


def _first(options: frozenset[Holder]) -> Holder:
    """One of the options, always the same one."""
    return min(options, key=lambda holder: holder or ("", 0))
