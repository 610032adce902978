"""Rows of numbers cut into stretches that are straight lines, around a middle that grows.

A row has a ``RowPoint`` per place: values that must follow lines, tags that must be equal all along
a stretch, and options of which one must be common to it. When n periods are put in, the stretch
around the middle place gets n places longer, its values going on by their slopes; what is behind it
moves by n places, and its values by n times their slopes. Rows that do not grow stay as they are
(``FRONT``), or keep their places while their values move (``BACK``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from bubbleproof.papers.theorems.periodic_schedule import Holder, LinearForm


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
