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
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

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
from bubbleproof.commands.options.targets import written_together
from bubbleproof.commands.output import (
    BROKEN,
    HOLDS,
    measures_to_json,
    print_json,
    print_list,
    print_table,
    print_text,
    say,
)
from bubbleproof.formats.files import write_text
from bubbleproof.formats.inputs import read_schedule_input
from bubbleproof.formats.pytorch_writer import write_table
from bubbleproof.report.page import write_page
from bubbleproof.traces.expected_order import durations, other_order, trace_files
from bubbleproof.traces.span_names import PYTORCH, read_names
from bubbleproof.traces.stragglers import Straggler
from bubbleproof.traces.trace_spans import read_trace
from bubbleproof.traces.traced_report import TraceReport, trace_report
from bubbleproof.traces.traced_steps import traced_job
from bubbleproof.traces.traced_waits import Stretch, TimeSpent, traced_times


def run_trace(
    files: Sequence[str], schedule: str | None, names: str | None, output: str | None, json: bool
) -> int:
    """Print what the traces tell, and write it."""
    naming = PYTORCH if names is None else read_names(names)
    paths = trace_files(files)
    traces = []
    for path in paths:
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
    else:
        _tell(report, other)
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


def _tell(report: TraceReport, other: Sequence[str]) -> None:
    job, step = report.times.job, report.times.median_step()
    low, high = min(report.lengths) / 1e6, max(report.lengths) / 1e6
    print_text(
        f"{job.num_ranks} ranks, {job.pipeline.num_stages} stages, "
        f"{job.pipeline.num_microbatches} microbatches; {len(report.lengths)} steps of "
        f"{low:.1f} to {high:.1f} ms, the median one {step.length / 1e6:.1f} ms"
    )
    print_table(SPENT, *spent_rows(report))
    print_list("causes", meanings(report))
    measured = report.measured
    print_text(
        f"bubble: {float(measured.idle_ratio):.1%} of the ranks' time is not work; idle over work "
        f"{float(measured.idle_over_work):.2f}; longest idle within a rank's span "
        f"{measured.span_idle / 1e6:.1f} ms"
    )
    print_table(WAITED, WAITED_COLUMNS, waited_rows(report))
    if report.predicted is not None:
        print_text(
            f"with usual times, messages of {_latency(report)} and nothing else the order takes "
            f"{report.predicted / 1e6:.1f} ms; the median step took "
            f"{step.length / report.predicted:.2f} times that"
        )
    print_text(f"waits lie {report.times.model}")
    print_list("stragglers", [*map(str, report.stragglers)] or ["none"])
    clocks = f"clocks that are known to {report.times.clocks.uncertainty / 1e6:.3f} ms"
    print_list(f"slow or not, which {clocks} leave open", [*map(str, report.perhaps)])
    print_list("another order ran", other)
    print_list("the answer is partial", job.left_out)


def _latency(report: TraceReport) -> str:
    links = (report.content or {}).get("links")
    ticks = links["latency"] if isinstance(links, dict) else 0
    return f"{ticks * report.tick.nanoseconds / 1e6:.2f} ms"
