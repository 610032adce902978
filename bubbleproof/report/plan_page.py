"""What a page about a plan shows beside schedules: ranked candidates, trades and lively makespans.

The pieces are HTML for ``report.page``; whoever writes the page says in words why each candidate
lost.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    """A candidate's schedule: makespans in ticks (None: not timed), peak in memory units."""

    name: str
    value: int
    peak: int
    expected: float | None = None
    p5: float | None = None
    p95: float | None = None
    is_front: bool = False


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


def trades(
    points: Sequence[PlanPoint], *, unit: str, memory_unit: str, capacity: int | None
) -> str:
    """Makespan against peak memory; the line joins what no other schedule beats in both."""
    scale = Scale.of(memory_unit, max((point.peak for point in points), default=0))
    front = sorted((point for point in points if point.is_front), key=lambda point: point.peak)
    line: dict[str, Json] = {
        "type": "scatter", "mode": "lines", "name": "not beaten in both",
        "x": [point.peak / scale.divisor for point in front],
        "y": [point.value for point in front],
        "line": {"shape": "hv", "color": _FRONT},
    }  # fmt: skip
    marks: dict[str, Json] = {
        "type": "scatter", "mode": "markers", "name": "candidate",
        "x": [point.peak / scale.divisor for point in points],
        "y": [point.value for point in points],
        "text": [point.name for point in points],
        "hovertemplate": "%{text}<br>%{y} at %{x}<extra></extra>",
        "marker": {"color": [_FRONT if point.is_front else _POINT for point in points], "size": 8},
    }  # fmt: skip
    shapes: list[Json] = []
    if capacity is not None:
        at = capacity / scale.divisor
        shapes.append(
            {"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper",
             "line": {"dash": "dot", "color": "#777777"}}
        )  # fmt: skip
    layout = _layout(420) | {
        "xaxis": {"title": {"text": f"peak memory of the fullest rank ({scale.name})"}},
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
        "type": "bar", "orientation": "h", "name": "5 % to 95 %", "y": names, "base": low,
        "x": [b - a for a, b in zip(low, high, strict=True)],
        "marker": {"color": _BAND, "opacity": 0.55},
    }  # fmt: skip
    nominal: dict[str, Json] = {
        "type": "scatter", "mode": "markers", "name": "nominal", "y": names,
        "x": [point.value for point in timed],
        "marker": {"symbol": "line-ns-open", "size": 16, "color": _FRONT},
    }  # fmt: skip
    mean: dict[str, Json] = {
        "type": "scatter", "mode": "markers", "name": "expected", "y": names,
        "x": [point.expected for point in timed],
        "marker": {"symbol": "circle", "size": 7, "color": _POINT},
    }  # fmt: skip
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
