"""The tables of a trace: where each rank's time went, and what was waited for."""

from __future__ import annotations

from bubbleproof.traces.traced_report import TraceReport
from bubbleproof.traces.traced_waits import TimeSpent

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
    causes, rows = _causes(report), []
    for rank in range(report.times.job.num_ranks):
        spent = report.spent(rank)
        rows.append((str(rank), *(f"{spent[cause] / 1e6:.2f}" for cause in causes)))
    return ("rank", *(cause.value for cause in causes)), rows


def meanings(report: TraceReport) -> list[str]:
    """What the causes are that the table has."""
    return [f"{cause.value}: {MEANINGS[cause]}" for cause in _causes(report)]


def _causes(report: TraceReport) -> list[TimeSpent]:
    ranks = range(report.times.job.num_ranks)
    return [cause for cause in TimeSpent if any(report.spent(rank)[cause] for rank in ranks)]


def waited_rows(report: TraceReport) -> list[Row]:
    """The sources of waiting, the largest first."""
    waited = sum(report.roots.values())
    return [
        (str(rank), _marked(report, what), f"{ns / 1e6:.2f}", f"{ns / waited:.1%}")
        for (rank, what), ns in report.roots.most_common(MOST_ROWS)
    ]


def slow_stages(report: TraceReport) -> set[str]:
    """The stages and kinds that are stragglers, as ``2F``."""
    return {f"{each.stage}{each.kind.name}" for each in report.stragglers}


def _marked(report: TraceReport, what: str) -> str:
    return f"{what} (straggler)" if what in slow_stages(report) else what
