"""What a page about a plan shows beside schedules: ranked candidates, trades and lively makespans.

The pieces are HTML for ``report.page``; whoever writes the page says in words why each candidate
lost.

Where each deployment of a model lies between time and memory, for the page of a plan.

A deployment of which a schedule was found lies at its iteration and the bytes of a card that it
takes. Of another no schedule lies to the left of its bound, nor below the bytes that one microbatch
needs: that *corner* is shown hollow. The line joins what nothing shown beats in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bubbleproof.report.amounts import Scale, TimeScale
from bubbleproof.report.document import mood
from bubbleproof.report.html import paragraph, section, table
from bubbleproof.report.plot_svg import AxisRange, SvgPlot, around, key

FOUND, CORNER, LINE = "#bd3312", "#7a8794", "#2f62b8"
HEIGHT = 340  # pixels
Place = tuple[float, float]
TRADE = 2  # points of a front: one alone trades nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Corner:
    """A deployment: an iteration in ticks and bytes of a card; both at least, if not found."""

    name: str
    ticks: int
    memory: int
    is_found: bool


def lower_left(points: Iterable[Place]) -> list[Place]:
    """Those that no other beats in both, by rising x."""
    front: list[Place] = []
    for point in sorted(points):
        if not front or point[1] < front[-1][1]:
            front.append(point)
    return front


def deployment_corners(points: Sequence[Corner], *, unit: str, capacity: int) -> str:
    """The picture; ``capacity`` are the bytes of a card. Iterations take a tick or more.

    Empty where one deployment is the least in both.
    """
    if not points:
        return ""
    scale = Scale.of("bytes", max(point.memory for point in points))
    at, time = capacity / scale.divisor, TimeScale.of(unit, max(point.ticks for point in points))
    places = {p: (time.scaled(p.ticks), p.memory / scale.divisor) for p in points}
    ends = around([x for x, _ in places.values()], is_log=True)
    across = AxisRange(*ends, f"iteration ({time.name})", is_log=True)
    most = max([at, *(y for _, y in places.values())])
    plot = SvgPlot(across, AxisRange(0, most * 1.06, f"of a card ({scale.name})"), height=HEIGHT)
    plot.limit(y=at)
    front = lower_left(places.values())
    plot.stairs(front, LINE)
    for point in sorted(points, key=lambda p: p.is_found):
        colour, size = (FOUND, 6.0) if point.is_found else (CORNER, 3.5)
        plot.point(*places[point], point.name, colour, size=size, is_open=not point.is_found)
    note = (
        "A mark for each deployment that fits: found, at its iteration and the bytes of the "
        "fullest card; hollow, at its bound and what one microbatch needs. Dotted: the memory of "
        "a card."
    )
    entries = [(LINE, "Pareto front"), (CORNER, "lower bound"), (FOUND, "found")]
    return _traded("Deployments: iteration against memory", plot, front, entries, note)


def _traded(
    title: str, plot: SvgPlot, front: Sequence[Place], entries: Sequence[tuple[str, str]], note: str
) -> str:
    """The section of a picture; empty where one is the least in both."""
    shown = key(entries), plot.text, paragraph(note, css="soft")
    return section(title, *shown) if len(front) >= TRADE else ""


_FRONT, _POINT, _BAND = "#2f62b8", "#bd3312", "#c7a24c"
_ROW, _MARGIN = 46, 60  # pixels


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPoint:
    """A candidate's schedule: makespans in ticks (None: not timed), peaks of the ranks' memory."""

    name: str
    value: int
    peaks: Sequence[int]
    expected: float | None = None
    p5: float | None = None
    p95: float | None = None


def ranked_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    explained: str,
    *,
    title: str = "Candidates",
) -> str:
    """The candidates, the best first; the column before the last holds their status."""
    moods = [mood(row[-2]) for row in rows]
    shown = table(columns, rows, moods=moods, mood_column=len(columns) - 2)
    return section(title, shown, paragraph(explained, css="soft"))


def _memory_axis(
    points: Sequence[PlanPoint], memory_unit: str, capacities: Sequence[int | None]
) -> tuple[str, list[float], float | None]:
    """The axis of memory: its title, each point's value and the limit.

    It has the fullest rank's peak, or, where capacities differ, its share. ``capacities`` are those
    of the ranks' memory, in the order of a point's peaks.
    """
    if len(set(capacities)) > 1:
        each = [zip(point.peaks, capacities, strict=True) for point in points]
        shares = [max(100 * peak / room for peak, room in of if room is not None) for of in each]
        return "peak memory of the rank nearest to its capacity (% of it)", shares, 100.0
    scale = Scale.of(memory_unit, max(max(point.peaks) for point in points))
    room = next(iter(capacities), None)
    limit = None if room is None else room / scale.divisor
    values = [max(point.peaks) / scale.divisor for point in points]
    return f"peak memory of the fullest rank ({scale.name})", values, limit


def trades(
    points: Sequence[PlanPoint], *, unit: str, memory_unit: str, capacities: Sequence[int | None]
) -> str:
    """Makespan against peak memory; the line joins what no other schedule beats in both.

    Empty where one schedule is the least in both.
    """
    if not points:
        return ""
    title, memory, limit = _memory_axis(points, memory_unit, capacities)
    time = TimeScale.of(unit, max(point.value for point in points))
    spans = [time.scaled(point.value) for point in points]
    places = [*zip(memory, spans, strict=True)]
    peaks = memory + ([] if limit is None else [limit])
    across = AxisRange(*around(peaks), title)
    upright = AxisRange(*around(spans), f"makespan ({time.name})")
    plot = SvgPlot(across, upright, height=HEIGHT)
    if limit is not None:
        plot.limit(x=limit)
    front = lower_left(places)
    plot.stairs(front, _FRONT)
    for point, place in zip(points, places, strict=True):
        words = f"{point.name}: {time.amount(point.value)} at {place[0]:,.4g}"
        plot.point(*place, words, _FRONT if place in front else _POINT)
    note = "One mark for the shortest schedule found of each candidate; dotted: the capacity."
    entries = [(_FRONT, "Pareto front"), (_POINT, "candidate")]
    return _traded("Makespan against memory", plot, front, entries, note)


def bands(points: Sequence[PlanPoint], *, unit: str, explained: str) -> str:
    """The nominal makespan of each timed candidate, and the band of 5 % to 95 % of the samples."""
    timed = [point for point in points if point.expected is not None]
    if not timed:
        return ""
    time = TimeScale.of(unit, max(point.value for point in timed))
    spans = [v for p in timed for v in (p.value, p.expected, p.p5, p.p95) if v is not None]
    across = AxisRange(*around([*map(time.scaled, spans)]), f"makespan ({time.name})")
    names = [point.name for point in timed]
    upright = AxisRange(len(timed) - 0.5, -0.5, "")  # the first on top
    plot = SvgPlot(across, upright, height=len(timed) * _ROW + _MARGIN, names=names)
    for row, point in enumerate(timed):
        plot.band(time.scaled(point.p5 or 0), time.scaled(point.p95 or 0), row, _ROW * 0.4, _BAND)
        words = f"{point.name}: nominal {time.amount(point.value)}"
        plot.tick(time.scaled(point.value), row, _ROW * 0.46, words, _FRONT)
        expected = round(point.expected or 0)
        words = f"{point.name}: expected {time.amount(expected)}"
        plot.point(time.scaled(expected), row, words, _POINT)
    legend = key([(_BAND, "5 % to 95 %"), (_FRONT, "nominal"), (_POINT, "expected")])
    return section("With timing noise", legend, plot.text, paragraph(explained, css="soft"))
