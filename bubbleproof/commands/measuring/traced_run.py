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

from collections.abc import Sequence

from bubbleproof.commands.options.targets import written_together
from bubbleproof.commands.output import (
    BROKEN,
    HOLDS,
    print_json,
    print_list,
    print_table,
    print_text,
    say,
)
from bubbleproof.formats.inputs import read_schedule_input
from bubbleproof.traces.run_report import traced_run
from bubbleproof.traces.traced_page import (
    SPENT,
    WAITED,
    WAITED_COLUMNS,
    meanings,
    spent_rows,
    waited_rows,
)
from bubbleproof.traces.traced_report import TraceReport


def run_trace(
    files: Sequence[str], schedule: str | None, names: str | None, output: str | None, json: bool
) -> int:
    """Print what the traces tell, and write it."""
    given = None if schedule is None else read_schedule_input([schedule])
    found = traced_run(files, given, names, say)
    if output is not None:
        with written_together(output) as (folder,):
            found.write(folder)
    if json:
        print_json(found.to_dict())
    else:
        _tell(found.report, found.other_order)
    return HOLDS if found.ok else BROKEN


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
