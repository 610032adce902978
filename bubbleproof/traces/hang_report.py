"""Why the ranks of a job stand still, from the dumps that their recorders left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bubbleproof.facts import Fact, FactSource, valued
from bubbleproof.formats.flight_recorder import read_dumps
from bubbleproof.formats.schedule_file import ScheduleFile
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.theory.pipelines.programs.messages_in_programs import (
    program_without_messages,
    without_messages,
)
from bubbleproof.verify import check_communication
from bubbleproof.verify.communication.called_actions import CalledActions
from bubbleproof.verify.communication.hang_finding import why_it_hangs
from bubbleproof.verify.communication.hang_words import (
    HangCell,
    HangFinding,
    HangKind,
    ranks_told,
)
from bubbleproof.verify.communication.recorded_calls import RecordedRun
from bubbleproof.verify.communication.semantics import USUAL


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HangReport(FactSource):
    """``finding`` says what keeps the ranks, ``before`` which rule would have said so, ``notes``
    what the dumps leave open.
    """

    run: RecordedRun
    finding: HangFinding
    before: str

    @property
    def is_hanging(self) -> bool:
        """Whether ranks wait for each other, or may."""
        return self.finding.kind is not HangKind.NONE

    @property
    def is_decided(self) -> bool:
        """Whether the dumps show why."""
        return self.finding.is_decided

    @property
    def sentence(self) -> str:
        """What keeps the ranks."""
        return self.finding.sentence

    @property
    def notes(self) -> tuple[str, ...]:
        """What the dumps leave open, a sentence each."""
        return tuple(_notes(self.run))

    def facts(self) -> list[Fact]:
        """All of it."""
        found, run = self.finding, self.run
        return [
            Fact(key="kind", label="kind", value=found.kind.name.lower()),
            Fact(key="sentence", label="why", value=found.sentence),
            *valued("", cells=[*map(_cell, found.cells)], waits=[*found.cycle]),
            *(Fact(label="wait", value=each) for each in found.cycle),
            Fact(key="semantics", value=found.semantics),
            Fact(key="before", label="before the run", value=self.before),
            *valued("", ranks=[*run.records], missing_ranks=run.missing, lost_calls=run.lost),
            *(Fact(label="left open", value=each) for each in self.notes),
        ]


def hang_report(dumps: Sequence[str], given: ScheduleFile | None = None) -> HangReport:
    """Why ranks stand still.

    Parameters
    ----------
    dumps
        Files of PyTorch's Flight Recorder, one for each rank, or folders of them.
    given
        The schedule that was run: calls are then named by its actions.

    Raises
    ------
    UnusableInput, ValueError
        For what is no dump, and a schedule of another number of ranks.
    """
    run = read_dumps(dumps)
    if given is None:
        found = why_it_hangs(run)
        return HangReport(run=run, finding=found, before=_rule_without(found))
    _require_ranks(given, run)
    program, problem = _program(given), without_messages(given.problem)
    lowered = program_without_messages(given.problem, program)
    called = CalledActions(problem, lowered, run, has_own_order=given.has_communication)
    found = why_it_hangs(run, called)
    return HangReport(run=run, finding=found, before=_rule(found, given, program))


def _cell(cell: HangCell) -> dict[str, object]:
    return {
        "rank": cell.rank,
        "action": None if cell.action is None else str(cell.action),
        "call": None if cell.call is None else str(cell.call),
        "record_id": None if cell.call is None else cell.call.record_id,
    }


def _require_ranks(given: ScheduleFile, run: RecordedRun) -> None:
    if given.problem.num_ranks != run.num_ranks:
        raise ValueError(
            f"{given.name} has {given.problem.num_ranks} ranks, the dumps are of a job with "
            f"{run.num_ranks}; give the schedule that it ran"
        )


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
