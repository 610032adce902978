"""Where each deployment of a model lies between time and memory, for the page of a plan.

A deployment of which a schedule was found lies at its iteration and the bytes of a card that it
takes. Of another no schedule lies to the left of its bound, nor below the bytes that one microbatch
needs: that *corner* is shown hollow. The line joins what nothing shown beats in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bubbleproof.report.amounts import Scale
from bubbleproof.report.document import plot
from bubbleproof.report.html import paragraph, section
from bubbleproof.report.interactive import Json
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
    """The picture; ``capacity`` are the bytes of a card."""
    scale = Scale.of("bytes", max((point.memory for point in points), default=0))

    def places(shown: Sequence[Corner]) -> dict[str, Json]:
        return {
            "type": "scatter",
            "x": [point.ticks for point in shown],
            "y": [point.memory / scale.divisor for point in shown],
            "text": [point.name for point in shown],
        }

    line = places(lower_left(points)) | {
        "mode": "lines",
        "name": "not beaten in both",
        "line": {"shape": "hv", "color": LINE},
    }
    data: list[Json] = [line]
    for is_found, name, symbol, color in (
        (False, "no schedule is left of it or below", "circle-open", CORNER),
        (True, "found", "diamond", FOUND),
    ):
        data.append(
            places([point for point in points if point.is_found is is_found])
            | {
                "mode": "markers",
                "name": name,
                "marker": {"symbol": symbol, "color": color, "size": 10 if is_found else 6},
            }
        )
    at = capacity / scale.divisor
    layout: dict[str, Json] = {
        "height": HEIGHT,
        "margin": {"l": 80, "r": 20, "t": 30, "b": 60},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "legend": {"orientation": "h", "y": 1.08},
        "xaxis": {"type": "log", "title": {"text": f"iteration ({plural(unit)})"}},
        "yaxis": {"title": {"text": f"of a card ({scale.name})"}, "rangemode": "tozero"},
        "shapes": [
            {
                "type": "line",
                "x0": 0,
                "x1": 1,
                "xref": "paper",
                "y0": at,
                "y1": at,
                "line": {"dash": "dot", "color": "#777777"},
            }
        ],
    }
    note = (
        "A mark for each deployment that fits: found, at its iteration and the bytes of the "
        "fullest card; hollow, at its bound and what one microbatch needs. Dotted: the memory of "
        "a card."
    )
    chart = plot("corners", {"data": data, "layout": layout})
    return section("Deployments: iteration against memory", chart, paragraph(note, css="soft"))
