"""The page of a trace: the median step as it ran, in microseconds, above the same by usual times.

What ran is drawn by when its work was done: an action that waited within its span begins late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bubbleproof.report.html import definitions, section, table
from bubbleproof.report.page import ComparisonRow, ReportPage, ScheduleSection
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.traces.traced_report import TraceReport, as_it_ran, by_usual_times
from bubbleproof.traces.traced_waits import TimeSpent

RAN, USUAL = "as it ran (the median step)", "by usual times"


def traced_page(report: TraceReport, other: Sequence[str] = ()) -> ReportPage:
    """The page; ``other`` are the sentences on where another order ran than was given."""
    drawn = [(RAN, *_in_microseconds(*as_it_ran(report.times), 1))]
    usual = by_usual_times(report)
    if usual is not None:
        drawn.append((USUAL, *_in_microseconds(*usual, report.tick.nanoseconds)))
    sections = tuple(
        ScheduleSection(name=name, problem=problem, schedule=schedule, has_memory=False)
        for name, problem, schedule in drawn
    )
    return ReportPage(
        title=f"A trace of {report.times.job.num_ranks} ranks",
        headline=_headline(report),
        summary=_summary(report, other),
        comparison=tuple(ComparisonRow.of(*row)._replace(fits="", peaks="") for row in drawn),
        parts=(
            section(f"Where the time went: {SPENT}", table(*spent_rows(report)), _causes(report)),
            section(WAITED.capitalize(), table(WAITED_COLUMNS, waited_rows(report))),
        ),
        sections=sections,
        causes=True,
        marked=tuple(sorted(slow_stages(report))),
    )


def _in_microseconds(problem: Problem, schedule: Schedule, tick: int) -> tuple[Problem, Schedule]:
    """The same where a tick is so many nanoseconds; begins, ends and lags are rounded down."""
    rows = problem.locate(schedule.program.actions)
    ends = (schedule.start + problem.duration[rows]) * tick // 1000
    start, duration = schedule.start * tick // 1000, problem.duration.copy()
    duration[rows] = ends - start
    edges = replace(problem.edges, lag=problem.edges.lag * tick // 1000)
    rounded = replace(problem, duration=duration, edges=edges, unit="us")
    return rounded, Schedule(program=schedule.program, start=start)


def _headline(report: TraceReport) -> str:
    step = report.times.median_step()
    slow = "; ".join(map(str, report.stragglers)) or "no stage is slow"
    idle = float(report.measured.idle_ratio) * 100
    return (
        f"{step.length / 1e6:.1f} ms a step, {idle:.1f} % of the ranks' time is not work; {slow}."
    )


def _summary(report: TraceReport, other: Sequence[str]) -> tuple[tuple[str, str], ...]:
    pipeline = report.times.job.pipeline
    rows = [
        ("stages", str(pipeline.num_stages)),
        ("microbatches", str(pipeline.num_microbatches)),
        (
            "steps",
            f"{len(report.lengths)}, {min(report.lengths) / 1e6:.1f} to "
            f"{max(report.lengths) / 1e6:.1f} ms",
        ),
        ("clocks", f"known to {report.times.clocks.uncertainty / 1e3:.0f} us"),
    ]
    rows += [("another order ran", each) for each in other]
    return (*rows, *(("left out", each) for each in report.times.job.left_out))


def _causes(report: TraceReport) -> str:
    pairs = [meaning.split(": ", 1) for meaning in meanings(report)]
    return definitions((name, words) for name, words in pairs)


MOST_ROWS = 10
MEANINGS = {
    TimeSpent.WORK: "computing, all inputs there",
    TimeSpent.MESSAGE: "its producer was late",
    TimeSpent.LINK: "the message was on its way",
    TimeSpent.LAUNCH: "posting a SEND or a RECV",
    TimeSpent.COLLECTIVE: "UNSHARD, RESHARD, REDUCE_GRAD, STEP",
    TimeSpent.HOST: "between two actions",
    TimeSpent.START: "before the rank's first action",
    TimeSpent.END: "after the rank's last action",
}
SPENT = "ms of the median step"
WAITED = "what was waited for, followed to where it comes from"
WAITED_COLUMNS = ("rank", "did", "ms", "of all waiting")
Row = tuple[str, ...]


def spent_rows(report: TraceReport) -> tuple[Row, list[Row]]:
    """Columns and rows: for each rank the milliseconds of each cause."""
    causes, rows = _told_causes(report), []
    for rank in range(report.times.job.num_ranks):
        spent = report.spent(rank)
        rows.append((str(rank), *(f"{spent[cause] / 1e6:.2f}" for cause in causes)))
    return ("rank", *(cause.value for cause in causes)), rows


def meanings(report: TraceReport) -> list[str]:
    """What the causes are that the table has."""
    return [f"{cause.value}: {MEANINGS[cause]}" for cause in _told_causes(report)]


def _told_causes(report: TraceReport) -> list[TimeSpent]:
    ranks = range(report.times.job.num_ranks)
    return [cause for cause in TimeSpent if any(report.spent(rank)[cause] for rank in ranks)]


def waited_rows(report: TraceReport, most: int | None = MOST_ROWS) -> list[Row]:
    """The sources of waiting, the largest first; all of them for None."""
    waited = sum(report.roots.values())
    return [
        (str(rank), _marked(report, what), f"{ns / 1e6:.2f}", f"{ns / waited:.1%}")
        for (rank, what), ns in report.roots.most_common(most)
    ]


def slow_stages(report: TraceReport) -> set[str]:
    """The stages and kinds that are stragglers, as ``2F``."""
    return {f"{each.stage}{each.kind.name}" for each in report.stragglers}


def _marked(report: TraceReport, what: str) -> str:
    return f"{what} (straggler)" if what in slow_stages(report) else what
