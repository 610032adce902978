"""One self-contained HTML page about a replay: what it showed, when ranks ran, what they held.

Predicted and measured stand one above the other on one time axis. The bytes that ranks held stand
beside those that the memory model puts there, a panel per rank: along x the samples of the rank's
program in its order, along y live activation bytes. The page takes text, schedules and traces;
whoever writes it says in words what was compared and what was not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bubbleproof.formats.files import FilePath, write_text
from bubbleproof.reference_exec.runtime.trace import RankTrace
from bubbleproof.report.amounts import Scale
from bubbleproof.report.document import document, replay_table
from bubbleproof.report.html import definitions, escape, paragraph, preformatted, section
from bubbleproof.report.plot_svg import AxisRange, SvgPlot, key
from bubbleproof.report.table_rows import ReplayRow
from bubbleproof.report.viewer.viewer_parts import ViewedSchedule, viewer
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule

Timed = tuple[Problem, Schedule]
Named = tuple[tuple[str, str], ...]
BYTES_NOTE = (
    "Live activation bytes, each storage once, as each action ends (a forward that drops what it "
    "saved also before it does). The wide line is the memory model, the thin one was measured."
)


MAX_PANELS = 16
_PANEL = 150  # pixels
MOST_SAMPLES = 4_000  # of a panel; of more the highest of each run is drawn
_MODEL, _MEASURED = "#c7a24c", "#2f62b8"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReplayPage:
    """What the page shows; ``summary`` and ``versions`` are (name, text) pairs.

    ``measured`` is the schedule as it ran, in microseconds, None where nothing ran to its end;
    ``clock`` says in a sentence what its times are, ``not_counted`` what its bytes leave out,
    ``not_counted_work`` what its account of work does.
    """

    title: str
    headline: str = ""
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
    """Write the page, replacing the file whole or not at all."""
    write_text(path, render(page))


def render(page: ReplayPage) -> str:
    """The whole page as text."""
    body = [f"<h1>{escape(page.title)}</h1>"]
    if page.headline:
        body.append(paragraph(page.headline, css="headline"))
    body += [
        _timelines(page),
        f"<section>{definitions(page.summary)}</section>",
        section("Evidence", replay_table(page.evidence), *map(preformatted, page.failures)),
    ]
    if page.traces:
        shown = [paragraph(BYTES_NOTE), *live_bytes_panels(page.traces)]
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
    return document(page.title, "".join(body), has_viewer=True)


def _timelines(page: ReplayPage) -> str:
    """What ran above what was predicted, on one axis; the prediction alone where nothing ran."""
    named = [("as it ran", page.measured), ("as the schedule has it", page.predicted)]
    shown = [
        ViewedSchedule(name=name, problem=timed[0], schedule=timed[1])
        for name, timed in named
        if timed is not None
    ]
    clock = paragraph(page.clock, css="soft") if page.measured is not None else ""
    return viewer(shown, num_shown=len(shown)) + clock


def _list(title: str, lines: Sequence[str]) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return section(title, f"<ul>{items}</ul>")


def live_bytes_panels(traces: Sequence[RankTrace]) -> list[str]:
    """A chart for each of the first ``MAX_PANELS`` ranks. Precondition: there is a rank."""
    shown = list(traces[:MAX_PANELS])
    scale = Scale.of("byte", max(_top(trace) for trace in shown))
    legend = key([(_MODEL, "model"), (_MEASURED, "measured")])
    return [legend, *(_panel(trace, scale) for trace in shown)]


def _panel(trace: RankTrace, scale: Scale) -> str:
    """Bytes by sample: the memory model as a wide line, what was measured as a thin one above."""
    samples = [count for own in trace.live_bytes for count in own]
    model = [count for own in trace.predicted for count in own]
    across = AxisRange(0, max(len(samples), len(model), 2) - 1, "sample, in program order")
    top = max(_top(trace), 1) / scale.divisor
    upright = AxisRange(0, top * 1.08, f"{trace.name} ({scale.name})")
    plot = SvgPlot(across, upright, height=_PANEL)
    plot.stairs(_stairs(model, scale), _MODEL, width=5)
    plot.stairs(_stairs(samples, scale), _MEASURED, width=1.4)
    return plot.text


def _stairs(counts: Sequence[int], scale: Scale) -> list[tuple[float, float]]:
    run = -(-len(counts) // MOST_SAMPLES) if counts else 1
    return [(at, max(counts[at : at + run]) / scale.divisor) for at in range(0, len(counts), run)]


def _top(trace: RankTrace) -> int:
    return max((count for own in (*trace.live_bytes, *trace.predicted) for count in own), default=0)
