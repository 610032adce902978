"""Where each deployment of a model lies between time and memory, for the page of a plan.

A deployment of which a schedule was found lies at its iteration and the bytes of a card that it
takes. Of another no schedule lies to the left of its bound, nor below the bytes that one microbatch
needs: that *corner* is shown hollow. The line joins what nothing shown beats in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bubbleproof.report.amounts import Scale
from bubbleproof.report.html import paragraph, section
from bubbleproof.report.plot_svg import AxisRange, SvgPlot, around, key
from bubbleproof.theory.pipelines.units import plural

FOUND, CORNER, LINE = "#bd3312", "#7a8794", "#2f62b8"
HEIGHT = 460  # pixels


@dataclass(frozen=True, slots=True, kw_only=True)
class Corner:
    """A deployment: an iteration in ticks and bytes of a card; both at least, if not found."""

    name: str
    ticks: int
    memory: int
    is_found: bool


def lower_left(points: Sequence[Corner]) -> list[Corner]:
    """Those that no other beats in both, by rising time."""
    front: list[Corner] = []
    for point in sorted(points, key=lambda p: (p.ticks, p.memory)):
        if not front or point.memory < front[-1].memory:
            front.append(point)
    return front


def deployment_corners(points: Sequence[Corner], *, unit: str, capacity: int) -> str:
    """The picture; ``capacity`` are the bytes of a card. Iterations take a tick or more."""
    if not points:
        return ""
    scale = Scale.of("bytes", max((point.memory for point in points), default=0))

    at = capacity / scale.divisor
    across = AxisRange(*around([p.ticks for p in points], is_log=True), _across(unit), is_log=True)
    most = max([at, *(point.memory / scale.divisor for point in points)])
    plot = SvgPlot(across, AxisRange(0, most * 1.06, f"of a card ({scale.name})"), height=HEIGHT)
    plot.limit(y=at)
    front = lower_left(points)
    plot.stairs([(point.ticks, point.memory / scale.divisor) for point in front], LINE)
    for point in sorted(points, key=lambda p: p.is_found):
        colour, size = (FOUND, 6.0) if point.is_found else (CORNER, 3.5)
        place = point.ticks, point.memory / scale.divisor
        plot.point(*place, point.name, colour, size=size, is_open=not point.is_found)
    legend = key(
        [
            (LINE, "not beaten in both"),
            (CORNER, "no schedule is left of it or below"),
            (FOUND, "found"),
        ]
    )
    note = (
        "A mark for each deployment that fits: found, at its iteration and the bytes of the "
        "fullest card; hollow, at its bound and what one microbatch needs. Dotted: the memory of "
        "a card."
    )
    title = "Deployments: iteration against memory"
    return section(title, legend, plot.text, paragraph(note, css="soft"))


def _across(unit: str) -> str:
    return f"iteration ({plural(unit)})"
