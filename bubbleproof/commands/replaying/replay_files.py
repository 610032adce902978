"""What a replay leaves: its evidence as printed, its file, its page and its trace (``-o``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bubbleproof.commands.first_lines import print_answer
from bubbleproof.commands.output import BROKEN, HOLDS, print_json, print_list, print_table, say
from bubbleproof.commands.replaying.replay_options import ReplayRequest
from bubbleproof.facts import UNDECIDABLE, Fact
from bubbleproof.formats import ScheduleFile
from bubbleproof.formats.all_or_nothing import written_together
from bubbleproof.reference_exec.evidence.machine_versions import this_machine
from bubbleproof.reference_exec.evidence.measured import measured_schedule
from bubbleproof.reference_exec.evidence.replay_record import not_checked
from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
from bubbleproof.report.amounts import counted, memories
from bubbleproof.report.document import replay_rows
from bubbleproof.report.extras import require_drawing
from bubbleproof.report.replay_json import (
    ReplayAccount,
    write_measured_trace,
    write_replay,
)
from bubbleproof.report.replay_page import write_replay_page

MOST_RANKS = 8  # whose peaks are said one by one
ENDINGS = (".html", ".perfetto.json", ".json")


def print_report(name: str, report: ReplayReport, request: ReplayRequest) -> int:
    """Print the evidence; the exit status."""
    if request.output.json:
        print_json({"name": name, **report.to_dict()})
    else:
        if print_answer(answer_lines(report), request.detail):
            title = f"{name} (UNSAFE: run without being verified)" if report.unsafe else name
            print_table(title, report.columns, replay_rows(report))
        if request.output.explain:
            print_list("Not as the model's configuration has it", report.model_notes)
            print_list("Of the stages", report.weight_backward)
            print_list("Not counted among live bytes", report.not_counted)
            print_list("Not counted as work", report.not_counted_work)
            print_list("Not checked", not_checked(report))
    return HOLDS if report.ok else BROKEN


def answer_lines(report: ReplayReport) -> list[str]:
    """Whether all is as it should be, what was compared, and what nothing compared.

    Where something differs, the first lines say what.
    """
    where = f"{'UNSAFE, ' * report.unsafe}{_ran(report)}"
    if failures := report.failures:
        first, *others = failures
        return [f"FAIL  {first} ({where})", *others]
    found = {fact.key: fact for fact in report.facts()}
    first, second = ("gradients", ["losses identical"]) if report.trains else ("losses", [])
    lines = [
        f"PASS  {first} bit-identical to the reference ({where})",
        " · ".join([*second, *_numbers(report, found)]),
        *_memory(report),
    ]
    if report.steps:
        lines.append(f"{report.stepped}: bit-identical")
    elif report.num_updated_stages:
        lines.append(f"updated weights of {report.num_updated_stages} stages: bit-identical")
    notes = (*report.model_notes, *report.weight_backward, *report.alike)
    lines += [f"note: {note}" for note in notes]
    lines[-1] += "   (-v: each comparison, --explain: what is not counted)"
    return lines


def _ran(report: ReplayReport) -> str:
    """On what: ``2 ranks, float64; model is float32``."""
    copies = f"{report.data_parallel} replicas of " if report.data_parallel > 1 else ""
    zero = f", ZeRO {report.zero}" if report.zero else ""
    given = ", ".join(report.given_types)
    own = f"; model is {given}" if given not in ("", report.dtype) else ""
    return f"{copies}{counted(report.ranks, 'rank')}{zero}, {report.dtype}{own}"


def _numbers(report: ReplayReport, found: Mapping[str, Fact]) -> Iterator[str]:
    """The rounding error, and the work, where they were compared."""
    what = "backward" if report.trains else "forward"
    error = f"error to plain {what} {report.max_relative_error:.1e}"
    is_seen = found["gradients.max_relative_error"].verdict != UNDECIDABLE
    yield error if is_seen else f"{error} (decides nothing in {report.rounded_to})"
    if report.counts_work:
        actions = sum(len(rank.actions) for rank in report.work)
        yield f"{actions} actions: FLOPs as predicted"


def _memory(report: ReplayReport) -> Iterator[str]:
    """The peaks, where they were compared."""
    if not report.counts_bytes:
        return
    peaks, most = report.peak_bytes.measured, max(report.peak_bytes.measured)
    told = memories(peaks if len(peaks) <= MOST_RANKS else [min(peaks), most])
    between = f"{told} at most on {len(peaks)} ranks" if len(peaks) > MOST_RANKS else told
    what = "memory" if report.num_updated_stages else "activation memory"
    yield f"peak {what} {between}, as predicted"


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
        spec=replace(request.model.spec(), dtype=report.dtype),
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
                write_replay(target, told)
    for written in () if request.output.json else request.targets:
        say(f"wrote {Path(written)}")
