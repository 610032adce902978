"""The panels of a picture: the chart above, a staircase per memory store below.

The chart has a row per rank, a bar per action, its microbatch inside wherever it fits. A staircase
has the capacity as a line, the peak marked and named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bubbleproof.report.amounts import Scale
from bubbleproof.report.bars import BarLane, Bars
from bubbleproof.report.extras import need
from bubbleproof.report.palette import CAPACITY, CLASH, IDLE, darker, fill, text_on
from bubbleproof.report.timeline import Spans, Timeline
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.pipelines.units import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bubbleproof.report.memory_curves import MemoryCurve

Floats = npt.NDArray[np.float64]

THICKNESS = 0.84  # of a row's height
_POINTS = 72.0
_GLYPH = 0.64  # the width of a digit, as a share of the font size


_LINE, _AREA = "#33475b", "#c9d3de"


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
    _rectangles(axes, view.gaps, name="idle", colour=IDLE)
    seam = _seam_width(view, tick)
    for kind, chunk, bars in view.bars.by_kind():
        colour = fill(kind, chunk=chunk, num_chunks=view.num_chunks)
        _rectangles(axes, bars, name=f"bars-{kind.name}-{chunk}", colour=colour)
        if seam:
            _rectangles(
                axes,
                bars,
                name=f"seams-{kind.name}-{chunk}",
                colour=darker(colour),
                most_ticks=seam / tick,
            )
    for spans, name in ((view.clashes, "clashes"), (view.waiting, "waiting")):
        _frames(axes, spans, name)
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


def _seam_width(view: Timeline, points_per_tick: float) -> float:
    """How wide the line is at which a bar begins, where bars are wide enough for it, in points."""
    typical = view.typical_ticks * points_per_tick
    return 0.7 if typical > 5 else 0.3 if typical > 2 else 0.0


def _frames(axes: Axes, spans: Spans, name: str) -> None:
    """What no correct schedule has, in hatched frames."""
    _rectangles(
        axes,
        spans,
        name=name,
        colour="none",
        edge=1.2,
        thickness=1.0,
        edge_colour=CLASH,
        hatch="////",
    )


def _rectangles(
    axes: Axes,
    spans: Bars | Spans,
    *,
    name: str,
    colour: str,
    most_ticks: float | None = None,
    edge: float = 0.0,
    thickness: float = THICKNESS,
    edge_colour: str = "none",
    hatch: str | None = None,
) -> None:
    """One collection of rectangles; one of no length becomes a line of its colour.

    ``most_ticks`` draws no more than so much of each, from its start, and at most a quarter. Edges
    of pixels are kept, since bars blended with what lies below them would lose their area.
    """
    if not len(spans):
        return
    start, end = spans.start.astype(np.float64), spans.end.astype(np.float64)
    if most_ticks is not None:
        end = start + np.minimum(most_ticks, (end - start) / 4)
    top, height = _heights(spans, thickness)
    corners = [(start, top), (end, top), (end, top + height), (start, top + height)]
    is_line = end == start
    collection = need("matplotlib.collections").PolyCollection(
        np.stack([np.stack(corner, axis=1) for corner in corners], axis=1),
        facecolors=colour,
        edgecolors=[colour if line else edge_colour for line in is_line.tolist()],
        linewidths=np.where(is_line, 1.0, edge).tolist(),
        antialiased=False,
        hatch=hatch,
    )
    collection.set_gid(name)
    axes.add_collection(collection, autolim=False)


def _heights(spans: Bars | Spans, thickness: float) -> tuple[Floats, Floats]:
    """The upper edge and the height of each rectangle, in rows."""
    lane = spans.lane if isinstance(spans, Bars) else np.zeros(len(spans))
    middle = spans.row.astype(np.float64)
    height = np.where(lane == BarLane.WHOLE, thickness, thickness / 2)
    return np.where(lane == BarLane.LOWER, middle, middle - thickness / 2), height


def _numbers(axes: Axes, view: Timeline, *, points_per_tick: float, points_per_row: float) -> None:
    """The microbatch in each bar whose width and height hold it."""
    bars = view.bars
    low, high = np.maximum(bars.start, view.window[0]), np.minimum(bars.end, view.window[1])
    room = (high - low) * points_per_tick - 2.5
    share = np.where(bars.lane == BarLane.WHOLE, THICKNESS, THICKNESS / 2) * points_per_row
    offset = np.select([bars.lane == BarLane.UPPER, bars.lane == BarLane.LOWER], [-0.25, 0.25], 0.0)
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


def memory_panel(
    axes: Axes,
    view: Timeline,
    index: int,
    *,
    scale: Scale,
    is_stacked: bool,
    gutter: float = 1.2,
) -> None:
    """Fill axes with one store's curve. All panels share the scale of the fullest.

    ``gutter`` is the room for words to the right of a stacked one, in inches.
    """
    curve = view.memory[index]
    top = max(max(c.top for c in view.memory), 1) / scale.divisor
    load = curve.load / scale.divisor
    axes.fill_between(curve.time, load, step="post", color=_AREA, linewidth=0)
    axes.step(curve.time, load, where="post", color=_LINE, linewidth=0.9, gid=f"memory-{index}")
    if curve.capacity is not None:
        cap = curve.capacity / scale.divisor
        axes.axhline(
            cap, color=CAPACITY, linewidth=0.9, linestyle=(0, (5, 2)), gid=f"capacity-{index}"
        )
    if view.window[0] <= curve.peak_time < view.window[1]:
        colour = CAPACITY if curve.is_over else _LINE
        peak = curve.peak / scale.divisor
        at, name = [curve.peak_time], f"peak-{index}"
        axes.plot(at, [peak], "o", color=colour, markersize=3.2, clip_on=False, gid=name)
    time_axis(axes, view, marks=9 if is_stacked else 3)
    axes.set_ylim(0, top * 1.12)
    axes.set_yticks(*_levels(top))
    axes.tick_params(labelsize=7.5, length=2.5)
    _words(axes, curve, scale, is_stacked=is_stacked, gutter=gutter)


def _levels(top: float) -> tuple[list[float], list[str]]:
    """Two marks on the load axis: zero and a round number near the top."""
    power = 10.0 ** np.floor(np.log10(top))
    round_top = next(step * power for step in (5, 2, 1) if step * power <= top)
    return [0.0, float(round_top)], ["0", f"{round_top:,g}"]


def _words(
    axes: Axes, curve: MemoryCurve, scale: Scale, *, is_stacked: bool, gutter: float
) -> None:
    """The store's name, its peak with the unit, and its capacity."""
    peak = f"peak {scale.amount(curve.peak)}"
    cap = "" if curve.capacity is None else f"cap {scale.number(curve.capacity)}"
    colour = CAPACITY if curve.is_over else "#222222"
    name = curve.name.removeprefix("memory of ")
    if not is_stacked:
        words = ", ".join(filter(None, [f"{name}: {peak}", cap]))
        axes.set_title(words, fontsize=7.5, color=colour, loc="left", pad=3, parse_math=False)
        return
    axes.set_ylabel(
        name[:14], rotation=0, ha="right", va="center", labelpad=9, fontsize=8, parse_math=False
    )
    for line, (text, shade) in enumerate(((peak, colour), (cap, CAPACITY))):
        axes.annotate(
            text,
            (1, 1),
            xycoords="axes fraction",
            xytext=(6, -7 - 10.5 * line),
            textcoords="offset points",
            fontsize=min(7.5, gutter * 72 / (0.6 * max(len(text), 1))),
            color=shade,
            va="center",
            annotation_clip=False,
        )
