"""The picture of a Pareto front: makespan against peak memory, published schedules as named points.

The front is a staircase: at every peak on the axis, the least makespan of the problem in its own
shape. A published schedule of that shape lies on it or above, by what its order wastes; one of
another shape (more chunks, split backwards) may lie below.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bubbleproof.formats.files import FilePath, write_bytes
from bubbleproof.formats.printable import on_one_line
from bubbleproof.report.amounts import Scale
from bubbleproof.report.extras import need
from bubbleproof.report.gantt import STYLE
from bubbleproof.theory.pipelines.units import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = ("svg", "png")
WIDTH, HEIGHT = 9.0, 5.0  # inches
_FRONT, _POINT, _OPEN = "#2f62b8", "#bd3312", "#f0a830"


class FrontPoint(NamedTuple):
    """A schedule on the picture: its peak (memory units) and makespan (ticks).

    ``is_optimal`` says for a point of the front that its makespan is proved least.
    """

    name: str
    peak: int
    makespan: int
    is_optimal: bool = False


def draw_front(
    path: FilePath,
    front: Sequence[FrontPoint],
    published: Sequence[FrontPoint],
    *,
    title: str,
    unit: str,
    memory_unit: str,
    capacity: int | None = None,
) -> Path:
    """Write the picture (.svg or .png) and return its path.

    Raises ``ValueError`` for another ending or no point.
    """
    ending = Path(path).suffix.removeprefix(".")
    if ending not in FORMATS:
        raise ValueError(f"a picture of a front must end in .svg or .png, got {str(path)!r}")
    points = [*front, *published]
    if not points:
        raise ValueError("a picture of a front needs at least one schedule, got none")
    title, unit, memory_unit = map(on_one_line, (title, unit, memory_unit))
    scale = Scale.of(memory_unit, max(point.peak for point in points))
    matplotlib, figures = need("matplotlib"), need("matplotlib.figure")
    with matplotlib.rc_context(STYLE):
        figure = figures.Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
        axes = figure.add_subplot()
        axes.set_title(title, fontsize=10, loc="left", parse_math=False)
        axes.set_xlabel(f"peak memory of the fullest rank ({scale.name})")
        axes.set_ylabel(f"makespan ({plural(unit)})")
        _staircase(axes, front, scale, max(point.peak for point in points))
        _published(axes, published, scale)
        if capacity is not None:
            axes.axvline(capacity / scale.divisor, linestyle="--", color="#555555", linewidth=0.8)
        _stretch(axes, points)
        axes.grid(linewidth=0.3)
        axes.legend(frameon=False)
        buffer = io.BytesIO()
        metadata = {"Date": None} if ending == "svg" else None
        figure.savefig(buffer, format=ending, dpi=150, metadata=metadata)
    return write_bytes(path, buffer.getvalue())


def _staircase(axes: Axes, front: Sequence[FrontPoint], scale: Scale, right: int) -> None:
    if not front:
        return
    peaks = [point.peak / scale.divisor for point in front]
    spans = [point.makespan for point in front]
    end = max(right / scale.divisor, peaks[-1])
    axes.step([*peaks, end], [*spans, spans[-1]], where="post", color=_FRONT, linewidth=1.4)
    for is_optimal, words, colour in (
        (True, "least makespan at this peak, proved", _FRONT),
        (False, "best found at this peak, not proved", _OPEN),
    ):
        rows = [i for i, point in enumerate(front) if point.is_optimal is is_optimal]
        if rows:
            chosen = [peaks[i] for i in rows], [spans[i] for i in rows]
            axes.plot(*chosen, "o", color=colour, markersize=5, label=words)


def _published(axes: Axes, published: Sequence[FrontPoint], scale: Scale) -> None:
    """A numbered mark per place, and the names beside the axes; those that meet share a number."""
    places: dict[tuple[int, int], list[str]] = {}
    for point in published:
        places.setdefault((point.peak, point.makespan), []).append(point.name)
    lines = []
    for number, ((peak, makespan), names) in enumerate(sorted(places.items()), start=1):
        where = peak / scale.divisor, makespan
        label = "published, numbered by peak" if number == 1 else None
        axes.plot(*where, "D", color=_POINT, markersize=4, label=label)
        axes.annotate(
            str(number),
            where,
            xytext=(0, 5 if number % 2 else -5),
            textcoords="offset points",
            fontsize=7,
            ha="center",
            va="bottom" if number % 2 else "top",
        )
        lines.append(f"{number}  {', '.join(names)}")
    axes.text(1.02, 1.0, "\n".join(lines), transform=axes.transAxes, va="top", fontsize=8)


def _stretch(axes: Axes, points: Sequence[FrontPoint]) -> None:
    """Logarithmic axes where the values span more than a factor of three."""
    for set_scale, axis, values in (
        (axes.set_xscale, axes.xaxis, [point.peak for point in points]),
        (axes.set_yscale, axes.yaxis, [point.makespan for point in points]),
    ):
        if min(values) > 0 and max(values) > 3 * min(values):
            set_scale("log")
            axis.set_major_locator(need("matplotlib.ticker").LogLocator(subs=(1, 2, 5)))
            axis.set_minor_formatter(need("matplotlib.ticker").NullFormatter())
        axis.set_major_formatter(_number)


def _number(value: float, _: object) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"
