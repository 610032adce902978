"""What is not so of an answer to why ranks stand still, by the run that the dumps were made of."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.verify import check_communication
from bubbleproof.verify.communication.hang_words import HangCell, HangFinding, HangKind
from bubbleproof.verify.communication.recorded_calls import RecordedRun
from bubbleproof.verify.communication.recorded_waits import CallNode, StepOfCall
from proofs_tests.verify.program_mutations import Orders
from proofs_tests.verify.standing_runs import ProgramRow, StandingRun


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingSpecimen:
    """A program that was run, and how."""

    name: str
    problem: Problem
    orders: Orders
    run: StandingRun
    has_collectives: bool


def faults(
    found: StandingSpecimen, recorded: RecordedRun, answer: HangFinding, *, has_schedule: bool
) -> list[str]:
    """What is not as the answer says, in words."""
    run = found.run
    if answer.kind is HangKind.NONE:
        return ["a rank waits"] if run.hangs or recorded.missing else []
    if answer.kind in (HangKind.UNKNOWN, HangKind.UNDER_WAY):
        return [] if recorded.missing or recorded.lost else ["not decided"]
    if not run.hangs:
        return ["no rank waits"]
    wrong = [why for cell in answer.cells for why in _wrong_cell(run, cell, has_schedule)]
    if answer.kind is HangKind.MISMATCH or not (answer.nodes or _crosses(answer)):
        return wrong + _wrong_ends(run, answer)
    if _crosses(answer):
        one, other = (_row(run, cell) for cell in answer.cells)
        return wrong + (["one communicator"] if one.group == other.group else [])
    return wrong + _wrong_waits(found, answer)


def takes_streams_for_granted(found: StandingSpecimen, answer: HangFinding) -> bool:
    """Whether the answer rests on streams that torch has on NCCL and that this run had not."""
    return answer.semantics == "pair-stream" and found.run.semantics == "buffered"


def _crosses(answer: HangFinding) -> bool:
    """Whether two calls in different communicators are told."""
    calls = [cell.call for cell in answer.cells]
    groups = {call.communicator for call in calls if call is not None}
    return not answer.nodes and len(groups) > 1


def _wrong_waits(found: StandingSpecimen, answer: HangFinding) -> list[str]:
    run, nodes = found.run, answer.nodes
    wrong = [f"no wait: {a} on {b}" for a, b in pairwise(nodes) if not _waits(run, a, b)]
    if answer.kind is HangKind.NEVER_ISSUED or len(answer.nodes) == 2:
        return wrong + (["it is issued later"] if _comes(run, nodes[-1]) else [])
    if not _waits(run, nodes[-1], nodes[0]):
        wrong.append("no circle")
    if answer.kind is HangKind.CYCLE and answer.semantics and not found.has_collectives:
        program = Program.from_orders(found.orders)
        if check_communication(found.problem, program, (answer.semantics,)).ok:
            wrong.append(f"rule 6 holds under {answer.semantics}")
    return wrong


def _row(run: StandingRun, cell: HangCell) -> ProgramRow:
    assert cell.call is not None
    return run.issued[cell.rank][cell.call.record_id]


def _wrong_cell(run: StandingRun, cell: HangCell, has_schedule: bool) -> list[str]:
    if cell.call is None or not has_schedule or cell.call.number != cell.call.record_id:
        return []  # calls of a rank that lost some have no actions
    row = _row(run, cell)
    return [] if row.action == cell.action else [f"{cell.action} is {row.action}"]


def _wrong_ends(run: StandingRun, answer: HangFinding) -> list[str]:
    one, other = (_row(run, cell) for cell in answer.cells)
    if run.other_ends(one).get(other.rank) is not other:
        return ["no two ends"]
    return ["they fit"] if one.fits(other) or (one.is_ended and other.is_ended) else []


def _comes(run: StandingRun, issue: CallNode) -> bool:
    """Whether the rank's program still has the other end."""
    row = run.issued[issue.call.rank][issue.call.record_id]
    other = run.other_ends(row).get(issue.rank)
    return other is not None and other.step == row.step


def _waits(run: StandingRun, node: CallNode, on: CallNode) -> bool:
    """Whether the first waits for the second, in the run."""
    row = run.issued[node.call.rank][node.call.record_id]
    aim = run.issued[on.call.rank][on.call.record_id]
    if node.step is StepOfCall.END:
        other = run.other_ends(row).get(on.rank)
        if on.step is StepOfCall.ISSUE:
            return aim is row and (other is None or other not in run.issued[on.rank])
        return not row.is_ended and aim in (row, other)
    if node.step is StepOfCall.START:
        if on.step is StepOfCall.START:
            return aim in run.launched_before(row)
        return not aim.is_ended and (aim in run.before_in_stream(row) or aim in row.needs)
    order = run.rows[node.rank]
    if run.position[node.rank] == len(order) or aim.is_ended:
        return False
    at, wanted = order[run.position[node.rank]], run.other_ends(row).get(node.rank)
    return aim is at or aim in at.needs or (wanted is not None and aim in wanted.needs)
