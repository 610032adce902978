"""Small charts of a page as SVG in its text: points, staircases, bands and marks on two axes.

A chart is as wide as a phone lets its words be read (``WIDTH``); colours of lines and words follow
the page's, light or dark. A mark says what it is when the pointer rests on it.

>>> chart = SvgPlot(AxisRange(0, 10, "ticks"), AxisRange(0, 1, "GiB"), height=120)
>>> chart.point(5, 0.5, "five", "#2f62b8")
>>> "<title>five</title>" in chart.text
True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from bubbleproof.report.html import escape

WIDTH = 500  # of which a phone shows three quarters
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 16, 14, 46
_MARKS = 6  # on an axis, about
_LETTER = 8.4  # the width of one, about
_LINE = 18  # the height of one
_NAME = 16  # pixels from a row's middle up to its name


@dataclass(frozen=True, slots=True)
class AxisRange:
    """An axis from ``low`` to ``high``, its title, and whether it is logarithmic (``low`` > 0).

    One whose ``low`` is the greater runs the other way, and has no marks of its own.
    """

    low: float
    high: float
    title: str
    is_log: bool = False

    def share(self, value: float) -> float:
        """Where a value lies: 0 at ``low``, 1 at ``high``."""
        low, high, at = self.low, self.high, value
        if self.is_log:
            low, high, at = log10(low), log10(high), log10(value)
        return (at - low) / (high - low) if high != low else 0.5

    @property
    def marks(self) -> list[float]:
        """Round values along the axis."""
        if self.is_log:
            powers = range(floor(log10(self.low)), floor(log10(self.high)) + 1)
            values = [step * 10.0**power for power in powers for step in (1, 2, 5)]
        else:
            step = round_step((self.high - self.low) / _MARKS)
            first = -(-self.low // step)
            values = [(first + number) * step for number in range(4 * _MARKS)]
        return [value for value in values if self.low <= value <= self.high]


def round_step(least: float) -> float:
    """1, 2 or 5 times a power of ten, at least so much.

    >>> round_step(3), round_step(0.012), round_step(0)
    (5.0, 0.02, 1.0)
    """
    if least <= 0:
        return 1.0
    power = 10.0 ** floor(log10(least))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= least * (1 - 1e-9))


class SvgPlot:
    """A chart being drawn; ``text`` is its SVG. ``names`` replaces the marks of the y axis."""

    def __init__(
        self, x: AxisRange, y: AxisRange, *, height: int, names: Sequence[str] = ()
    ) -> None:
        self.x, self.y, self.height = x, y, height
        longest = max((len(_number(value)) for value in y.marks), default=0)
        self._left = _RIGHT if names else max(_LEFT, _LETTER * longest + 34)
        self._parts = [*self._grid(names)]

    def point(
        self,
        x: float,
        y: float,
        words: str,
        colour: str,
        *,
        size: float = 4.5,
        is_open: bool = False,
    ) -> None:
        """A round mark."""
        look = (
            f'fill="none" stroke="{colour}" stroke-width="1.6"' if is_open else f'fill="{colour}"'
        )
        at = f'cx="{self._x(x):.1f}" cy="{self._y(y):.1f}" r="{size}"'
        self._parts.append(f"<circle {at} {look}><title>{escape(words)}</title></circle>")

    def stairs(
        self, places: Sequence[tuple[float, float]], colour: str, *, width: float = 1.6
    ) -> None:
        """A line that keeps each height until the next place."""
        if not places:
            return
        path = f"M{self._x(places[0][0]):.1f} {self._y(places[0][1]):.1f}"
        path += "".join(f"H{self._x(x):.1f}V{self._y(y):.1f}" for x, y in places[1:])
        self._parts.append(
            f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
        )

    def band(self, low: float, high: float, y: float, thickness: float, colour: str) -> None:
        """A bar along x, so many pixels thick."""
        left, right, top = self._x(low), self._x(high), self._y(y) - thickness / 2
        size = f'width="{max(right - left, 1):.1f}" height="{thickness}"'
        self._parts.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" {size} fill="{colour}" opacity="0.55"/>'
        )

    def tick(self, x: float, y: float, high: float, words: str, colour: str) -> None:
        """An upright mark, so many pixels high."""
        at, middle = self._x(x), self._y(y)
        self._parts.append(
            f'<path d="M{at:.1f} {middle - high / 2:.1f}v{high}" stroke="{colour}" '
            f'stroke-width="3"><title>{escape(words)}</title></path>'
        )

    def limit(self, *, x: float | None = None, y: float | None = None) -> None:
        """A dotted line across the chart at a value of one axis."""
        right, low = WIDTH - _RIGHT, self.height - _BOTTOM
        if x is not None:
            path = f"M{self._x(x):.1f} {_TOP}V{low}"
        else:
            path = f"M{self._left} {self._y(y or 0):.1f}H{right}"
        self._parts.append(f'<path d="{path}" stroke="#888" stroke-dasharray="3 4" fill="none"/>')

    @property
    def text(self) -> str:
        """The chart as an element of a page."""
        box = f'viewBox="0 0 {WIDTH} {self.height}"'
        words = f"{self.y.title} by {self.x.title}".strip()
        return (
            f'<svg class="plot" {box} role="img" aria-label="{escape(words)}">'
            f"{''.join(self._parts)}</svg>"
        )

    def _x(self, value: float) -> float:
        return self._left + self.x.share(value) * (WIDTH - self._left - _RIGHT)

    def _y(self, value: float) -> float:
        return self.height - _BOTTOM - self.y.share(value) * (self.height - _BOTTOM - _TOP)

    def _grid(self, names: Sequence[str]) -> list[str]:
        low, right = self.height - _BOTTOM, WIDTH - _RIGHT
        if names:  # each above its row, as long as it likes
            parts = [
                _text(self._left, self._y(y) - _NAME, name, "start") + self._line(self._y(y))
                for y, name in enumerate(names)
            ]
        else:
            parts = [
                _text(self._left - 8, self._y(y) + 5, _number(y), "end") + self._line(self._y(y))
                for y in self.y.marks[:: self._every]
            ]
        for at, words in _apart([(self._x(x), _number(x)) for x in self.x.marks], right):
            parts.append(_text(at, low + 18, words, "middle"))
            parts.append(f'<path class="axis" d="M{at:.1f} {low}v4"/>')
        parts.append(_text(WIDTH / 2, self.height - 8, self.x.title, "middle"))
        if not names and self.y.title:
            turned = f'transform="rotate(-90 16 {(low + _TOP) / 2})"'
            parts.append(_text(16, (low + _TOP) / 2, self.y.title, "middle", turned))
        return parts

    @property
    def _every(self) -> int:
        """Of the marks along y each so-manieth, that their words do not meet."""
        first, *more = [self._y(mark) for mark in self.y.marks] or [0.0]
        return max(1, ceil(_LINE / max(first - more[0], 1))) if more else 1

    def _line(self, y: float) -> str:
        return f'<path class="axis" d="M{self._left} {y:.1f}H{WIDTH - _RIGHT}"/>'


def key(entries: Sequence[tuple[str, str]]) -> str:
    """A legend: (colour, words) of each."""
    items = "".join(
        f'<span><i style="background:{colour}"></i>{escape(words)}</span>'
        for colour, words in entries
    )
    return f'<div class="viewer-legend">{items}</div>'


def around(values: Sequence[float], *, is_log: bool = False) -> tuple[float, float]:
    """The ends of an axis that shows all values with a little room at each end."""
    low, high = min(values), max(values)
    if is_log:
        return low / 1.15, high * 1.15
    room = (high - low) * 0.06 or abs(high) * 0.05 or 1.0
    return low - room, high + room


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"


def _apart(marks: Sequence[tuple[float, str]], right: float) -> list[tuple[float, str]]:
    """The marks along x whose words end before the next begin, and before the chart ends."""
    kept: list[tuple[float, str]] = []
    free = 0.0
    for at, words in marks:
        half = _LETTER * len(words) / 2
        if at - half >= free and at + half <= right + _RIGHT:
            kept.append((at, words))
            free = at + half + _LETTER
    return kept


def _text(x: float, y: float, words: str, anchor: str, more: str = "") -> str:
    at = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}'
    return f"<text {at.strip()}>{escape(words)}</text>"
