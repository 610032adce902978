"""The chart a page shows: bars and memory curves as a plotly figure in plain data.

The figure is the dictionary that plotly's own script draws, so that building it needs no plotly.
Row r of the timeline lies at y = r, rank 0 on top; memory curves share the time axis below it.
"""

from __future__ import annotations

import numpy as np

from bubbleproof.report.amounts import Scale
from bubbleproof.report.bars import Bars, Lane
from bubbleproof.report.memory_curves import MemoryCurve
from bubbleproof.report.palette import CLASH, WORDS, fill, text_on
from bubbleproof.report.timeline import Spans, Timeline, Window
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.pipelines.units import plural

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]

_ROW, _CURVE, _TOP, _GAP, _BOTTOM = 30, 62, 62, 46, 46  # pixels
_PIXELS = 920  # the usual width of the time axis
_THICKNESS = 0.86
_MEMORY_LINE = "#6f8bab"
_OVER = "#d9534a"  # readable on white and on dark ground


def figure(view: Timeline) -> dict[str, Json]:
    """The figure of a timeline: ``data`` and ``layout`` as plotly reads them."""
    scale = Scale.of(_plain(view.memory_unit), max((c.top for c in view.memory), default=0))
    data: list[Json] = [*_bar_traces(view)]
    for spans, name in ((view.clashes, "two actions at once"), (view.waiting, "never starts")):
        if len(spans):
            data.append(_frames(spans, name))
    for index, curve in enumerate(view.memory):
        data.append(_memory_trace(view, curve, index, scale))
    return {"data": data, "layout": _layout(view, scale)}


def opening_window(view: Timeline) -> Window:
    """The part of the time axis a chart opens with: all of it, or as much as keeps bars visible.

    A browser widens a bar to a whole pixel, so that at full width many short bars would hide each
    other; the opening leaves the median bar about three pixels.
    """
    length = view.bars.end - view.bars.start
    if not len(length):
        return view.window
    first, last = view.window
    room = max(int(_PIXELS / 3 * float(np.median(length))), 1)
    return first, min(last, first + room)


def _bar_traces(view: Timeline) -> list[dict[str, Json]]:
    bars = view.bars
    sort = (bars.actions.kind * view.num_chunks + bars.chunk) * len(Lane) + bars.lane
    traces: list[dict[str, Json]] = []
    named: set[str] = set()
    for which in np.unique(sort).tolist():
        rows, lane = np.flatnonzero(sort == which), Lane(which % len(Lane))
        kind = Kind(which // len(Lane) // view.num_chunks)
        chunk = which // len(Lane) % view.num_chunks
        words = WORDS[kind] + (f", chunk {chunk}" if view.num_chunks > 1 else "")
        traces.append(_bar_trace(view, bars.take(rows), kind, chunk, lane, words))
        traces[-1]["showlegend"] = words not in named
        named.add(words)
    return traces


def _bar_trace(
    view: Timeline, bars: Bars, kind: Kind, chunk: int, lane: Lane, words: str
) -> dict[str, Json]:
    colour = fill(kind, chunk=chunk, num_chunks=view.num_chunks)
    offset = 0.0 if lane is Lane.LOWER else -_THICKNESS / 2
    return {
        "type": "bar",
        "orientation": "h",
        "name": words,
        "legendgroup": words,
        "base": bars.start.tolist(),
        "x": (bars.end - bars.start).tolist(),
        "y": bars.row.tolist(),
        "offset": offset,
        "width": _THICKNESS if lane is Lane.WHOLE else _THICKNESS / 2,
        "marker": {"color": colour, "line": {"width": 0}},
        "text": [*bars.numbers()],
        "textposition": "inside",
        "insidetextanchor": "middle",
        "textangle": 0,
        "insidetextfont": {"color": text_on(colour)},
        "hovertext": _hover(view, bars),
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _frames(spans: Spans, name: str) -> dict[str, Json]:
    """Red frames around what no correct schedule has."""
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "base": spans.start.tolist(),
        "x": (spans.end - spans.start).tolist(),
        "y": spans.row.tolist(),
        "width": 1,
        "marker": {"color": "rgba(0,0,0,0)", "line": {"width": 2, "color": CLASH}},
        "hoverinfo": "skip",
    }


def _hover(view: Timeline, bars: Bars) -> list[Json]:
    """What the pointer shows of each bar: action, rank, stage, microbatch, start, end, duration."""
    unit, actions = _plain(plural(view.unit)), bars.actions
    rows = [*map(_plain, view.rows)]
    texts: list[Json] = []
    for bar in range(len(bars)):
        start, end = int(bars.start[bar]), int(bars.end[bar])
        action = actions[bar]
        slice_ = f", slice {action.slice}" if actions.is_sliced else ""
        texts.append(
            f"<b>{action.label(sliced=actions.is_sliced)}</b> on {rows[int(bars.row[bar])]}"
            f"<br>stage {action.stage}, microbatch {action.microbatch}{slice_}"
            f"<br>start {start:,}, end {end:,}, duration {end - start:,} {unit}"
        )
    return texts


def _memory_trace(view: Timeline, curve: MemoryCurve, index: int, scale: Scale) -> dict[str, Json]:
    loads = [load / scale.divisor for load in curve.load.tolist()]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": curve.name,
        "x": curve.time.tolist(),
        "y": [*loads],
        "line": {"shape": "hv", "width": 1.3, "color": _MEMORY_LINE},
        "fill": "tozeroy",
        "fillcolor": "rgba(111,139,171,0.25)",
        "yaxis": f"y{index + 2}",
        "showlegend": False,
        "hovertemplate": f"%{{x:,}} {_plain(plural(view.unit))}: %{{y:,}} {scale.name}"
        "<extra></extra>",
    }


def _layout(view: Timeline, scale: Scale) -> dict[str, Json]:
    rows, curves = len(view.rows), len(view.memory)
    chart = max(rows * _ROW, 90) if rows <= 24 else 24 * _ROW
    inner = chart + (_GAP + curves * _CURVE if curves else 0)
    layout: dict[str, Json] = {
        "barmode": "overlay",
        "height": inner + _TOP + _BOTTOM,
        "margin": {"l": 86, "r": 190, "t": _TOP, "b": _BOTTOM},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"size": 12},
        "uniformtext": {"mode": "hide", "minsize": 8},
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "traceorder": "normal"},
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": "#8a929b", "activecolor": "#2f62b8"},
        "hoverlabel": {"align": "left"},
        "xaxis": {
            "title": {"text": f"time ({_plain(plural(view.unit))})", "standoff": 6},
            "range": [*opening_window(view)],
            "anchor": f"y{curves + 1}" if curves else "y",
            "zeroline": False,
            "tickformat": ",d",
        },
        "yaxis": {
            "range": [rows - 0.5, -0.5],
            "tickvals": [*range(rows)],
            "ticktext": [*map(_plain, view.rows)],
            "domain": [1 - chart / inner, 1],
            "showgrid": False,
            "zeroline": False,
            "fixedrange": True,
        },
        "shapes": _capacity_lines(view, scale),
        "annotations": [*_annotations(view, scale, chart, inner)],
    }
    top = max(max((c.top for c in view.memory), default=1), 1) / scale.divisor
    for index in range(curves):
        high = 1 - (chart + _GAP + index * _CURVE) / inner
        layout[f"yaxis{index + 2}"] = {
            "domain": [max(high - (_CURVE - 12) / inner, 0), high],
            "range": [0, top * 1.1],
            "nticks": 3,
            "zeroline": False,
            "fixedrange": True,
        }
    return layout


def _capacity_lines(view: Timeline, scale: Scale) -> list[Json]:
    """A dashed line at each store's capacity."""
    lines: list[Json] = []
    for index, curve in enumerate(view.memory):
        if curve.capacity is not None:
            cap = curve.capacity / scale.divisor
            line: dict[str, Json] = {
                "type": "line",
                "xref": "paper",
                "x0": 0,
                "x1": 1,
                "yref": f"y{index + 2}",
                "y0": cap,
                "y1": cap,
                "line": {"color": _OVER, "width": 1.3, "dash": "dash"},
            }
            lines.append(line)
    return lines


def _annotations(view: Timeline, scale: Scale, chart: int, inner: int) -> list[dict[str, Json]]:
    """The memory heading, and each store's name, peak and capacity to the right of its curve."""
    if not view.memory:
        return []
    heading: dict[str, Json] = {"text": f"<b>Memory ({scale.name})</b>", "x": 0, "xanchor": "left"}
    notes: list[dict[str, Json]] = [
        _paper(y=1 - (chart + _GAP - 6) / inner, yanchor="bottom") | heading
    ]
    for index, curve in enumerate(view.memory):
        name = _plain(curve.name.removeprefix("memory of "))
        peak = f"peak {scale.amount(curve.peak)}"
        cap = "" if curve.capacity is None else f"<br>cap {scale.number(curve.capacity)}"
        words = f"{name}: <span style='color:{_OVER}'>{peak}</span>" if curve.is_over else ""
        words = words or f"{name}: {peak}"
        y = 1 - (chart + _GAP + index * _CURVE) / inner
        notes.append(
            _paper(y=y, yanchor="top")
            | {"text": words + cap, "x": 1.01, "xanchor": "left", "align": "left"}
        )
    return notes


def _paper(*, y: float, yanchor: str) -> dict[str, Json]:
    return {"xref": "paper", "yref": "paper", "y": y, "yanchor": yanchor, "showarrow": False}


def _plain(text: str) -> str:
    """The text with what plotly reads as markup made harmless."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
