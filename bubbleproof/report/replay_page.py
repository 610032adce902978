"""One self-contained HTML page about a replay: what it showed, when ranks ran, what they held.

Measured and predicted stand one above the other. The page takes text, schedules and traces;
whoever writes it says in words what was compared and what was not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bubbleproof.formats.files import FilePath, write_text
from bubbleproof.reference_exec.runtime.trace import RankTrace
from bubbleproof.report.document import chart, document, plot, replay_table
from bubbleproof.report.html import definitions, escape, paragraph, preformatted
from bubbleproof.report.live_bytes import MAX_PANELS, live_bytes_figure
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReplayPage:
    """What the page shows; ``summary`` and ``versions`` are (name, text) pairs.

    ``measured`` is the schedule as it ran, in microseconds, None where nothing ran to its end;
    ``clock`` says in a sentence what its times are, ``not_counted`` what its bytes leave out.
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
        f"<section><h2>Evidence</h2>{replay_table(page.evidence)}",
        *map(preformatted, page.failures),
        "</section>",
    ]
    if page.measured is not None:
        body += [_timeline("measured", "As it ran", page.measured), paragraph(page.clock)]
    body.append(_timeline("predicted", "As the schedule has it", page.predicted))
    if page.traces:
        body += [
            "<section><h2>Live bytes</h2>",
            paragraph(BYTES_NOTE),
            plot("live-bytes", live_bytes_figure(page.traces)),
        ]
        if len(page.traces) > MAX_PANELS:
            body.append(
                paragraph(f"The first {MAX_PANELS} of {len(page.traces)} ranks.", css="note")
            )
        body.append("</section>")
    if page.not_counted:
        body.append(_list("What is not counted among live bytes", page.not_counted))
    body.append(_list("What was not checked", page.not_checked))
    body += ["<section><h2>Versions</h2>", definitions(page.versions), "</section>"]
    return document(page.title, "".join(body), has_charts=True)


def _timeline(name: str, title: str, timed: Timed) -> str:
    view = timeline(*timed)
    return f"<section><h2>{escape(title)}</h2>{chart(name, title, view)}</section>"


def _list(title: str, lines: Sequence[str]) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<section><h2>{escape(title)}</h2><ul>{items}</ul></section>"
