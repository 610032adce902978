"""One self-contained HTML page about a replay: what it showed, when ranks ran, what they held.

Measured and predicted stand one above the other. The bytes that ranks held stand beside those that
the memory model puts there, a panel per rank: along x the samples of the rank's program in its
order, along y live activation bytes. The page takes text, schedules and traces;
whoever writes it says in words what was compared and what was not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bubbleproof.formats.files import FilePath, write_text
from bubbleproof.reference_exec.runtime.trace import RankTrace
from bubbleproof.report.amounts import Scale
from bubbleproof.report.document import chart, document, plot, replay_table
from bubbleproof.report.html import definitions, escape, paragraph, preformatted, section
from bubbleproof.report.interactive import Json
from bubbleproof.report.table_rows import ReplayRow
from bubbleproof.report.timeline import timeline
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule

Timed = tuple[Problem, Schedule]
Named = tuple[tuple[str, str], ...]
BYTES_NOTE = (
    "Live activation bytes, each storage once, as each action ends (a forward that drops what it "
    "saved also before it does). The wide line is the memory model, the thin one was measured."
)


MAX_PANELS = 16
_PANEL, _GAP, _TOP, _BOTTOM = 96, 26, 40, 46  # pixels
_MODEL, _MEASURED = "#c7a24c", "#2f62b8"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReplayPage:
    """What the page shows; ``summary`` and ``versions`` are (name, text) pairs.

    ``measured`` is the schedule as it ran, in microseconds, None where nothing ran to its end;
    ``clock`` says in a sentence what its times are, ``not_counted`` what its bytes leave out,
    ``not_counted_work`` what its account of work does.
    """

    title: str
    summary: Named
    evidence: tuple[ReplayRow, ...]
    failures: tuple[str, ...]
    predicted: Timed
    measured: Timed | None
    clock: str
    traces: tuple[RankTrace, ...]
    not_checked: tuple[str, ...]
    not_counted: tuple[str, ...] = ()
    not_counted_work: tuple[str, ...] = ()
    versions: Named


def write_replay_page(path: FilePath, page: ReplayPage) -> None:
    """Write the page, replacing the file whole or not at all.

    Raises ``ValueError`` when a drawing library that the page needs is not installed.
    """
    write_text(path, render(page))


def render(page: ReplayPage) -> str:
    """The whole page as text."""
    body = [
        f"<h1>{escape(page.title)}</h1>",
        f"<section>{definitions(page.summary)}</section>",
        section("Evidence", replay_table(page.evidence), *map(preformatted, page.failures)),
    ]
    if page.measured is not None:
        body += [_timeline("measured", "As it ran", page.measured), paragraph(page.clock)]
    body.append(_timeline("predicted", "As the schedule has it", page.predicted))
    if page.traces:
        shown = [paragraph(BYTES_NOTE), plot("live-bytes", live_bytes_figure(page.traces))]
        if len(page.traces) > MAX_PANELS:
            note = f"The first {MAX_PANELS} of {len(page.traces)} ranks."
            shown.append(paragraph(note, css="note"))
        body.append(section("Live bytes", *shown))
    if page.not_counted:
        body.append(_list("What is not counted among live bytes", page.not_counted))
    if page.not_counted_work:
        body.append(_list("What is not counted as work", page.not_counted_work))
    body.append(_list("What was not checked", page.not_checked))
    body.append(section("Versions", definitions(page.versions)))
    return document(page.title, "".join(body), has_charts=True)


def _timeline(name: str, title: str, timed: Timed) -> str:
    return section(title, chart(name, title, timeline(*timed)))


def _list(title: str, lines: Sequence[str]) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return section(title, f"<ul>{items}</ul>")


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
