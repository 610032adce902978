"""What a replay leaves on disk: its file, its page and its trace (``-o``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bubbleproof.commands.options.targets import written_together
from bubbleproof.commands.output import say
from bubbleproof.commands.replaying.replay_options import ReplayRequest
from bubbleproof.formats import ScheduleFile
from bubbleproof.reference_exec.evidence.machine_versions import ReplayMachine, this_machine
from bubbleproof.reference_exec.evidence.measured import measured_schedule
from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
from bubbleproof.reference_exec.evidence.unchecked import not_checked
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.report.extras import require_drawing
from bubbleproof.report.measured_trace import write_measured_trace
from bubbleproof.report.replay_json import replay_content, write_replay
from bubbleproof.report.replay_page import ReplayPage, write_replay_page
from bubbleproof.report.table_rows import ReplayRow
from bubbleproof.theory.model.schedule import Schedule

ENDINGS = (".html", ".perfetto.json", ".json")
_CLOCKS = {
    "virtual": "Ranks took turns in one process: no two bars overlap in time, and the whole is as "
    "long as all ranks' work together.",
    "gloo": "Each rank is a process; all read the machine's one monotonic clock. A bar begins "
    "where its action had the message it waited for.",
    "nccl": "Times of the host's calls, by each machine's own monotonic clock; a GPU computes "
    "later than it is told to.",
}
_FIRST = " Of the replicas it is the first."


def require_endings(targets: Sequence[str]) -> None:
    """Raise ``ValueError`` for a file that a replay does not write, or cannot here."""
    for target in targets:
        if not target.endswith(ENDINGS):
            known = " ".join(ENDINGS)
            raise ValueError(f"a replay's file must end in one of {known}, got {target!r}")
    require_drawing(targets)


def write_files(
    request: ReplayRequest, given: ScheduleFile, report: ReplayReport, rows: Sequence[ReplayRow]
) -> None:
    """Write what each target's ending asks for, and say so but where JSON is printed."""
    spec = request.model.spec()
    schedule = given.timed_roughly() if report.unsafe else given.timed()
    machine, left_open = this_machine(), not_checked(report)
    with written_together(None, *request.targets) as (_, *new):
        for target in new:
            if target.name.endswith(".html"):
                write_replay_page(target, _page(given, schedule, report, spec, rows, machine))
            elif target.name.endswith(".perfetto.json"):
                measured = measured_schedule(given.problem, schedule, report.traces)
                write_measured_trace(target, *measured, report.traces)
            else:
                told = (given.name, report, spec, given.problem, schedule)
                write_replay(target, replay_content(*told, machine=machine, not_checked=left_open))
    for written in () if request.output.json else request.targets:
        say(f"wrote {Path(written)}")


def _page(
    given: ScheduleFile,
    schedule: Schedule,
    report: ReplayReport,
    spec: ModelSpec,
    rows: Sequence[ReplayRow],
    machine: ReplayMachine,
) -> ReplayPage:
    ran = bool(report.traces)
    return ReplayPage(
        title=f"Replay of {given.name}",
        headline=_headline(report),
        summary=_summary(report, spec),
        evidence=tuple(rows),
        failures=report.failures,
        predicted=(given.problem, schedule),
        measured=measured_schedule(given.problem, schedule, report.traces) if ran else None,
        clock=_CLOCKS[report.backend] + _FIRST * (report.data_parallel > 1),
        traces=report.traces,
        not_checked=not_checked(report),
        not_counted=report.not_counted,
        not_counted_work=report.not_counted_work,
        versions=(
            *machine.versions.items(),
            ("machine", f"{machine.cores} cores ({machine.processor}), {machine.memory_text}"),
        ),
    )


def _headline(report: ReplayReport) -> str:
    """What it came to, in a line."""
    if report.ok:
        return f"Every promise holds: {report.microbatches} microbatches on {_processes(report)}."
    return f"{len(report.failures)} of the promises are broken, see below."


def _processes(report: ReplayReport) -> str:
    replicas = f"{report.data_parallel} replicas of " if report.data_parallel > 1 else ""
    return f"{replicas}{report.ranks} ranks"


def _summary(report: ReplayReport, spec: ModelSpec) -> tuple[tuple[str, str], ...]:
    shape = f"batch {spec.batch}, sequence {spec.sequence}, hidden {spec.hidden}"
    unsafe = " UNSAFE: run without being verified." if report.unsafe else ""
    return (
        ("verdict", ("every promise holds" if report.ok else "a promise is broken") + unsafe),
        ("ran on", f"{report.backend}, {report.device}, {_processes(report)}"),
        ("communication", ": ".join(filter(None, (report.semantics, report.semantics_why)))),
        ("pipeline", f"{report.stages} stages, {report.microbatches} microbatches"),
        ("model", f"{spec.kind}, {shape}, layers {spec.layers}, {report.precision}"),
        ("seeds", f"interleaving {report.seed}, model and data {spec.seed}"),
        ("losses", " ".join(f"{loss:.6g}" for loss in report.losses[:16])),
        ("seconds", f"{report.seconds:.3f}, start of the ranks included"),
    )
