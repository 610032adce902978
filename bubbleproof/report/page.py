"""One self-contained HTML page about a problem: what was compared, what holds, and every schedule.

The page takes text and schedules, not verdict objects: whoever writes it says in words what was
proved. Its schedules stand in one viewer, on one time axis. It loads nothing from anywhere; all
text is escaped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from bubbleproof.formats.files import FilePath, write_text
from bubbleproof.report.amounts import Scale, ratio, time
from bubbleproof.report.document import ReplayRow, VerdictRow, document, mood, replay_table
from bubbleproof.report.html import definitions, escape, paragraph, preformatted, section, table
from bubbleproof.report.timeline import Window
from bubbleproof.report.viewer.viewer_parts import ViewedSchedule, viewer
from bubbleproof.theory.model.measures import known_rows, measure, measure_rows
from bubbleproof.theory.model.memory import memory_profile
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule


class ComparisonRow(NamedTuple):
    """One schedule, or the reason why there is none, in the comparison of families."""

    name: str
    fits: str
    makespan: str = ""
    idle_ratio: str = ""
    idle_over_work: str = ""
    span_idle: str = ""
    peaks: str = ""
    proof: str = ""

    @classmethod
    def of(cls, name: str, problem: Problem, schedule: Schedule, *, proof: str = "") -> Self:
        """Measure a schedule. ``fits`` names the first store over its capacity, if any."""
        rows = known_rows(problem, schedule)
        measures = measure_rows(problem, *rows)
        peaks = memory_profile(problem, rows[0], rows[2]).peaks(problem).tolist()
        scale = Scale.of(problem.memory_unit, max(peaks, default=0))
        over = [
            f"no: {store.name} holds {scale.amount(peak)}, cap {scale.number(store.capacity)}"
            for store, peak in zip(problem.stores, peaks, strict=True)
            if store.capacity is not None and peak > store.capacity
        ]
        return cls(
            name=name,
            fits=over[0] if over else "yes",
            makespan=time(measures.makespan, problem.unit),
            idle_ratio=ratio(measures.idle_ratio),
            idle_over_work=ratio(measures.idle_over_work),
            span_idle=time(measures.span_idle, problem.unit),
            peaks=_peaks(peaks[: problem.num_ranks], scale),
            proof=proof,
        )

    @classmethod
    def refused(cls, name: str, reason: str) -> Self:
        """A family that has no schedule for the problem."""
        return cls(name=name, fits=f"no schedule: {reason}")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScheduleSection(ViewedSchedule):
    """One schedule of the page with what is known of it; ``violations`` are printed as they are.

    The ``window`` (ticks) of a page's first schedule is what is seen first.
    """

    verdicts: tuple[VerdictRow, ...] = ()
    violations: tuple[str, ...] = ()
    replay: tuple[ReplayRow, ...] = ()
    window: Window | None = None

    @property
    def facts(self) -> str:
        """Makespan and idle ratio, or when everything stands still."""
        unit = self.problem.unit
        if self.stopped is not None:
            return f"stops after {time(self.stopped.at, unit)}"
        found = measure(self.problem, self.schedule)
        return f"makespan {time(found.makespan, unit)}, idle_ratio {ratio(found.idle_ratio)}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReportPage:
    """The page: ``summary`` and ``versions`` are (name, text) pairs; the first section is open.

    ``headline`` is what matters most, in words; ``parts`` are HTML between summary and schedules.
    The first ``num_shown`` of the sections' schedules are drawn at first, unless there is nothing
    to see (``is_drawn``); with ``causes`` of idle time, and what is ``marked`` framed.
    """

    title: str
    headline: str = ""
    summary: tuple[tuple[str, str], ...] = ()
    comparison: tuple[ComparisonRow, ...] = ()
    parts: tuple[str, ...] = ()
    sections: tuple[ScheduleSection, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    num_shown: int = 1
    is_drawn: bool = True
    causes: bool = False
    marked: tuple[str, ...] = ()


def write_page(path: FilePath, report: ReportPage) -> None:
    """Write the page, replacing the file whole or not at all."""
    write_text(path, render(report))


def render(report: ReportPage) -> str:
    """The whole page as text."""
    body = [f"<h1>{escape(report.title)}</h1>"]
    if report.headline:
        body.append(paragraph(report.headline, css="headline"))
    is_drawn = report.is_drawn and bool(report.sections)
    if is_drawn:
        drawn = viewer(
            report.sections,
            num_shown=report.num_shown,
            window=report.sections[0].window,
            causes=report.causes,
            marked=report.marked,
        )
        body.append(drawn)
    if report.summary:
        body += ["<section>", definitions(report.summary), "</section>"]
    if report.comparison:
        body.append(_comparison(report.comparison))
    body += [*report.parts, _navigation(report)]
    body += [_schedule(number, shown) for number, shown in enumerate(report.sections)]
    if report.versions:
        body.append(section("Versions", definitions(report.versions)))
    return document(report.title, "".join(body), has_viewer=is_drawn)


def _navigation(report: ReportPage) -> str:
    links = "".join(
        f'<a href="#schedule-text-{number}">{escape(shown.name)}</a>'
        for number, shown in enumerate(report.sections)
    )
    return f"<nav>{links}</nav>" if len(report.sections) > 1 else ""


def _comparison(rows: tuple[ComparisonRow, ...]) -> str:
    columns = (
        *("schedule", "fits memory", "makespan", "idle_ratio", "idle_over_work", "span_idle"),
        *("peak per rank", "proof"),
    )
    told = [number for number in range(len(columns)) if any(row[number] for row in rows)]
    moods = [mood(row.fits.partition(":")[0]) for row in rows]
    explained = (
        "idle_ratio = idle / (ranks x makespan); idle_over_work = idle / work; span_idle = the "
        "longest idle time of one rank between its first start and its last end."
    )
    cells = [[row[number] for number in told] for row in rows]
    shown = table([columns[number] for number in told], cells, moods=moods, mood_column=1)
    return section("Comparison", shown, paragraph(explained, css="soft"))


def _schedule(number: int, shown: ScheduleSection) -> str:
    facts = shown.facts
    parts = [
        f'<details id="schedule-text-{number}"{" open" if number == 0 else ""}>'
        f"<summary>{escape(shown.name)}<span>{escape(facts)}</span></summary>",
    ]
    if shown.verdicts:
        moods = [mood(row.verdict) for row in shown.verdicts]
        parts.append("<h3>Verdict</h3>")
        parts.append(table(VerdictRow._fields, shown.verdicts, moods=moods, mood_column=1))
    if shown.violations:
        parts += ["<h3>Violations</h3>", *map(preformatted, shown.violations)]
    if shown.replay:
        parts += ["<h3>Replay</h3>", replay_table(shown.replay)]
    return "".join([*parts, "</details>"])


def _peaks(peaks: list[int], scale: Scale) -> str:
    """The peak of every rank, or of the fullest and the emptiest where there are many."""
    if len(peaks) <= 8:
        return f"{', '.join(scale.number(peak) for peak in peaks)} {scale.name}"
    fullest = int(np.argmax(peaks))
    return f"{scale.number(min(peaks))} to {scale.amount(peaks[fullest])} (rank {fullest})"
