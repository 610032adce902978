"""The picture of a schedule for a paper: rank by time above, memory by time below, as SVG or PNG.

Drawn by matplotlib on a figure of its own (no pyplot, no state left behind). An SVG's bytes depend
on the schedule and the library's version alone: its ids have a fixed salt and it holds no date.
Bars of one kind and chunk form a group ``bars-<KIND>-<chunk>`` in the SVG.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bubbleproof.formats.files import FilePath, write_bytes
from bubbleproof.formats.printable import on_one_line
from bubbleproof.report.amounts import Scale
from bubbleproof.report.chart import chart_panel, memory_panel
from bubbleproof.report.extras import need
from bubbleproof.report.legend import legend_entries, legend_lines
from bubbleproof.report.timeline import Timeline, Window, timeline
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.programs.standstill import Standstill
from bubbleproof.theory.pipelines.units import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("svg", "png")
WIDTH = 10.0  # inches, as are all lengths below
LEFT, RIGHT = 0.95, 1.3
RESOLVED = 500  # cells side by side: three of a PNG's pixels each
STACKED = 8  # up to so many memory curves stand under one another on the chart's time axis
_COLUMNS = 4
_MAX_TITLE = 160  # characters; a longer title ends in an ellipsis
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "bubbleproof",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": 8.0,
    "axes.linewidth": 0.6,
    "axes.edgecolor": "#555555",
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "path.simplify": False,
    "text.parse_math": False,  # a name may hold a dollar sign
}


_LEGEND: dict[str, Any] = {
    "frameon": False,
    "fontsize": 8,
    "handlelength": 1.1,
    "handleheight": 0.9,
    "columnspacing": 1.3,
    "handletextpad": 0.45,
    "borderpad": 0,
    "borderaxespad": 0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """Heights of the figure's parts in inches, from the top down."""

    header: float
    chart: float
    memory: float
    notes: float
    panel: float

    @property
    def total(self) -> float:
        axis = 0.62 if self.memory else 0.5
        return self.header + self.chart + axis + self.memory + self.notes

    @classmethod
    def of(cls, view: Timeline, legend_lines: int) -> _Layout:
        rows, curves = len(view.rows), len(view.memory)
        stacked = curves <= STACKED
        panel = 0.5 if stacked else 0.95
        lines = curves if stacked else -(-curves // _COLUMNS)
        return cls(
            header=0.7 + 0.2 * legend_lines,
            chart=min(max(0.34 * rows, 0.7), 7.5),
            memory=panel * lines + 0.35 if curves else 0.0,
            notes=0.17 * len(view.notes) + (0.08 if view.notes else 0.0),
            panel=panel,
        )


def draw(
    problem: Problem,
    schedule: Schedule,
    path: FilePath,
    *,
    title: str = "Schedule",
    window: Window | None = None,
    stopped: Standstill | None = None,
) -> Path:
    """Draw a schedule to ``path``, whose ending chooses SVG or PNG, and return the path.

    ``window`` (ticks) draws only what lies between its two ends. Raises ``ValueError`` for another
    ending, an empty window, or when matplotlib is not installed.
    """
    ending = Path(path).suffix.lower().lstrip(".")
    if ending not in FORMATS:
        raise ValueError(f"a picture ends in .svg or .png, got {str(path)!r}")
    view = timeline(problem, schedule, window=window, stopped=stopped)
    return write_bytes(path, picture(view, title=title, format=ending))


def picture(view: Timeline, *, title: str, format: str = "svg") -> bytes:  # noqa: A002 - as savefig
    """The picture of a timeline as the bytes of an ``svg`` or ``png`` file."""
    target, title, view = io.BytesIO(), on_one_line(title), view.resolved(RESOLVED)
    with need("matplotlib.style").context(["default", STYLE]):
        metadata = {"Date": None, "Creator": "bubbleproof"} if format == "svg" else {}
        _figure(view, title).savefig(target, format=format, dpi=200, metadata=metadata)
    return target.getvalue()


def _figure(view: Timeline, title: str) -> Figure:
    entries = legend_entries(view)
    lines = legend_lines(entries, WIDTH - LEFT)
    layout = _Layout.of(view, len(lines))
    figure: Figure = need("matplotlib.figure").Figure(
        figsize=(WIDTH, layout.total), facecolor="white"
    )
    _header(figure, view, title, layout)
    _legend(figure, lines, layout)
    chart = _axes(figure, layout, top=layout.header, height=layout.chart, name="chart")
    chart_panel(chart, view, inches=(WIDTH - LEFT - RIGHT, layout.chart))
    _memory(figure, view, layout)
    for line, note in enumerate(reversed(view.notes)):
        down = layout.total - 0.09 - 0.17 * line
        _say(figure, layout, down, note, fontsize=7.5, fontstyle="italic", color="#444444")
    return figure


def _header(figure: Figure, view: Timeline, title: str, layout: _Layout) -> None:
    size = max(6.0, min(11.0, (WIDTH - LEFT) * 72 / (0.66 * max(len(title), 1))))
    text = title if len(title) <= _MAX_TITLE else title[: _MAX_TITLE - 1] + "\u2026"
    _say(figure, layout, 0.26, text, fontsize=size, fontweight="bold", gid="title")
    facts = view.facts.replace(", ", ",  ")
    _say(figure, layout, 0.47, facts, fontsize=8.5, color="#444444", gid="facts")


def _say(figure: Figure, layout: _Layout, down: float, text: str, **style: Any) -> None:
    """Text at the chart's left edge, so many inches from the figure's top."""
    figure.text(LEFT / WIDTH, 1 - down / layout.total, text, parse_math=False, **style)


def _legend(figure: Figure, lines: list[list[tuple[str, str]]], layout: _Layout) -> None:
    patch = need("matplotlib.patches").Patch
    for number, entries in enumerate(lines):
        legend = figure.legend(
            handles=[
                patch(facecolor=colour, edgecolor="#777777", linewidth=0.4, label=words)
                for colour, words in entries
            ],
            loc="upper left",
            bbox_to_anchor=(LEFT / WIDTH, 1 - (0.59 + 0.2 * number) / layout.total),
            ncols=len(entries),
            **_LEGEND,
        )
        legend.set_gid(f"legend-{number}")


def _memory(figure: Figure, view: Timeline, layout: _Layout) -> None:
    if not view.memory:
        return
    scale = Scale.of(view.memory_unit, max(curve.top for curve in view.memory))
    stacked = len(view.memory) <= STACKED
    top = layout.header + layout.chart + 0.62
    _say(figure, layout, top - 0.1, f"Memory ({scale.name})", fontsize=8.5, fontweight="bold")
    columns = 1 if stacked else _COLUMNS
    pitch = (WIDTH - LEFT - (RIGHT if stacked else 0.3)) / columns
    lines = -(-len(view.memory) // columns)
    for index in range(len(view.memory)):
        line, column = divmod(index, columns)
        axes = _axes(
            figure,
            layout,
            top=top + line * layout.panel + (0.0 if stacked else 0.16),
            height=layout.panel - (0.12 if stacked else 0.34),
            left=LEFT + column * pitch,
            width=pitch - (0.0 if stacked else 0.35),
            name=f"memory-axes-{index}",
        )
        memory_panel(axes, view, index, scale=scale, is_stacked=stacked)
        is_lowest = line == lines - 1 or index + columns >= len(view.memory)
        axes.tick_params(labelbottom=is_lowest)
        if is_lowest:
            axes.set_xlabel(f"time ({plural(view.unit)})", fontsize=8, labelpad=1.5)


def _axes(
    figure: Figure,
    layout: _Layout,
    *,
    top: float,
    height: float,
    name: str,
    left: float = LEFT,
    width: float = WIDTH - LEFT - RIGHT,
) -> Axes:
    """Axes by their distance from the figure's top and left in inches."""
    bottom = layout.total - top - height
    axes = figure.add_axes(
        (left / WIDTH, bottom / layout.total, width / WIDTH, height / layout.total)
    )
    axes.set_gid(name)
    axes.spines[["top", "right"]].set_visible(False)
    return axes
