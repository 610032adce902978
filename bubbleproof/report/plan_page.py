"""What a page about a plan shows beside schedules: ranked candidates, trades and lively makespans.

The pieces are HTML for ``report.page``; whoever writes the page says in words why each candidate
lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bubbleproof.report.amounts import Scale
from bubbleproof.report.document import mood, plot
from bubbleproof.report.html import paragraph, section, table
from bubbleproof.report.interactive import Json
from bubbleproof.theory.pipelines.units import plural

_FRONT, _POINT, _BAND = "#2f62b8", "#bd3312", "#c7a24c"
_ROW, _MARGIN = 34, 110  # pixels


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Memory:
    """The axis of memory: the fullest rank's peak, or, where capacities differ, its share."""

    title: str
    of: Callable[[Sequence[int]], float]
    limit: float | None

    @classmethod
    def axis(
        cls, points: Sequence[PlanPoint], memory_unit: str, capacities: Sequence[int | None]
    ) -> _Memory:
        """``capacities`` are those of the ranks' memory, in the order of a point's peaks."""
        if len(set(capacities)) > 1:
            return cls(
                title="peak memory of the rank nearest to its capacity (% of it)",
                of=lambda peaks: max(
                    100 * peak / room
                    for peak, room in zip(peaks, capacities, strict=True)
                    if room is not None
                ),
                limit=100.0,
            )
        scale = Scale.of(memory_unit, max((max(point.peaks) for point in points), default=0))
        room = next(iter(capacities), None)
        return cls(
            title=f"peak memory of the fullest rank ({scale.name})",
            of=lambda peaks: max(peaks) / scale.divisor,
            limit=None if room is None else room / scale.divisor,
        )


def trades(
    points: Sequence[PlanPoint], *, unit: str, memory_unit: str, capacities: Sequence[int | None]
) -> str:
    """Makespan against peak memory; the line joins what no other schedule beats in both."""
    memory = _Memory.axis(points, memory_unit, capacities)
    places = [(memory.of(point.peaks), point.value) for point in points]
    front = [
        place
        for place in sorted(set(places))
        if not any(other[0] <= place[0] and other[1] < place[1] for other in places)
        and not any(other[0] < place[0] and other[1] <= place[1] for other in places)
    ]
    line: dict[str, Json] = {
        "type": "scatter",
        "mode": "lines",
        "name": "not beaten in both",
        "x": [peak for peak, _ in front],
        "y": [value for _, value in front],
        "line": {"shape": "hv", "color": _FRONT},
    }
    marks: dict[str, Json] = {
        "type": "scatter",
        "mode": "markers",
        "name": "candidate",
        "x": [peak for peak, _ in places],
        "y": [value for _, value in places],
        "text": [point.name for point in points],
        "hovertemplate": "%{text}<br>%{y} at %{x}<extra></extra>",
        "marker": {"color": [_FRONT if one in front else _POINT for one in places], "size": 8},
    }
    shapes: list[Json] = []
    if memory.limit is not None:
        shapes.append(
            {
                "type": "line",
                "x0": memory.limit,
                "x1": memory.limit,
                "y0": 0,
                "y1": 1,
                "yref": "paper",
                "line": {"dash": "dot", "color": "#777777"},
            }
        )
    layout = _layout(420) | {
        "xaxis": {"title": {"text": memory.title}},
        "yaxis": {"title": {"text": f"makespan ({plural(unit)})"}},
        "shapes": shapes,
    }
    chart = plot("trades", {"data": [line, marks], "layout": layout})
    note = "One mark for the shortest schedule found of each candidate; dotted: the capacity."
    return section("Makespan against memory", chart, paragraph(note, css="soft"))


def bands(points: Sequence[PlanPoint], *, unit: str, explained: str) -> str:
    """The nominal makespan of each timed candidate, and the band of 5 % to 95 % of the samples."""
    timed = [point for point in points if point.expected is not None]
    names: list[Json] = [point.name for point in timed]
    low, high = ([getattr(point, name) for point in timed] for name in ("p5", "p95"))
    band: dict[str, Json] = {
        "type": "bar",
        "orientation": "h",
        "name": "5 % to 95 %",
        "y": names,
        "base": low,
        "x": [b - a for a, b in zip(low, high, strict=True)],
        "marker": {"color": _BAND, "opacity": 0.55},
    }
    nominal: dict[str, Json] = {
        "type": "scatter",
        "mode": "markers",
        "name": "nominal",
        "y": names,
        "x": [point.value for point in timed],
        "marker": {"symbol": "line-ns-open", "size": 16, "color": _FRONT},
    }
    mean: dict[str, Json] = {
        "type": "scatter",
        "mode": "markers",
        "name": "expected",
        "y": names,
        "x": [point.expected for point in timed],
        "marker": {"symbol": "circle", "size": 7, "color": _POINT},
    }
    layout = _layout(len(timed) * _ROW + _MARGIN) | {
        "xaxis": {"title": {"text": f"makespan ({plural(unit)})"}},
        "yaxis": {"autorange": "reversed", "automargin": True, "type": "category"},
    }
    chart = plot("bands", {"data": [band, nominal, mean], "layout": layout})
    return section("Where durations spread", chart, paragraph(explained, css="soft"))


def _layout(height: int) -> dict[str, Json]:
    return {
        "height": height,
        "margin": {"l": 80, "r": 20, "t": 30, "b": 60},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "legend": {"orientation": "h", "y": 1.08},
    }
