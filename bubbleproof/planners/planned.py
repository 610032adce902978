"""What a plan is: the winner, why the others lost, and how good that is proved to be.

``value`` is the winner's makespan (ticks), or its cost where that has more (``CandidateResult``);
``lower_bound`` the least bound over all legal candidates. OPTIMAL says that the two meet: no
schedule of any candidate, whatever is chosen in it, is shorter. A bound is shown by a certificate
of the candidate's relaxation (``verify.candidates.relaxation``) or of each of its cases
(``verify.candidates.cases``), or said by an engine, which is named.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from bubbleproof.planners.outcome import Outcome, OutcomeReason
from bubbleproof.solvers.result import Status
from bubbleproof.theory.model.measures import Measures
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.plan_space import Candidate, PlanSpace
from bubbleproof.verify.candidates.bundle import CandidateBound
from bubbleproof.verify.candidates.cases import CandidateProof
from bubbleproof.verify.verdict import Verdict

Told = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """How to plan: seconds in all, threads of an engine, its seed.

    ``work`` limits what is done, in units of about a second each: status, bounds and schedules are
    then the same in every run with as many threads, with workers or without, that does not meet the
    time limit.
    ``tell`` is called with a line whenever a candidate was looked at. Setting ``stop`` from another
    thread, or Ctrl-C, ends the search with what it has.
    Raises ``ValueError`` for a limit, threads or a seed that are none.
    """

    time_limit: float = 60.0
    work: float | None = None
    threads: int = 2
    seed: int = 1
    tell: Told | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        if not self.time_limit > 0:
            raise ValueError(f"time limit must be above 0 seconds, got {self.time_limit}")
        if self.work is not None and not self.work > 0:
            raise ValueError(f"work must be above 0 units, got {self.work}")
        if self.threads < 1:
            raise ValueError(f"threads must be 1 or more, got {self.threads}")
        if not 0 <= self.seed < 1 << 31:
            raise ValueError(f"seed must be 0 to 2**31 - 1, got {self.seed}")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CandidateResult:
    """A candidate and what became of it.

    ``status`` is that of this candidate alone. ``pipeline`` has its choices fixed where a
    ``schedule`` was found. No schedule takes less than ``bound`` ticks: shown by ``certificate``,
    or by the ``word`` of an engine. ``reason`` tells why it lost, or what it rests on. ``cost`` are
    the ticks of a step where a plan goes by more than the makespan: with what hosts and NICs do
    after it.
    """

    candidate: Candidate
    status: Outcome
    reason: OutcomeReason
    pipeline: Pipeline | None = None
    schedule: Schedule | None = None
    measured: Measures | None = None
    origin: str = ""
    bound: int = 0
    certificate: CandidateProof | None = None
    word: str = ""
    cost: int | None = None

    @property
    def value(self) -> int | None:
        """The cost in ticks, which is the makespan where nothing else is told."""
        if self.cost is not None or self.measured is None:
            return self.cost
        return self.measured.makespan

    @property
    def peak_memory(self) -> int | None:
        """The highest load of any rank's memory, in memory units."""
        return None if self.measured is None else max(self.measured.peak_memory, default=0)

    @property
    def is_legal(self) -> bool:
        return self.status is not Outcome.NOT_LEGAL

    @property
    def bounded(self) -> CandidateBound:
        """Its entry in the bundle of proofs."""
        return CandidateBound(
            candidate=self.candidate,
            bound=self.bound,
            certificate=self.certificate,
            word="" if self.certificate is not None else self.word,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSource:
    """The problem file that was planned, by its name and text; empty where there was none."""

    name: str = ""
    text: str = ""


NO_FILE = PlanSource()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """The outcome; ``judged`` has every candidate of the space in its order.

    ``verdict`` are all rules on the winner's schedule. Without a winner, ``least_capacity`` is a
    memory per rank in which something fits, where that was found.
    """

    space: PlanSpace
    status: Status
    judged: tuple[CandidateResult, ...]
    winner: CandidateResult | None
    verdict: Verdict | None
    least_capacity: int | None
    seconds: float
    reason: str = ""
    source: PlanSource = NO_FILE

    def __repr__(self) -> str:
        found = "" if self.winner is None else f", {self.winner.candidate}: {self.value}"
        return f"<Plan: {self.statement}{found}>"

    @property
    def value(self) -> int | None:
        """The winner's makespan in ticks, or its cost."""
        return None if self.winner is None else self.winner.value

    @property
    def lower_bound(self) -> int:
        """The least bound over all legal candidates, in ticks; 0 where none is legal."""
        return min((one.bound for one in self.judged if one.is_legal), default=0)

    @property
    def believed(self) -> tuple[str, ...]:
        """The engines on whose word the bound rests, by name."""
        return tuple(sorted({j.word for j in self.judged if j.is_legal and j.word}))

    @property
    def statement(self) -> str:
        """How good the plan is, in words."""
        if self.status is Status.OPTIMAL:
            by = f" by the word of {' and '.join(self.believed)}" if self.believed else ""
            return f"optimal over these choices{by}"
        return {
            Status.FEASIBLE: "feasible: no shorter schedule was found, nor excluded",
            Status.INFEASIBLE: "infeasible: no candidate has a schedule that fits",
            Status.UNKNOWN: "unknown: no schedule was found in the time given",
        }[self.status]

    @property
    def bundle(self) -> tuple[CandidateBound, ...]:
        """What shows the bound of every legal candidate."""
        return tuple(one.bounded for one in self.judged if one.is_legal)

    @property
    def front(self) -> tuple[CandidateResult, ...]:
        """Of the schedules found, those that no other beats in makespan and in peak memory."""
        found = [one for one in self.judged if one.value is not None]
        found.sort(key=lambda one: (one.value or 0, one.peak_memory or 0))
        front: list[CandidateResult] = []
        for one in found:
            if not front or (one.peak_memory or 0) < (front[-1].peak_memory or 0):
                front.append(one)
        return tuple(front)

    def ranked(
        self, by: Callable[[CandidateResult], float] | None = None
    ) -> tuple[CandidateResult, ...]:
        """All candidates: the found ones by their makespan, or by what ``by`` says, then others."""

        def place(one: CandidateResult) -> tuple[bool, float, bool]:
            found = one.value is not None
            return not found, 0 if not found else (by or _nominal)(one), not one.is_legal

        return tuple(sorted(self.judged, key=place))


def _nominal(one: CandidateResult) -> float:
    assert one.value is not None
    return one.value
