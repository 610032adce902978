"""The upper panel: a row per rank, a bar per action, its microbatch inside wherever it fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bubbleproof.report.bars import Lane
from bubbleproof.report.extras import need
from bubbleproof.report.palette import CLASH, IDLE, fill, text_on
from bubbleproof.report.timeline import Spans, Timeline
from bubbleproof.theory.model.actions import Ints, Kind
from bubbleproof.theory.pipelines.units import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.float64]

THICKNESS = 0.84  # of a row's height
_POINTS = 72.0
_GLYPH = 0.64  # the width of a digit, as a share of the font size


def chart_panel(axes: Axes, view: Timeline, *, inches: tuple[float, float]) -> None:
    """Fill axes of the given width and height in inches: rank 0 on top, time to the right."""
    rows = len(view.rows)
    axes.set_ylim(rows - 0.5, -0.5)
    axes.margins(0)
    _row_names(axes, view, inches[1] / rows * _POINTS)
    axes.tick_params(axis="x", labelsize=8, length=3)
    axes.tick_params(axis="y", labelsize=8, length=0)
    time_axis(axes, view)
    axes.set_xlabel(f"time ({plural(view.unit)})", fontsize=8, labelpad=1.5)
    tick = inches[0] * _POINTS / (view.window[1] - view.window[0])
    _idle(axes, view)
    _bars(axes, view, edge=_edge_width(view, tick))
    _frames(axes, view.clashes, "clashes")
    _frames(axes, view.waiting, "waiting")
    _numbers(axes, view, points_per_tick=tick, points_per_row=inches[1] / rows * _POINTS)


def time_axis(axes: Axes, view: Timeline, *, marks: int = 9) -> None:
    """Whole ticks along the window, about ``marks`` of them."""
    axes.set_xlim(*view.window)
    axes.xaxis.set_major_locator(need("matplotlib.ticker").MaxNLocator(marks, integer=True))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def _row_names(axes: Axes, view: Timeline, points_per_row: float) -> None:
    """Every row's name, or every n-th where rows are too low for text."""
    step = max(1, int(np.ceil(9.5 / points_per_row)))
    named = range(0, len(view.rows), step)
    axes.set_yticks(list(named), [view.rows[r][:14] for r in named], parse_math=False)


def _edge_width(view: Timeline, points_per_tick: float) -> float:
    """A white edge between bars that are wide enough to have one, in points."""
    width = (view.bars.end - view.bars.start)[view.bars.end > view.bars.start]
    typical = float(np.median(width)) * points_per_tick if len(width) else 0.0
    return 0.7 if typical > 5 else 0.3 if typical > 2 else 0.0


def _idle(axes: Axes, view: Timeline) -> None:
    gaps = view.gaps
    _rectangles(
        axes,
        gaps.start,
        gaps.end,
        gaps.row.astype(np.float64) - THICKNESS / 2,
        THICKNESS,
        colour=IDLE,
        name="idle",
    )


def _bars(axes: Axes, view: Timeline, *, edge: float) -> None:
    bars = view.bars
    sort = bars.actions.kind * view.num_chunks + bars.chunk
    middle = bars.row.astype(np.float64)
    top: Floats = np.where(bars.lane == Lane.LOWER, middle, middle - THICKNESS / 2)
    height = np.where(bars.lane == Lane.WHOLE, THICKNESS, THICKNESS / 2)
    for which in np.unique(sort).tolist():
        kind, chunk = Kind(which // view.num_chunks), which % view.num_chunks
        rows = np.flatnonzero(sort == which)
        _rectangles(
            axes,
            bars.start[rows],
            bars.end[rows],
            top[rows],
            height[rows],
            colour=fill(kind, chunk=chunk, num_chunks=view.num_chunks),
            name=f"bars-{kind.name}-{chunk}",
            edge=edge,
        )


def _frames(axes: Axes, spans: Spans, name: str) -> None:
    """What no correct schedule has, in hatched frames."""
    _rectangles(
        axes,
        spans.start,
        spans.end,
        spans.row.astype(np.float64) - 0.5,
        1.0,
        colour="none",
        name=name,
        edge=1.2,
        edge_colour=CLASH,
        hatch="////",
    )


def _rectangles(
    axes: Axes,
    start: Ints,
    end: Ints,
    top: Floats,
    height: Floats | float,
    *,
    colour: str,
    name: str,
    edge: float = 0.0,
    edge_colour: str = "#ffffff",
    hatch: str | None = None,
) -> None:
    """One collection of rectangles; one of no length becomes a line of its colour."""
    if not len(start):
        return
    bottom = top + height
    corners = np.stack(
        [
            np.stack([start, top], axis=1),
            np.stack([end, top], axis=1),
            np.stack([end, bottom], axis=1),
            np.stack([start, bottom], axis=1),
        ],
        axis=1,
    )
    is_line = end == start
    collection = need("matplotlib.collections").PolyCollection(
        corners,
        facecolors=colour,
        edgecolors=[colour if line else edge_colour for line in is_line.tolist()],
        linewidths=np.where(is_line, 1.0, edge).tolist(),
        hatch=hatch,
    )
    collection.set_gid(name)
    axes.add_collection(collection, autolim=False)


def _numbers(axes: Axes, view: Timeline, *, points_per_tick: float, points_per_row: float) -> None:
    """The microbatch in each bar whose width and height hold it."""
    bars = view.bars
    low, high = np.maximum(bars.start, view.window[0]), np.minimum(bars.end, view.window[1])
    room = (high - low) * points_per_tick - 2.5
    share = np.where(bars.lane == Lane.WHOLE, THICKNESS, THICKNESS / 2) * points_per_row
    offset = np.select([bars.lane == Lane.UPPER, bars.lane == Lane.LOWER], [-0.25, 0.25], 0.0)
    texts = bars.numbers()
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    size = np.minimum(np.minimum(8.0, share * 0.75), room / (np.maximum(lengths, 1) * _GLYPH))
    for bar in np.flatnonzero((size >= 4.5) & (lengths > 0)).tolist():
        kind = Kind(int(bars.actions.kind[bar]))
        colour = fill(kind, chunk=int(bars.chunk[bar]), num_chunks=view.num_chunks)
        axes.text(
            (low[bar] + high[bar]) / 2,
            bars.row[bar] + offset[bar] * THICKNESS,
            texts[bar],
            fontsize=round(float(size[bar]), 1),
            color=text_on(colour),
            ha="center",
            va="center_baseline",
            gid=f"number-{bar}",
        )
