"""The picture of a schedule for a paper: rank by time above, memory by time below: SVG, PDF, PNG.

Drawn by matplotlib on a figure of its own (no pyplot, no state left behind). An SVG's bytes depend
on the schedule and the library's version alone: its ids have a fixed salt and it holds no date. A
PDF embeds the letters it uses (TrueType), an SVG names its fonts.
Bars of one kind and chunk form a group ``bars-<KIND>-<chunk>`` in the SVG.

The legend: the kinds and chunks a picture shows, in the field's words.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bubbleproof.formats.files import FilePath, write_bytes
from bubbleproof.formats.printable import on_one_line
from bubbleproof.report.amounts import Scale
from bubbleproof.report.chart import chart_panel, memory_panel
from bubbleproof.report.extras import need
from bubbleproof.report.palette import CLASH, IDLE, WORDS, fill, shade
from bubbleproof.report.timeline import Timeline, Window, timeline
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.programs.standstill import Standstill
from bubbleproof.theory.pipelines.units import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SHADES = 4  # with more chunks the legend names the first and the last only


def legend_entries(view: Timeline) -> list[tuple[str, str]]:
    """(colour, words) of each kind in the picture, of idle time, clashes and chunks."""
    kinds = [Kind(k) for k in np.unique(view.bars.actions.kind).tolist()]
    entries = [(fill(kind), WORDS[kind]) for kind in kinds]
    if len(view.gaps):
        entries.append((IDLE, "idle"))
    if len(view.clashes):
        entries.append((CLASH, "two actions at once"))
    if len(view.waiting):
        entries.append((CLASH, "never starts"))
    chunks = range(view.num_chunks) if view.num_chunks > 1 else range(0)
    named = chunks if len(chunks) <= _SHADES else (0, len(chunks) - 1)
    return entries + [(shade(c, view.num_chunks), f"chunk {c} (shade)") for c in named]


def legend_lines(entries: list[tuple[str, str]], inches: float) -> list[list[tuple[str, str]]]:
    """The entries in lines that fit the width, by an estimate of 8 point text."""
    lines: list[list[tuple[str, str]]] = []
    room = 0.0
    for entry in entries:
        width = 0.35 + 0.068 * len(entry[1])
        if not lines or width > room:
            lines.append([])
            room = inches
        lines[-1].append(entry)
        room -= width
    return lines


FORMATS = ("svg", "pdf", "png")
WIDTH = 10.0  # inches, as are all lengths below
MILLIMETRE = 1 / 25.4
LEAST_MM, MOST_MM = 60, 600
_NARROW = 6.0  # below, the margins are those of a column
_LETTER = 0.55  # the width of a letter, as a share of the font size
RESOLVED = 500  # cells side by side: three of a PNG's pixels each
STACKED = 8  # up to so many memory curves stand under one another on the chart's time axis
_COLUMNS = 4
_MAX_TITLE = 160  # characters; a longer title ends in an ellipsis
STYLE = {
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
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


_METADATA: dict[str, dict[str, str | None]] = {
    "svg": {"Date": None, "Creator": "bubbleproof"},
    "pdf": {"CreationDate": None, "Creator": "bubbleproof"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """Heights of the figure's parts in inches, from the top down."""

    header: float
    chart: float
    memory: float
    notes: float
    panel: float
    width: float
    left: float
    right: float

    def size(self, most: float, text: str) -> float:
        """The font size at which a line fits beside the left margin, ``most`` points at most."""
        return min(most, (self.width - self.left) * 72 / (_LETTER * max(len(text), 1)))

    @staticmethod
    def margins(width: float) -> tuple[float, float]:
        """Those to the left and right of the chart."""
        return (0.95, 1.3) if width >= _NARROW else (0.7, 0.85)

    @property
    def total(self) -> float:
        axis = 0.62 if self.memory else 0.5
        return self.header + self.chart + axis + self.memory + self.notes

    @classmethod
    def of(cls, view: Timeline, legend_lines: int, width: float) -> _Layout:
        left, right = cls.margins(width)
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
            width=width,
            left=left,
            right=right,
        )


def draw(
    problem: Problem,
    schedule: Schedule,
    path: FilePath,
    *,
    title: str = "Schedule",
    window: Window | None = None,
    stopped: Standstill | None = None,
    width_mm: float | None = None,
) -> Path:
    """Draw a schedule to ``path``, whose ending chooses SVG, PDF or PNG, and return the path.

    ``window`` (ticks) draws only what lies between its two ends; ``width_mm`` is the picture's
    width (None: 254). Raises ``ValueError`` for another ending, an empty window, a width outside
    ``LEAST_MM`` to ``MOST_MM``, or when matplotlib is not installed.
    """
    ending = Path(path).suffix.lower().lstrip(".")
    if ending not in FORMATS:
        raise ValueError(f"a picture ends in .svg, .pdf or .png, got {str(path)!r}")
    view = timeline(problem, schedule, window=window, stopped=stopped)
    return write_bytes(path, picture(view, title=title, format=ending, width_mm=width_mm))


def require_width(width_mm: float) -> None:
    """Raise ``ValueError`` for a width that no picture has."""
    if not LEAST_MM <= width_mm <= MOST_MM:
        raise ValueError(
            f"a picture's width must be {LEAST_MM} to {MOST_MM} mm, got {width_mm:g}; "
            "a column of a paper has about 85"
        )


def picture(
    view: Timeline,
    *,
    title: str,
    format: str = "svg",  # noqa: A002 - as savefig
    width_mm: float | None = None,
) -> bytes:
    """The picture of a timeline as the bytes of an ``svg``, ``pdf`` or ``png`` file."""
    if width_mm is not None:
        require_width(width_mm)
    width = WIDTH if width_mm is None else width_mm * MILLIMETRE
    target, title, view = io.BytesIO(), on_one_line(title), view.resolved(RESOLVED)
    with need("matplotlib.style").context(["default", STYLE]):
        metadata = _METADATA.get(format, {})
        _figure(view, title, width).savefig(target, format=format, dpi=200, metadata=metadata)
    return _lighter(target.getvalue()) if format == "svg" else target.getvalue()


def _lighter(svg: bytes) -> bytes:
    """The same picture in fewer bytes: hundredths of a point, one font, sides as steps."""
    text = re.sub(r"\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}", svg.decode())
    text = re.sub(r' transform="rotate\(-0 [^"]*\)"', "", text)
    text = re.sub(r" ?\n(?=[LzMC])", " ", text)
    text = re.sub(
        r"M (\S+) (\S+) L (\S+) \2 L \3 (\S+) L \1 \4 z", r"M \1 \2 H \3 V \4 H \1 z", text
    )
    text = re.sub(r"\n\s+", "\n", text)
    fonts = re.search(r"font-family: [^;\"]*; ", text)
    if fonts is not None:
        text = text.replace(fonts[0], "").replace("<svg ", f'<svg style="{fonts[0].strip()}" ', 1)
    return text.encode()


def _figure(view: Timeline, title: str, width: float) -> Figure:
    entries = legend_entries(view)
    lines = legend_lines(entries, width - _Layout.margins(width)[0])
    layout = _Layout.of(view, len(lines), width)
    figure: Figure = need("matplotlib.figure").Figure(
        figsize=(width, layout.total), facecolor="white"
    )
    _header(figure, view, title, layout)
    _legend(figure, lines, layout)
    chart = _axes(figure, layout, top=layout.header, height=layout.chart, name="chart")
    chart_panel(chart, view, inches=(width - layout.left - layout.right, layout.chart))
    _memory(figure, view, layout)
    for line, note in enumerate(reversed(view.notes)):
        down = layout.total - 0.09 - 0.17 * line
        _say(
            figure,
            layout,
            down,
            note,
            fontsize=layout.size(7.5, note),
            fontstyle="italic",
            color="#444444",
        )
    return figure


def _header(figure: Figure, view: Timeline, title: str, layout: _Layout) -> None:
    size = max(6.0, min(11.0, (layout.width - layout.left) * 72 / (0.66 * max(len(title), 1))))
    text = title if len(title) <= _MAX_TITLE else title[: _MAX_TITLE - 1] + "\u2026"
    _say(figure, layout, 0.26, text, fontsize=size, fontweight="bold", gid="title")
    facts = view.facts.replace(", ", ",  ")
    _say(
        figure, layout, 0.47, facts, fontsize=layout.size(8.5, facts), color="#444444", gid="facts"
    )


def _say(figure: Figure, layout: _Layout, down: float, text: str, **style: Any) -> None:
    """Text at the chart's left edge, so many inches from the figure's top."""
    figure.text(
        layout.left / layout.width, 1 - down / layout.total, text, parse_math=False, **style
    )


def _legend(figure: Figure, lines: list[list[tuple[str, str]]], layout: _Layout) -> None:
    patch = need("matplotlib.patches").Patch
    for number, entries in enumerate(lines):
        legend = figure.legend(
            handles=[
                patch(facecolor=colour, edgecolor="#777777", linewidth=0.4, label=words)
                for colour, words in entries
            ],
            loc="upper left",
            bbox_to_anchor=(layout.left / layout.width, 1 - (0.59 + 0.2 * number) / layout.total),
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
    pitch = (layout.width - layout.left - (layout.right if stacked else 0.3)) / columns
    lines = -(-len(view.memory) // columns)
    for index in range(len(view.memory)):
        line, column = divmod(index, columns)
        axes = _axes(
            figure,
            layout,
            top=top + line * layout.panel + (0.0 if stacked else 0.16),
            height=layout.panel - (0.12 if stacked else 0.34),
            left=layout.left + column * pitch,
            width=pitch - (0.0 if stacked else 0.35),
            name=f"memory-axes-{index}",
        )
        memory_panel(axes, view, index, scale=scale, is_stacked=stacked, gutter=layout.right - 0.1)
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
    left: float | None = None,
    width: float | None = None,
) -> Axes:
    """Axes by their distance from the figure's top and left in inches."""
    begin = layout.left if left is None else left
    wide = layout.width - layout.left - layout.right if width is None else width
    whole, bottom = layout.width, layout.total - top - height
    axes = figure.add_axes(
        (begin / whole, bottom / layout.total, wide / whole, height / layout.total)
    )
    axes.set_gid(name)
    axes.spines[["top", "right"]].set_visible(False)
    return axes
