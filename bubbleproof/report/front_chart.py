"""The picture of a Pareto front: makespan against peak memory, published schedules as named points.

The front is a staircase: at every peak on the axis, the least makespan of the problem in its own
shape. A published schedule of that shape lies on it or above, by what its order wastes; one of
another shape (more chunks, split backwards) may lie below. Axes are logarithmic where their values
span more than a factor of three.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bubbleproof.formats.files import FilePath, write_text
from bubbleproof.report.amounts import Scale, TimeScale
from bubbleproof.report.plot_svg import AxisRange, SvgPlot, around, picture_of

HEIGHT = 340  # pixels
_FRONT, _POINT, _OPEN = "#2f62b8", "#bd3312", "#f0a830"
_LEGEND = (
    (_FRONT, "least makespan at this peak, proved"),
    (_OPEN, "best found at this peak, not proved"),
    (_POINT, "published, numbered by peak"),
)


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
    """Write the picture (.svg) and return its path.

    Raises ``ValueError`` for another ending or no point.
    """
    if Path(path).suffix != ".svg":
        raise ValueError(f"a picture of a front must end in .svg, got {str(path)!r}")
    points = [*front, *published]
    if not points:
        raise ValueError("a picture of a front needs at least one schedule, got none")
    scale = Scale.of(memory_unit, max(point.peak for point in points))
    time = TimeScale.of(unit, max(point.makespan for point in points))
    room = [] if capacity is None else [capacity]
    peaks = [peak / scale.divisor for peak in (*room, *(point.peak for point in points))]
    across = _axis(peaks, f"peak memory of the fullest rank ({scale.name})")
    spans = [time.scaled(point.makespan) for point in points]
    plot = SvgPlot(across, _axis(spans, f"makespan ({time.name})"), height=HEIGHT)
    if room:
        plot.limit(x=peaks[0])
    places = {p: (p.peak / scale.divisor, time.scaled(p.makespan)) for p in points}
    stairs = [places[point] for point in front]
    plot.stairs([*stairs, *((max(peaks), least) for _, least in stairs[-1:])], _FRONT)
    for point in front:
        words = f"{time.amount(point.makespan)} at {scale.amount(point.peak)}"
        plot.point(*places[point], words, _FRONT if point.is_optimal else _OPEN)
    names: dict[tuple[float, float], list[str]] = {}
    for point in published:
        names.setdefault(places[point], []).append(point.name)
    lines = [f"{number}  {', '.join(names[at])}" for number, at in enumerate(sorted(names), 1)]
    for number, at in enumerate(sorted(names), 1):
        plot.point(*at, lines[number - 1], _POINT, size=3.5)
        plot.label(*at, str(number))
    write_text(path, picture_of(plot, title, _LEGEND, lines))
    return Path(path)


def _axis(values: Sequence[float], title: str) -> AxisRange:
    is_log = 0 < 3 * min(values) < max(values)
    return AxisRange(*around(values, is_log=is_log), title, is_log=is_log)
