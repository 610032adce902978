"""``bubbleproof hang DUMPS... [--schedule S]``: why the ranks of a job stand still.

From dumps of PyTorch's Flight Recorder, one for each rank; with the schedule that was run, calls
are named by its actions and what a computation waits for is known. Status 1 where the dumps show
why, 0 where no rank waits for another, 3 where they do not decide.

``--json`` prints ``kind``, ``sentence``, ``cells`` (``rank``, ``action``, ``call`` and
``record_id``, null for what was never issued), ``waits`` in words, ``semantics``, ``before`` (the
rule of ``verify`` that would have said so), ``ranks``, ``missing_ranks`` and ``lost_calls`` (ranks
whose recorders lost their first calls).
"""

from __future__ import annotations

from collections.abc import Sequence

from bubbleproof.commands.first_lines import print_answer, print_rows
from bubbleproof.commands.options.shared_options import Detail
from bubbleproof.commands.output import BROKEN, HOLDS, UNDECIDED, print_json
from bubbleproof.formats.inputs import read_schedule_input, require_format
from bubbleproof.traces.hang_report import HangReport, hang_report
from bubbleproof.verify.communication.hang_words import HangKind


def run_hang(dumps: Sequence[str], detail: Detail, schedule: str | None, json: bool) -> int:
    """Print why ranks stand still: one sentence, the cells, who waits for whom."""
    for each in dumps:
        require_format(each, "a dump of the Flight Recorder")
    found = hang_report(dumps, None if schedule is None else read_schedule_input([schedule]))
    if json:
        print_json(found.to_dict())
    elif print_answer(_lines(found), detail):
        calls = [
            (str(cell.rank), str(cell.action or ""), str(cell.call or "never issued"))
            for cell in found.finding.cells
        ]
        print_rows("where to look", ("rank", "action", "call"), calls, detail)
    if not found.is_hanging:
        return HOLDS
    return BROKEN if found.is_decided else UNDECIDED


def _lines(report: HangReport) -> list[str]:
    """Who keeps whom, wait by wait, what would have said so before the run, and what is open."""
    found, before = report.finding, report.before
    head, colon, _ = found.sentence.partition(": ")
    is_circle = found.kind is HangKind.CYCLE and bool(colon)
    verdict = "DEADLOCK  " if is_circle else "UNDECIDED  " if not found.is_decided else ""
    verdict *= found.kind is not HangKind.NONE
    told = [f"{verdict}{head if is_circle else found.sentence}", *report.notes]
    told += [each for each in found.cycle if each != found.sentence]
    return [*told, f"before the run: {before}"] if before else told
