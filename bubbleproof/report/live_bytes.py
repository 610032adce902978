"""The bytes that ranks held as they ran, beside those that the memory model puts there.

A figure as plain data for plotly, a panel per rank: along x the samples of the rank's program in
its order, along y live activation bytes. Where the two agree, the measured line lies on the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from bubbleproof.reference_exec.runtime.trace import RankTrace
from bubbleproof.report.amounts import Scale
from bubbleproof.report.interactive import Json

MAX_PANELS = 16
_PANEL, _GAP, _TOP, _BOTTOM = 96, 26, 40, 46  # pixels
_MODEL, _MEASURED = "#c7a24c", "#2f62b8"


def live_bytes_figure(traces: Sequence[RankTrace]) -> dict[str, Json]:
    """The figure of the first ``MAX_PANELS`` ranks: ``data`` and ``layout`` as plotly reads them.

    Precondition: there is a rank.
    """
    shown = list(traces[:MAX_PANELS])
    scale = Scale.of("byte", max(_top(trace) for trace in shown))
    data: list[Json] = []
    for number, trace in enumerate(shown):
        texts = [
            str(action)
            for action, counts in zip(trace.actions, trace.live_bytes, strict=True)
            for _ in counts
        ]
        columns = [
            ("model", trace.predicted, _MODEL, 5),
            ("measured", trace.live_bytes, _MEASURED, 1.4),
        ]
        for name, samples, colour, width in columns:
            counts = [count for own in samples for count in own]
            if counts:
                line = _line(name, counts, texts, scale, colour, width)
                data.append({**line, **_axes(number), "showlegend": number == 0})
    return {"data": data, "layout": _layout([trace.name for trace in shown], scale)}


def _top(trace: RankTrace) -> int:
    return max((count for own in (*trace.live_bytes, *trace.predicted) for count in own), default=0)


def _line(
    name: str, counts: list[int], texts: list[str], scale: Scale, colour: str, width: float
) -> dict[str, Json]:
    hover: list[Json] = [
        f"after {text}, {name}: {count:,} bytes" for text, count in zip(texts, counts, strict=True)
    ]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "legendgroup": name,
        "x": list(range(len(counts))),
        "y": [count / scale.divisor for count in counts],
        "line": {"shape": "hv", "width": width, "color": colour},
        "hovertext": hover,
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _axes(number: int) -> dict[str, Json]:
    suffix = "" if number == 0 else str(number + 1)
    return {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}


def _layout(names: Sequence[str], scale: Scale) -> dict[str, Json]:
    panels = len(names)
    inner = panels * _PANEL + (panels - 1) * _GAP
    layout: dict[str, Json] = {
        "height": inner + _TOP + _BOTTOM,
        "margin": {"l": 70, "r": 20, "t": _TOP, "b": _BOTTOM},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "hovermode": "closest",
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"},
    }
    for number, name in enumerate(names):
        suffix = "" if number == 0 else str(number + 1)
        high = 1 - number * (_PANEL + _GAP) / inner
        layout[f"xaxis{suffix}"] = {
            "anchor": f"y{suffix}",
            "title": {"text": "sample, in program order"} if number == panels - 1 else {},
        }
        layout[f"yaxis{suffix}"] = {
            "anchor": f"x{suffix}",
            "domain": [max(high - _PANEL / inner, 0), high],
            "rangemode": "tozero",
            "nticks": 4,
            "title": {"text": f"{name.replace(' of ', '<br>of ')}<br>{scale.name}"},
        }
    return layout
