"""``bubbleproof trace FILES... [--schedule S] [-o DIR]``: the schedule as it ran, and its bubble.

From traces of ``torch.profiler``, one for each rank. ``-o`` writes ``problem.toml`` (usual times,
for ``solve``), ``schedule.csv`` (the order that ran), ``trace.json`` (what ``--json`` prints) and
the page ``trace.html``. Status 1 where a stage is a straggler or another order ran than
``--schedule`` has, 0 otherwise.

``--json`` prints ``ranks``, ``stages``, ``microbatches``, ``step_ns`` (all steps), ``measured``
(the median step's bubbles, ns), ``spent_ns`` (by rank and cause), ``stretches`` (of the median
step: ``rank``, ``begin``, ``end``, ``cause``, ``action``, ``of_action``, ``of_rank``),
``waited_for_ns`` (``rank``, ``what``, ``ns``, ``is_straggler``), ``usual_ns``, ``stragglers``,
``perhaps_stragglers`` (as the clocks may be), ``predicted_ns``, ``other_order``, ``waits`` (in
which spans they lie: ``in_recv``, ``in_send``, ``is_decided``), ``clock_uncertainty_ns`` and
``left_out``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from bubbleproof.commands.first_lines import print_answer, print_rows
from bubbleproof.commands.options.shared_options import Detail
from bubbleproof.commands.output import BROKEN, HOLDS, print_json, print_list, print_text, say
from bubbleproof.formats.all_or_nothing import written_together
from bubbleproof.formats.inputs import read_schedule_input, require_format
from bubbleproof.report.amounts import percent, time
from bubbleproof.traces.expected_order import trace_files
from bubbleproof.traces.run_report import traced_run
from bubbleproof.traces.traced_page import (
    MOST_ROWS,
    SPENT,
    WAITED,
    WAITED_COLUMNS,
    meanings,
    spent_rows,
    waited_rows,
)
from bubbleproof.traces.traced_report import TraceReport
from bubbleproof.traces.traced_waits import TimeSpent

MOST_SOURCES = 3  # of waiting and of idle time, in the answer


def run_trace(
    files: Sequence[str],
    detail: Detail,
    schedule: str | None,
    names: str | None,
    output: str | None,
    json: bool,
) -> int:
    """Print what the traces tell, and write it."""
    for path in trace_files(files):
        require_format(path, "a trace of a run")
    given = None if schedule is None else read_schedule_input([schedule])
    found = traced_run(files, given, names, say)
    if output is not None:
        with written_together(output) as (folder,):
            found.write(folder)
    if json:
        print_json(found.to_dict())
    elif print_answer(_lines(found.report, found.other_order), detail):
        _tell(found.report, detail)
    return HOLDS if found.ok else BROKEN


def _lines(report: TraceReport, other: Sequence[str]) -> list[str]:
    """What is slow or ran otherwise, where the time went, what was waited for."""
    job, step = report.times.job, report.times.median_step()
    told = [f"another order ran: {each}" for each in other] + [*map(str, report.stragglers)]
    told += [f"the answer is partial: {each}" for each in job.left_out]
    if not (other or report.stragglers):
        told.insert(0, f"no stage is slow: {_ms(step.length)} a step")
    sizes = f"{job.pipeline.num_stages} stages, {job.pipeline.num_microbatches} microbatches"
    told.append(
        f"step     {_ms(step.length)}, the median of {len(report.lengths)} steps of "
        f"{_ms(min(report.lengths))} to {_ms(max(report.lengths))} · {job.num_ranks} ranks, {sizes}"
    )
    told.append(
        f"idle     {percent(report.measured.idle_ratio)} of the ranks' time: {_idle(report)}"
    )
    if sources := waited_rows(report):
        whence = (f"{share} {did} on rank {rank}" for rank, did, _, share in sources[:MOST_SOURCES])
        told.append(f"waited   {', '.join(whence)}")
    if report.predicted is not None:
        told.append(
            f"at best  {_ms(report.predicted)} for this order with usual times and messages of "
            f"{_ms(_latency(report))}"
        )
    clocks = f"clocks known to {_ms(report.times.clocks.uncertainty)}"
    return [*told, *(f"perhaps  {each} ({clocks})" for each in report.perhaps)]


def _idle(report: TraceReport) -> str:
    """The causes of what is no work, the largest first, as shares of the ranks' time."""
    spent = sum((report.spent(rank) for rank in range(report.times.job.num_ranks)), Counter())
    whole = spent.total()
    causes = [(each, ns) for each, ns in spent.most_common() if each is not TimeSpent.WORK]
    return ", ".join(
        f"{each.value} {percent(Fraction(ns, whole))}" for each, ns in causes[:MOST_SOURCES]
    )


def _tell(report: TraceReport, detail: Detail) -> None:
    """The tables, and how they are to be read."""
    columns, rows = spent_rows(report)
    print_rows(SPENT, columns, rows, detail)
    print_list("causes", meanings(report))
    print_rows(
        WAITED, WAITED_COLUMNS, waited_rows(report, None if detail.all else MOST_ROWS), detail
    )
    measured = report.measured
    print_text(
        f"idle over work {float(measured.idle_over_work):.2f}; longest idle within a rank's span "
        f"{_ms(measured.span_idle)}; waits lie {report.times.model}"
    )


def _ms(nanoseconds: int) -> str:
    """A time to three digits or so, as people read it."""
    return time(nanoseconds, "ns")


def _latency(report: TraceReport) -> int:
    links = (report.content or {}).get("links")
    ticks = links["latency"] if isinstance(links, dict) else 0
    return int(ticks) * report.tick.nanoseconds
