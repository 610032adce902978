"""What a replay leaves: its evidence as printed, its file, its page and its trace (``-o``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bubbleproof.commands.options.targets import written_together
from bubbleproof.commands.output import BROKEN, HOLDS, print_json, print_list, print_table, say
from bubbleproof.commands.replaying.replay_options import ReplayRequest
from bubbleproof.formats import ScheduleFile
from bubbleproof.reference_exec.evidence.machine_versions import this_machine
from bubbleproof.reference_exec.evidence.measured import measured_schedule
from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
from bubbleproof.report.document import replay_rows
from bubbleproof.report.extras import require_drawing
from bubbleproof.report.replay_json import (
    ReplayAccount,
    replay_content,
    write_measured_trace,
    write_replay,
)
from bubbleproof.report.replay_page import write_replay_page

ENDINGS = (".html", ".perfetto.json", ".json")


def print_report(name: str, report: ReplayReport, *, json: bool) -> int:
    """Print the evidence; the exit status."""
    if json:
        print_json({"name": name, **report.to_dict()})
    else:
        title = f"{name} (UNSAFE: run without being verified)" if report.unsafe else name
        print_table(title, report.columns, replay_rows(report))
        print_list("Not as the model's configuration has it", report.model_notes)
        print_list("Of the stages", report.weight_backward)
        print_list("Not shown by gradients and losses", report.alike)
        print_list("Not counted among live bytes", report.not_counted)
        print_list("Not counted as work", report.not_counted_work)
    return HOLDS if report.ok else BROKEN


def print_failure(name: str, why: str, *, json: bool) -> int:
    """Say why a run ended before it had shown anything: which rank, and where. The exit status."""
    say(why)
    if json:
        print_json({"name": name, "ok": False, "failures": [why]})
    return BROKEN


def require_endings(targets: Sequence[str]) -> None:
    """Raise ``ValueError`` for a file that a replay does not write, or cannot here."""
    for target in targets:
        if not target.endswith(ENDINGS):
            known = " ".join(ENDINGS)
            raise ValueError(f"a replay's file must end in one of {known}, got {target!r}")
    require_drawing(targets)


def write_files(request: ReplayRequest, given: ScheduleFile, report: ReplayReport) -> None:
    """Write what each target's ending asks for, and say so but where JSON is printed."""
    told = ReplayAccount(
        name=given.name,
        report=report,
        spec=request.model.spec(),
        problem=given.problem,
        schedule=given.timed_roughly() if report.unsafe else given.timed(),
        machine=this_machine(),
    )
    with written_together(None, *request.targets) as (_, *new):
        for target in new:
            if target.name.endswith(".html"):
                write_replay_page(target, told)
            elif target.name.endswith(".perfetto.json"):
                measured = measured_schedule(told.problem, told.schedule, report.traces)
                write_measured_trace(target, *measured, report.traces)
            else:
                write_replay(target, replay_content(told))
    for written in () if request.output.json else request.targets:
        say(f"wrote {Path(written)}")
