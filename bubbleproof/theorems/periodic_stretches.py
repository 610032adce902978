"""Rows of numbers cut into stretches that are straight lines, around a middle that grows.

A row has a ``Point`` per place: values that must follow lines, tags that must be equal all along a
stretch, and options of which one must be common to it. The stretch around the middle place has
given slopes (values gained per place); when n periods are put in, it gets n places longer and what
is behind it moves by n places and by n times the slopes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bubbleproof.theorems.periodic_schedule import Holder, Line


@dataclass(frozen=True, slots=True)
class Point:
    """One place of a row."""

    tags: tuple[int, ...]
    options: frozenset[Holder]
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Places ``first`` to ``last``; ``lines`` are the values, ``option`` the common one."""

    first: Line
    last: Line
    tags: tuple[int, ...]
    option: Holder
    lines: tuple[Line, ...]


def stretches(points: Sequence[Point], slopes: tuple[int, ...]) -> Iterator[Stretch]:
    """The stretches of a row in order; n is 0 for the row as given."""
    middle = len(points) // 2
    low, high = _grown(points, middle, slopes)
    yield from _run(points, 0, low - 1, None)
    options = frozenset.intersection(*(point.options for point in points[low : high + 1]))
    yield Stretch(
        Line(low),
        Line(high, 0, 1),
        points[middle].tags,
        _first(options),
        tuple(
            Line(value - slope * middle, slope)
            for value, slope in zip(points[middle].values, slopes, strict=True)
        ),
    )
    yield from _run(points, high + 1, len(points) - 1, slopes)


def _grown(points: Sequence[Point], middle: int, slopes: tuple[int, ...]) -> tuple[int, int]:
    """The first and last place of the stretch around the middle."""
    options = points[middle].options

    def joins(place: int) -> bool:
        nonlocal options
        if not 0 <= place < len(points):
            return False
        point = points[place]
        common = options & point.options
        away = place - middle
        straight = all(
            value == start + slope * away
            for value, start, slope in zip(point.values, points[middle].values, slopes, strict=True)
        )
        if point.tags != points[middle].tags or not straight or not common:
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
    points: Sequence[Point], first: int, end: int, slopes: tuple[int, ...] | None
) -> Iterator[Stretch]:
    """Greedy stretches of places ``first`` to ``end``; with slopes, behind the middle."""
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
        yield _stretch(points[first], first, last, steps, options, slopes)
        first = last + 1


def _stretch(
    point: Point,
    first: int,
    last: int,
    steps: tuple[int, ...],
    options: frozenset[Holder],
    slopes: tuple[int, ...] | None,
) -> Stretch:
    moves = 0 if slopes is None else 1
    lines = tuple(
        Line(value - step * first, step, moves * (slope - step))
        for value, step, slope in zip(point.values, steps, slopes or steps, strict=True)
    )
    place = Line(first, 0, moves), Line(last, 0, moves)
    return Stretch(*place, point.tags, _first(options), lines)


def _first(options: frozenset[Holder]) -> Holder:
    """One of the options, always the same one."""
    return min(options, key=lambda holder: holder or ("", 0))
