"""A run as its traces tell it, read in one call: what its ranks did, and what was waited for."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bubbleproof.facts import Fact, FactSource, fields_of, valued
from bubbleproof.formats.files import write_text
from bubbleproof.formats.pytorch_writer import write_table
from bubbleproof.formats.schedule_file import ScheduleFile
from bubbleproof.report.page import write_page
from bubbleproof.traces.expected_order import durations, other_order, trace_files
from bubbleproof.traces.span_names import PYTORCH, read_names
from bubbleproof.traces.stragglers import Straggler
from bubbleproof.traces.trace_spans import read_trace
from bubbleproof.traces.traced_page import slow_stages, traced_page
from bubbleproof.traces.traced_report import TraceReport, trace_report
from bubbleproof.traces.traced_steps import traced_job
from bubbleproof.traces.traced_waits import Stretch, TimeSpent, traced_times


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TracedRun(FactSource):
    """``report`` has all that the traces tell; ``other_order`` where another order ran than was
    given, the first place of each rank.
    """

    report: TraceReport
    other_order: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether no stage is a straggler and the order that was given ran."""
        return not self.report.stragglers and not self.other_order

    def facts(self) -> list[Fact]:
        """All of it, times in nanoseconds."""
        report = self.report
        times, job = report.times, report.times.job
        step, ranks = times.median_step(), range(job.num_ranks)
        spent = [{cause.value: report.spent(r)[cause] for cause in TimeSpent} for r in ranks]
        waited = [
            {"rank": rank, "what": what, "ns": ns, "is_straggler": what in slow_stages(report)}
            for (rank, what), ns in report.roots.most_common()
        ]
        usual = [
            {"stage": stage, "kind": kind.name, "ns": ns}
            for (stage, kind), ns in sorted(report.usual.items())
        ]
        lengths = " ".join(f"{length / 1e6:.1f}" for length in report.lengths)
        idle = report.measured.idle_ratio
        slow = ", ".join(map(str, report.stragglers)) or "none"
        return [
            Fact(key="ranks", label="ranks", value=job.num_ranks),
            Fact(key="stages", label="stages", value=job.pipeline.num_stages),
            Fact(key="microbatches", label="microbatches", value=job.pipeline.num_microbatches),
            Fact(key="step_ns", label="steps", value=report.lengths, told=lengths, unit="ms"),
            Fact(key="measured", value=fields_of(report.measured)),
            Fact(label="idle", value=idle, told=f"{float(idle):.1%}"),
            *valued("", spent_ns=spent),
            *valued("", stretches=[_stretch(s, step.begin) for r in step.ranks for s in r]),
            *valued("", waited_for_ns=waited, usual_ns=usual),
            Fact(
                key="stragglers",
                label="stragglers",
                value=[*map(_straggler, report.stragglers)],
                told=slow,
            ),
            Fact(key="perhaps_stragglers", value=[*map(_straggler, report.perhaps)]),
            Fact(key="predicted_ns", value=report.predicted),
            Fact(key="other_order", value=self.other_order, detail=self.other_order),
            *valued("", waits=asdict(times.model)),
            *valued("", clock_uncertainty_ns=times.clocks.uncertainty, left_out=job.left_out),
        ]

    def write(self, folder: Path) -> None:
        """``problem.toml``, ``schedule.csv``, ``trace.json`` and the page ``trace.html``."""
        told = json.dumps(self.to_dict(), indent=2, default=str)
        write_text(folder / "trace.json", told + "\n")
        write_table(folder / "schedule.csv", self.report.times.job.program)
        text = self.report.problem_file()
        if text is not None:
            write_text(folder / "problem.toml", text)
        write_page(folder / "trace.html", traced_page(self.report, self.other_order))


def traced_run(
    files: Sequence[str],
    given: ScheduleFile | None = None,
    names: str | None = None,
    say: Callable[[str], None] = lambda _line: None,
) -> TracedRun:
    """What traces tell, one for each rank.

    Parameters
    ----------
    files
        Traces, or folders of them.
    given
        The schedule that was to run.
    names
        The file that says how spans of other frameworks are named.
    say
        Hears of each file before it is read.

    Raises
    ------
    UnusableInput
        For a file that is no such trace.
    """
    naming = PYTORCH if names is None else read_names(names)
    traces = []
    for path in trace_files(files):
        say(f"reading {path}")
        traces.append(read_trace(path, naming))
    job = traced_job(traces)
    other = () if given is None else tuple(other_order(job, given))
    expected = None if given is None or other else durations(given)
    return TracedRun(report=trace_report(traced_times(job), expected), other_order=other)


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
