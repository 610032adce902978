"""A schedule with its problem: what a schedule file says, and what commands are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bubbleproof.formats.pytorch_csv import CollectiveCell, with_cells
from bubbleproof.theory.model.actions import COMMUNICATION_KINDS
from bubbleproof.theory.model.measures import Measures
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import ClaimedNumber, Program, Schedule
from bubbleproof.theory.pipelines.allowed import AllowedChoices
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.messages_in_programs import with_messages_in_order
from bubbleproof.theory.pipelines.timing import left_shift, rough_times
from bubbleproof.verify.communication.matching import compute_part
from bubbleproof.verify.every_rule import GivenSchedule


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScheduleFile:
    """A program on its problem, and its times where it has any.

    ``program`` is what was given, SEND and RECV included where ``has_communication``. ``schedule``
    is None where the program has no timing on its problem: a deadlock, a lowered program, or one
    that misses, repeats or invents tasks. ``pipeline`` is None for a problem built by hand.
    ``claims`` are also those of the schedule. ``allowed`` is what was free to choose when the
    schedule was made, where a solver chose. ``collectives`` are the cells of a PyTorch table that
    stand beside its program; None where there was no table.
    """

    problem: Problem
    program: Program
    schedule: Schedule | None = None
    pipeline: Pipeline | None = None
    claims: Mapping[str, ClaimedNumber] = field(default_factory=dict)
    name: str = ""
    allowed: AllowedChoices | None = None
    collectives: tuple[CollectiveCell, ...] | None = None

    @classmethod
    def of(
        cls,
        problem: Problem,
        schedule: Schedule,
        *,
        pipeline: Pipeline | None = None,
        name: str = "",
        allowed: AllowedChoices | None = None,
    ) -> ScheduleFile:
        """The file of a schedule, its program and claims."""
        return cls(
            problem=problem,
            program=schedule.program,
            schedule=schedule,
            pipeline=pipeline,
            claims=schedule.claims,
            name=name,
            allowed=allowed,
        )

    @property
    def has_communication(self) -> bool:
        """Whether the program holds SEND or RECV actions (a lowered program)."""
        on_ranks = self.program.resource < self.problem.num_ranks
        return bool((self.program.actions.is_kind(*COMMUNICATION_KINDS) & on_ranks).any())

    @property
    def lowered(self) -> Program | None:
        """The program where it has SEND and RECV of its own; None leaves them to us."""
        return self.program if self.has_communication else None

    @property
    def table(self) -> Program | None:
        """What PyTorch's runtime would run as it stands: a table with messages, all its cells."""
        if self.collectives is None or not (self.has_communication or self.collectives):
            return None
        return with_cells(self.program, self.collectives)

    @property
    def to_judge(self) -> GivenSchedule:
        """What ``verify`` judges of it."""
        return GivenSchedule(
            problem=self.problem,
            made=self.compute if self.schedule is None else self.schedule,
            lowered=self.lowered,
            cells=self.table if self.collectives else None,
            pipeline=self.pipeline,
        )

    @property
    def compute(self) -> Program:
        """The program without the SEND and RECV of ranks."""
        if not self.has_communication:
            return self.program
        return with_messages_in_order(self.problem, compute_part(self.program))

    def timed(self) -> Schedule:
        """The schedule; raises ``ValueError`` with the reason where there are no times."""
        if self.schedule is not None:
            return self.schedule
        return left_shift(self.problem, self.compute)

    def timed_roughly(self) -> Schedule:
        """The schedule or, where there are no times, rough ones (``timing.rough_times``)."""
        return self.schedule or rough_times(self.problem, self.compute)


def with_claims(schedule: Schedule, measured: Measures) -> Schedule:
    """The schedule with its measured numbers as claims, for ``verify`` to confirm."""
    claims: dict[str, ClaimedNumber] = {
        "makespan": measured.makespan,
        "idle_ratio": measured.idle_ratio,
        "peak_memory": measured.peak_memory,
    }
    return replace(schedule, claims=claims)
