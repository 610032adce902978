"""The page of a trace: the median step as it ran, in microseconds, above the same by usual times.

What ran is drawn by when its work was done: an action that waited within its span begins late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bubbleproof.commands.measuring.traced_tables import (
    SPENT,
    WAITED,
    WAITED_COLUMNS,
    meanings,
    spent_rows,
    waited_rows,
)
from bubbleproof.report.html import definitions, section, table
from bubbleproof.report.page import ComparisonRow, ReportPage, ScheduleSection
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.traces.traced_report import TraceReport, as_it_ran, by_usual_times

NO_MEMORY = "a trace tells no memory"
RAN, USUAL = "as it ran (the median step)", "by usual times"


def traced_page(report: TraceReport, other: Sequence[str] = ()) -> ReportPage:
    """The page; ``other`` are the sentences on where another order ran than was given."""
    drawn = [(RAN, *_in_microseconds(*as_it_ran(report.times), 1))]
    usual = by_usual_times(report)
    if usual is not None:
        drawn.append((USUAL, *_in_microseconds(*usual, report.tick.nanoseconds)))
    sections = tuple(
        ScheduleSection(name=name, problem=problem, schedule=schedule)
        for name, problem, schedule in drawn
    )
    return ReportPage(
        title=f"A trace of {report.times.job.num_ranks} ranks",
        headline=_headline(report),
        summary=_summary(report, other),
        comparison=tuple(ComparisonRow.of(*row)._replace(fits=NO_MEMORY) for row in drawn),
        parts=(
            section(f"Where the time went: {SPENT}", table(*spent_rows(report)), _causes(report)),
            section(WAITED.capitalize(), table(WAITED_COLUMNS, waited_rows(report))),
        ),
        sections=sections,
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
