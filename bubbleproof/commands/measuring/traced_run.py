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

import json as json_module
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path

from bubbleproof.commands.first_lines import print_answer, print_rows
from bubbleproof.commands.measuring.traced_page import (
    MOST_ROWS as MOST,
)
from bubbleproof.commands.measuring.traced_page import (
    SPENT,
    WAITED,
    WAITED_COLUMNS,
    meanings,
    slow_stages,
    spent_rows,
    traced_page,
    waited_rows,
)
from bubbleproof.commands.options.shared_options import Detail
from bubbleproof.commands.options.targets import written_together
from bubbleproof.commands.output import (
    BROKEN,
    HOLDS,
    measures_to_json,
    print_json,
    print_list,
    print_text,
    say,
)
from bubbleproof.formats.files import write_text
from bubbleproof.formats.inputs import read_schedule_input, require_format
from bubbleproof.formats.pytorch_writer import write_table
from bubbleproof.report.amounts import percent, time
from bubbleproof.report.page import write_page
from bubbleproof.traces.expected_order import durations, other_order, trace_files
from bubbleproof.traces.span_names import PYTORCH, read_names
from bubbleproof.traces.stragglers import Straggler
from bubbleproof.traces.trace_spans import read_trace
from bubbleproof.traces.traced_report import TraceReport, trace_report
from bubbleproof.traces.traced_steps import traced_job
from bubbleproof.traces.traced_waits import Stretch, TimeSpent, traced_times

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
    naming = PYTORCH if names is None else read_names(names)
    paths = trace_files(files)
    traces = []
    for path in paths:
        require_format(path, "a trace of a run")
        say(f"reading {path}")
        traces.append(read_trace(path, naming))
    job = traced_job(traces)
    given = None if schedule is None else read_schedule_input([schedule])
    other = [] if given is None else other_order(job, given)
    expected = None if given is None else durations(given)
    report = trace_report(traced_times(job), None if other else expected)
    told = to_json(report, other)
    if output is not None:
        with written_together(output) as (folder,):
            _write(report, told, other, folder)
    if json:
        print_json(told)
    elif print_answer(_lines(report, other), detail):
        _tell(report, detail)
    return BROKEN if report.stragglers or other else HOLDS


def _write(
    report: TraceReport, told: dict[str, object], other: Sequence[str], folder: Path
) -> None:
    write_text(folder / "trace.json", json_module.dumps(told, indent=2, default=str) + "\n")
    write_table(folder / "schedule.csv", report.times.job.program)
    text = report.problem_file()
    if text is not None:
        write_text(folder / "problem.toml", text)
    write_page(folder / "trace.html", traced_page(report, other))


def to_json(report: TraceReport, other: Sequence[str]) -> dict[str, object]:
    """Everything, for programs."""
    times, job = report.times, report.times.job
    step = times.median_step()
    return {
        "ranks": job.num_ranks,
        "stages": job.pipeline.num_stages,
        "microbatches": job.pipeline.num_microbatches,
        "step_ns": report.lengths,
        "measured": measures_to_json(report.measured),
        "spent_ns": [
            {cause.value: report.spent(rank)[cause] for cause in TimeSpent}
            for rank in range(job.num_ranks)
        ],
        "stretches": [_stretch(each, step.begin) for rank in step.ranks for each in rank],
        "waited_for_ns": [
            {"rank": rank, "what": what, "ns": ns, "is_straggler": what in slow_stages(report)}
            for (rank, what), ns in report.roots.most_common()
        ],
        "usual_ns": [
            {"stage": stage, "kind": kind.name, "ns": ns}
            for (stage, kind), ns in sorted(report.usual.items())
        ],
        "stragglers": [*map(_straggler, report.stragglers)],
        "perhaps_stragglers": [*map(_straggler, report.perhaps)],
        "predicted_ns": report.predicted,
        "other_order": list(other),
        "waits": asdict(times.model),
        "clock_uncertainty_ns": times.clocks.uncertainty,
        "left_out": list(job.left_out),
    }


def _straggler(each: Straggler) -> dict[str, object]:
    return {
        "stage": each.stage,
        "rank": each.rank,
        "kind": each.kind.name,
        "usual_ns": each.usual,
        "of_others_ns": each.of_others,
    }


def _stretch(each: Stretch, origin: int) -> dict[str, object]:
    message = each.message
    return {
        "rank": each.rank,
        "begin": each.begin - origin,
        "end": each.end - origin,
        "cause": each.spent.value,
        "action": None if each.action is None else str(each.action),
        "of_action": None if message is None else str(message.send),
        "of_rank": each.awaited,
    }


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
    print_rows(WAITED, WAITED_COLUMNS, waited_rows(report, None if detail.all else MOST), detail)
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
