"""The chart a page shows: bars and memory curves as a plotly figure in plain data.

The figure is the dictionary that plotly's own script draws, so that building it needs no plotly.
Row r of the timeline lies at y = r, rank 0 on top; memory curves share the time axis below it.

The chart opens with the whole window. A browser widens a bar to a whole pixel, so bars are drawn
only where the typical one has two pixels. Below that cells stand in their place (``cells.py``), in
as many levels, each twice as coarse, as it takes until the coarsest has two pixels where the whole
window lies on a narrow screen. A trace of bars says in ``meta.cell`` what its cells take in ticks
(0: these are actions), and the page's script shows the finest level that can be seen.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from bubbleproof.report.amounts import Scale
from bubbleproof.report.bars import BarLane, Bars
from bubbleproof.report.memory_curves import MemoryCurve
from bubbleproof.report.palette import CLASH, WORDS, fill, text_on
from bubbleproof.report.timeline import Spans, Timeline
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.pipelines.units import plural

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]

_ROW, _CURVE, _TOP, _GAP, _BOTTOM = 30, 62, 62, 46, 46  # pixels
_NARROW = 240  # pixels: the time axis on a narrow screen
_SEEN = 2  # pixels that a bar needs
_MOST_CELLS = 4096  # side by side: finer ones are seen where the chart is zoomed, as blocks
_THICKNESS = 0.86
_MEMORY_LINE = "#6f8bab"
_OVER = "#d9534a"  # readable on white and on dark ground


def figure(view: Timeline) -> dict[str, Json]:
    """The figure of a timeline: ``data`` and ``layout`` as plotly reads them."""
    data: list[Json] = [*_bar_traces(view)]
    for spans, name in ((view.clashes, "two actions at once"), (view.waiting, "never starts")):
        if len(spans):
            data.append(_frames(spans, name))
    rows, curves = len(view.rows), len(view.memory)
    chart = max(rows * _ROW, 90) if rows <= 24 else 24 * _ROW
    inner = chart + (_GAP + curves * _CURVE if curves else 0)
    layout = _layout(view, chart, inner)
    shapes: list[Json] = []
    notes: list[Json] = []
    scale = Scale.of(_plain(view.memory_unit), max((c.top for c in view.memory), default=0))
    if curves:
        head: dict[str, Json] = {"text": f"<b>Memory ({scale.name})</b>", "x": 0, "xanchor": "left"}
        notes.append(_paper(y=1 - (chart + _GAP - 6) / inner, yanchor="bottom") | head)
    top = max(max((c.top for c in view.memory), default=1), 1) / scale.divisor
    for index, curve in enumerate(view.memory):
        high, axis = 1 - (chart + _GAP + index * _CURVE) / inner, f"y{index + 2}"
        data.append(_memory_trace(view, curve, axis, scale))
        layout[f"yaxis{index + 2}"] = {
            "domain": [max(high - (_CURVE - 12) / inner, 0), high],
            "range": [0, top * 1.1],
            "nticks": 3,
            "zeroline": False,
            "fixedrange": True,
        }
        if curve.capacity is not None:
            shapes.append(_capacity_line(curve.capacity / scale.divisor, axis))
        words: dict[str, Json] = {"text": _words(curve, scale), "x": 1.01, "xanchor": "left"}
        notes.append(_paper(y=high, yanchor="top") | words | {"align": "left"})
    layout |= {"shapes": shapes, "annotations": notes, "meta": {"typical": view.typical_ticks}}
    return {"data": data, "layout": layout}


def levels(view: Timeline) -> list[int]:
    """The lengths of cells in ticks, each the double of the one before; 0 stands for actions."""
    first, last = view.window
    coarsest = _SEEN * (last - first) / _NARROW
    found, cell = [0], max(ceil(view.typical_ticks), -(-(last - first) // _MOST_CELLS))
    while view.typical_ticks < coarsest and found[-1] < coarsest:
        found.append(cell)
        cell *= 2
    return found


def _bar_traces(view: Timeline) -> list[dict[str, Json]]:
    traces = []
    for cell in levels(view):
        shown = view if cell == 0 else view.of_cells(cell)
        for trace in _traces_of_level(shown):
            traces.append(trace | {"meta": {"cell": cell}, "visible": cell == 0})
    return traces


def _traces_of_level(view: Timeline) -> list[dict[str, Json]]:
    traces: list[dict[str, Json]] = []
    named: set[str] = set()
    for kind, chunk, bars in view.bars.by_kind():
        words = WORDS[kind] + (f", chunk {chunk}" if view.num_chunks > 1 else "")
        for lane in map(BarLane, np.unique(bars.lane).tolist()):
            own = bars.take(bars.lane == lane)
            traces.append(_bar_trace(view, own, kind, chunk, lane, words))
            traces[-1]["showlegend"] = words not in named
            named.add(words)
    return traces


def _bar_trace(
    view: Timeline, bars: Bars, kind: Kind, chunk: int, lane: BarLane, words: str
) -> dict[str, Json]:
    colour = fill(kind, chunk=chunk, num_chunks=view.num_chunks)
    return _boxes(bars, words) | {
        "legendgroup": words,
        "offset": 0.0 if lane is BarLane.LOWER else -_THICKNESS / 2,
        "width": _THICKNESS if lane is BarLane.WHOLE else _THICKNESS / 2,
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
    marker: Json = {"color": "rgba(0,0,0,0)", "line": {"width": 2, "color": CLASH}}
    return _boxes(spans, name) | {"width": 1, "marker": marker, "hoverinfo": "skip"}


def _boxes(spans: Bars | Spans, name: str) -> dict[str, Json]:
    """A trace of bars along the time axis."""
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "base": spans.start.tolist(),
        "x": (spans.end - spans.start).tolist(),
        "y": spans.row.tolist(),
    }


def _hover(view: Timeline, bars: Bars) -> list[Json]:
    """What the pointer shows of each bar: action, rank, stage, microbatch, start, end, duration.

    Of cells only the kind and where they lie.
    """
    unit, actions = _plain(plural(view.unit)), bars.actions
    rows = [*map(_plain, view.rows)]
    texts: list[Json] = []
    for bar in range(len(bars)):
        start, end = int(bars.start[bar]), int(bars.end[bar])
        if view.is_thinned:
            kind = Kind(int(actions.kind[bar])).name
            texts.append(f"{kind} on {rows[int(bars.row[bar])]}<br>zoom in to see single actions")
            continue
        action = actions[bar]
        slice_ = f", slice {action.slice}" if actions.is_sliced else ""
        texts.append(
            f"<b>{action.label(sliced=actions.is_sliced)}</b> on {rows[int(bars.row[bar])]}"
            f"<br>stage {action.stage}, microbatch {action.microbatch}{slice_}"
            f"<br>start {start:,}, end {end:,}, duration {end - start:,} {unit}"
        )
    return texts


def _memory_trace(view: Timeline, curve: MemoryCurve, axis: str, scale: Scale) -> dict[str, Json]:
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
        "yaxis": axis,
        "showlegend": False,
        "hovertemplate": f"%{{x:,}} {_plain(plural(view.unit))}: %{{y:,}} {scale.name}"
        "<extra></extra>",
    }


def _layout(view: Timeline, chart: int, inner: int) -> dict[str, Json]:
    """The layout of the chart, ``chart`` of ``inner`` pixels high."""
    rows, curves = len(view.rows), len(view.memory)
    return {
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
            "range": [*view.window],
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
    }


def _capacity_line(capacity: float, axis: str) -> dict[str, Json]:
    """A dashed line at a store's capacity."""
    line: Json = {"color": _OVER, "width": 1.3, "dash": "dash"}
    ends: dict[str, Json] = {"x0": 0, "x1": 1, "y0": capacity, "y1": capacity}
    return {"type": "line", "xref": "paper", "yref": axis, "line": line, **ends}


def _words(curve: MemoryCurve, scale: Scale) -> str:
    """A store's name, peak and capacity, which stand to the right of its curve."""
    peak = f"peak {scale.amount(curve.peak)}"
    if curve.is_over:
        peak = f"<span style='color:{_OVER}'>{peak}</span>"
    cap = "" if curve.capacity is None else f"<br>cap {scale.number(curve.capacity)}"
    return f"{_plain(curve.name.removeprefix('memory of '))}: {peak}{cap}"


def _paper(*, y: float, yanchor: str) -> dict[str, Json]:
    return {"xref": "paper", "yref": "paper", "y": y, "yanchor": yanchor, "showarrow": False}


def _plain(text: str) -> str:
    """The text with what plotly reads as markup made harmless."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
