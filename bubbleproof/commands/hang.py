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
from bubbleproof.formats import ScheduleFile
from bubbleproof.formats.flight_recorder import read_dumps
from bubbleproof.formats.inputs import read_schedule_input, require_format
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.theory.pipelines.programs.messages_in_programs import (
    program_without_messages,
    without_messages,
)
from bubbleproof.verify import check_communication
from bubbleproof.verify.communication.called_actions import CalledActions
from bubbleproof.verify.communication.hang_finding import why_it_hangs
from bubbleproof.verify.communication.hang_words import HangFinding, HangKind, ranks_told
from bubbleproof.verify.communication.recorded_calls import RecordedRun
from bubbleproof.verify.communication.semantics import USUAL


def run_hang(dumps: Sequence[str], detail: Detail, schedule: str | None, json: bool) -> int:
    """Print why ranks stand still: one sentence, the cells, who waits for whom."""
    for each in dumps:
        require_format(each, "a dump of the Flight Recorder")
    run = read_dumps(dumps)
    given = None if schedule is None else _given(schedule, run)
    if given is None:
        found = why_it_hangs(run)
        before = _rule_without(found)
    else:
        program = _program(given)
        problem = without_messages(given.problem)
        lowered = program_without_messages(given.problem, program)
        own = given.has_communication
        found = why_it_hangs(run, CalledActions(problem, lowered, run, has_own_order=own))
        before = _rule(found, given, program)
    notes = _notes(run)
    if json:
        print_json(_to_json(run, found, before))
    elif print_answer(_lines(found, before, notes), detail):
        calls = [
            (str(cell.rank), str(cell.action or ""), str(cell.call or "never issued"))
            for cell in found.cells
        ]
        print_rows("where to look", ("rank", "action", "call"), calls, detail)
    if found.kind is HangKind.NONE:
        return HOLDS
    return BROKEN if found.is_decided else UNDECIDED


def _lines(found: HangFinding, before: str, notes: Sequence[str]) -> list[str]:
    """Who keeps whom, wait by wait, what would have said so before the run, and what is open."""
    head, colon, _ = found.sentence.partition(": ")
    is_circle = found.kind is HangKind.CYCLE and bool(colon)
    verdict = "DEADLOCK  " if is_circle else "UNDECIDED  " if not found.is_decided else ""
    verdict *= found.kind is not HangKind.NONE
    told = [f"{verdict}{head if is_circle else found.sentence}", *notes]
    told += [each for each in found.cycle if each != found.sentence]
    return [*told, f"before the run: {before}"] if before else told


def _given(schedule: str, run: RecordedRun) -> ScheduleFile:
    given = read_schedule_input([schedule])
    if given.problem.num_ranks != run.num_ranks:
        raise ValueError(
            f"{given.name} has {given.problem.num_ranks} ranks, the dumps are of a job with "
            f"{run.num_ranks}; give the schedule that it ran"
        )
    return given


def _program(given: ScheduleFile) -> Program:
    if given.has_communication:
        return given.program
    return lower(given.problem, given.timed_roughly())


def _rule(found: HangFinding, given: ScheduleFile, program: Program) -> str:
    """What rule 6 says of the schedule under the semantics of the finding."""
    if not found.is_decided:
        return ""
    semantics = (found.semantics,) if found.semantics else USUAL
    verdict = check_communication(given.problem, program, semantics)
    names = ", ".join(each.value for each in semantics)
    if verdict.ok:
        return f"rule 6 holds for {given.name} under {names}: what was run is not what it says"
    message = next(violation.message for violation in verdict.violations)
    return f"rule 6 refuses {given.name} under {found.semantics or names}: {message}"


def _rule_without(found: HangFinding) -> str:
    """The rule and the semantics that refuse such a program."""
    if found.kind in (HangKind.MISMATCH, HangKind.COMMUNICATOR):
        return "rule 6 refuses crossed messages; sizes, types and communicators it does not know"
    if found.semantics is not None:
        return f"rule 6 under {found.semantics.value}: bubbleproof verify SCHEDULE --comm " + (
            found.semantics.value
        )
    return "rule 6: bubbleproof verify SCHEDULE" if found.is_decided else ""


def _notes(run: RecordedRun) -> list[str]:
    notes = []
    if run.missing:
        notes.append(f"the answer is partial: no dump of {ranks_told(run.missing)}")
    if run.lost:
        notes.append(
            f"the first calls of {ranks_told(run.lost)} are lost, so calls there have no actions; "
            "TORCH_FR_BUFFER_SIZE keeps more"
        )
    return notes


def _to_json(run: RecordedRun, found: HangFinding, before: str) -> dict[str, object]:
    return {
        "kind": found.kind.name.lower(),
        "sentence": found.sentence,
        "cells": [
            {
                "rank": cell.rank,
                "action": None if cell.action is None else str(cell.action),
                "call": None if cell.call is None else str(cell.call),
                "record_id": None if cell.call is None else cell.call.record_id,
            }
            for cell in found.cells
        ],
        "waits": list(found.cycle),
        "semantics": found.semantics,
        "before": before,
        "ranks": list(run.records),
        "missing_ranks": run.missing,
        "lost_calls": run.lost,
    }
