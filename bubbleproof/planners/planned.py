"""What a plan is: the winner, why the others lost, and how good that is proved to be; or no plan.

``value`` is the winner's makespan (ticks), or its cost where that has more (``SolvedCandidate``);
``lower_bound`` the least bound over all legal candidates. OPTIMAL says that the two meet: no
schedule of any candidate, whatever is chosen in it, is shorter. A bound is shown by a certificate
of the candidate's relaxation (``verify.candidates.relaxation``) or of each of its cases
(``verify.candidates.cases``), or said by an engine, which is named.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Protocol, TypeVar

from bubbleproof.facts import extended
from bubbleproof.planners.looks import FoundSchedule
from bubbleproof.planners.outcome import Outcome, OutcomeReason
from bubbleproof.solvers.options import SolveOptions
from bubbleproof.solvers.result import Status
from bubbleproof.solvers.search_limits import SearchLimits
from bubbleproof.theory.model.measures import Measures
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.cut_bounds import NEVER
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate, PlanSpace
from bubbleproof.theory.pipelines.shapes.space_scope import with_cuts
from bubbleproof.verify import Verdict, check_whole, join
from bubbleproof.verify.candidates.bundle import CandidateBound
from bubbleproof.verify.candidates.cases import CandidateProof
from bubbleproof.verify.every_rule import check_required

Told = Callable[[str], None]
STATEMENTS = {
    Status.FEASIBLE: "feasible: no shorter schedule was found, nor excluded",
    Status.INFEASIBLE: "infeasible: no candidate has a schedule that fits",
    Status.UNKNOWN: "unknown: no schedule was found in the time given",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions(SearchLimits):
    """How to plan: seconds in all, threads of an engine, its seed, the bytes that it may take.

    ``work`` limits what is done, in units of about a second each: status, bounds and schedules are
    then the same in every run with as many threads, with workers or without, that does not meet the
    time limit, which may be ``inf``.
    ``tell`` is called with a line whenever a candidate was looked at. Setting ``stop`` from another
    thread, or Ctrl-C, ends the search with what it has.
    ``orders`` are the families whose orders may be run, by name; empty: any order.
    Raises ``ValueError`` for a limit, threads or a seed that are none.
    """

    tell: Told | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    orders: tuple[str, ...] = ()

    def solving(
        self, seconds: float, work: float | None, within: int | None = None
    ) -> SolveOptions:
        """How a solver looks for a schedule, of ``within`` ticks at most.

        Parameters
        ----------
        seconds
            The solver's time limit, which may be ``inf``.
        work
            Units of work; None where they are not limited.
        within
            Ticks; None for any schedule.
        """
        return SolveOptions(
            time_limit=seconds,
            work=work,
            threads=self.threads,
            seed=self.seed,
            memory=self.memory,
            within=within,
            stop=self.stop,
        )

    def times(self, number: float) -> PlanOptions:
        """As much time and work as for so many.

        Parameters
        ----------
        number
            Above 0; of a part below 1.
        """
        work = None if self.work is None else self.work * number
        return replace(self, time_limit=self.time_limit * number, work=work)

    def after(self, seconds: float) -> PlanOptions:
        """What is left of them once so many seconds have gone: a tenth at least.

        Parameters
        ----------
        seconds
            Of the clock, 0 or more.
        """
        return replace(self, time_limit=max(0.1 * self.time_limit, self.time_limit - seconds))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CandidateResult:
    """A candidate and what became of it; one that has a schedule is a ``SolvedCandidate``.

    ``status`` is that of this candidate alone, ``reason`` why it lost, or what it rests on. No
    schedule takes less than ``bound`` ticks: shown by ``certificate``, or by the ``word`` of an
    engine.
    """

    candidate: Candidate
    status: Outcome
    reason: OutcomeReason
    bound: int = 0
    certificate: CandidateProof | None = None
    word: str = ""

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

    def without_schedule(self, status: Outcome, reason: OutcomeReason) -> CandidateResult:
        """Its bound alone."""
        return extended(CandidateResult, self, status=status, reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSource:
    """The problem file that was planned, by its name and text; empty where there was none."""

    name: str = ""
    text: str = ""


NO_FILE = PlanSource()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SolvedCandidate(CandidateResult):
    """A candidate with a schedule that the checker accepted; ``pipeline`` has its choices fixed.

    ``value`` are the ticks that a plan goes by: the makespan, or where ``has_more`` a cost of the
    step that counts more, such as what hosts and NICs do after it.
    """

    pipeline: Pipeline
    schedule: Schedule
    measured: Measures
    origin: str
    value: int
    has_more: bool = False

    @property
    def found(self) -> FoundSchedule:
        """Its schedule, without what it is a candidate of."""
        return extended(FoundSchedule, self)

    @property
    def peak_memory(self) -> int:
        """The highest load of any rank's memory, in memory units."""
        return self.found.peak_memory


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchResults:
    """What every search for a plan ends with.

    ``seconds`` were taken; ``reason`` tells of an interruption. ``source`` is the file planned.
    """

    status: Status
    seconds: float
    reason: str = ""
    source: PlanSource = NO_FILE


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CandidateResults(SearchResults):
    """What a plan is and what is none have in common: every candidate, in the space's order."""

    space: PlanSpace
    judged: tuple[CandidateResult, ...]
    others: int = NEVER

    @property
    def lower_bound(self) -> int:
        """The least bound over all legal candidates, in ticks, and of all other cuts that are meant
        too (``others``); 0 where none is legal."""
        bounds = [one.bound for one in self.judged if one.is_legal]
        return min([*bounds, self.others]) if bounds else 0

    @property
    def bounded(self) -> str:
        """What no schedule of is below ``lower_bound``, in words."""
        return f"any schedule of these candidates{with_cuts(self.space)}"

    @property
    def believed(self) -> tuple[str, ...]:
        """The engines on whose word the bound rests, by name."""
        return tuple(sorted({j.word for j in self.judged if j.is_legal and j.word}))

    @property
    def statement(self) -> str:
        """How good the plan is, in words."""
        if self.status is Status.OPTIMAL:
            names = " and ".join(self.believed)
            by = f" by an uncertified bound of {names}" if names else ""
            return f"optimal over these choices{with_cuts(self.space)}{by}"
        return STATEMENTS[self.status]

    @property
    def bundle(self) -> tuple[CandidateBound, ...]:
        """What shows the bound of every legal candidate."""
        return tuple(one.bounded for one in self.judged if one.is_legal)

    @property
    def solved(self) -> tuple[SolvedCandidate, ...]:
        """Those that have a schedule."""
        return tuple(one for one in self.judged if isinstance(one, SolvedCandidate))

    def ranked(
        self, by: Callable[[SolvedCandidate], float] | None = None
    ) -> tuple[CandidateResult, ...]:
        """All candidates: the found ones by their makespan, or by what ``by`` says, then others."""

        def place(one: CandidateResult) -> tuple[bool, float, bool]:
            if not isinstance(one, SolvedCandidate):
                return True, 0, not one.is_legal
            return False, one.value if by is None else by(one), False

        return tuple(sorted(self.judged, key=place))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan(CandidateResults):
    """The best pipeline of a space; ``verdict`` are all rules on the winner's schedule."""

    winner: SolvedCandidate
    verdict: Verdict

    def __repr__(self) -> str:
        return f"<Plan: {self.statement}, {self.winner.candidate}: {self.value}>"

    @property
    def value(self) -> int:
        """The winner's makespan in ticks, or its cost."""
        return self.winner.value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoPlanFound(CandidateResults):
    """That nothing was found, or that nothing fits.

    ``least_capacity`` is a memory per rank in which something fits, None where none was found.
    """

    least_capacity: int | None = None

    def __repr__(self) -> str:
        return f"<NoPlanFound: {self.statement}>"


class TicksAndMemory(Protocol):
    """Anything with a schedule: what it takes, and the highest load of a rank's memory."""

    @property
    def value(self) -> int: ...
    @property
    def peak_memory(self) -> int: ...


Placed = TypeVar("Placed", bound=TicksAndMemory)


def place_of(one: TicksAndMemory) -> tuple[int, int]:
    """Which schedule is better: the shorter, of equals the one with less memory."""
    return one.value, one.peak_memory


def front_of(solved: Iterable[Placed]) -> tuple[Placed, ...]:
    """Those that no other beats in ticks and in peak memory, the shortest first."""
    front: list[Placed] = []
    for one in sorted(solved, key=place_of):
        if not front or one.peak_memory < front[-1].peak_memory:
            front.append(one)
    return tuple(front)


def solved_candidate(result: CandidateResult, found: FoundSchedule) -> SolvedCandidate:
    """The candidate with a schedule, whose value is the makespan."""
    own = {each.name: getattr(found, each.name) for each in fields(found)}
    return extended(SolvedCandidate, result, **own, value=found.value)


def verdict_of(winner: SolvedCandidate) -> Verdict:
    """All rules on the winner's schedule, and that its tasks are what its pipeline requires."""
    problem = winner.pipeline.problem()
    requirement = check_required(winner.pipeline, problem)
    return join([check_whole(problem, winner.schedule), Verdict(decisions=(requirement,))])
