"""A deployment while it is searched: its shapes with their bounds, and the best that is known."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from bubbleproof.costs.combinations import CombinationCosts
from bubbleproof.planners.case_proofs import NEVER
from bubbleproof.planners.cluster_planned import DeploymentRow, solved_deployment
from bubbleproof.planners.known_schedules import KnownSchedule
from bubbleproof.planners.looks import SearchOutcome
from bubbleproof.planners.outcome import Outcome, solved_outcome, unsolved_outcome
from bubbleproof.planners.planned import NoPlanFound, Plan
from bubbleproof.planners.shape_bounds import ShapeBound, legal_shapes
from bubbleproof.solvers import Status
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate, PlanSpace
from bubbleproof.verify.candidates.bundle import CandidateBound

NO_ROOM = "does not fit: no shape has room for one microbatch"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class FoundIteration:
    """An iteration in ticks, and the highest load of a card's memory; the less is the better.

    ``candidate`` is the shape that has it.
    """

    value: int
    peak_memory: int
    candidate: Candidate = field(compare=False)


@dataclass(kw_only=True, eq=False)
class DeploymentStanding:
    """A deployment, and what is known of its iteration (ticks).

    ``known`` is the schedule of the ``best`` iteration, ``plan`` what the search of its pipeline
    alone found, where there was one (``is_planned``); ``reason`` tells why it is out, and is
    empty as long as it is not. Before its shapes are made no iteration is below the ``floor``.
    ``looked`` has its shapes that had their first look, or need none; ``is_passed_over`` tells that
    one had no time for it. ``is_settled``: of the orders that may be run all were timed that may
    be the best.
    """

    counted: CombinationCosts
    step_end: int
    shapes: list[ShapeBound] = field(default_factory=list)
    best: FoundIteration | None = None
    known: KnownSchedule | None = None
    plan: Plan | None = None
    is_planned: bool = False
    reason: str = ""
    is_too_large: bool = False
    floor: int = 0
    is_opened: bool = False
    is_settled: bool = False
    looked: set[Candidate] = field(default_factory=set)
    is_passed_over: bool = False

    def refuse(self, why: str, *, is_too_large: bool) -> None:
        """No candidate of it is legal."""
        if not self.counted.reason:
            self.counted = replace(self.counted, is_legal=False)
        self.is_too_large, self.reason = is_too_large, self.counted.reason or why

    def find_shapes(self, space: PlanSpace) -> None:
        """Those of its space, the least bound first."""
        self.is_opened = True
        self.shapes, reasons = legal_shapes(space)
        if not self.shapes:
            large = [why for why in reasons if why.is_too_large]
            self.is_too_large, self.reason = bool(large), str((large or reasons)[0])
            self.counted = replace(self.counted, is_legal=False)
            return
        self.shapes.sort(key=self.bound_of)
        self.rule_out()

    def rule_out(self) -> None:
        """Where no shape has room."""
        if self.bound == NEVER:
            self.reason = self.counted.reason or NO_ROOM

    @property
    def is_seen(self) -> bool:
        """Whether each of its shapes had its turn."""
        return len(self.looked) == len(self.shapes)

    @property
    def bound(self) -> int:
        """No iteration takes less; ``NEVER`` where nothing fits."""
        return min(map(self.bound_of, self.shapes), default=self.floor)

    def bound_of(self, shape: ShapeBound) -> int:
        """The bound of an iteration of one of its shapes."""
        return min(NEVER, shape.bounded.bound + self.step_end)

    @property
    def bundle(self) -> tuple[CandidateBound, ...]:
        """What shows the bound of each of its candidates."""
        return tuple(shape.bounded for shape in self.shapes)

    def take(self, shape: ShapeBound, seen: SearchOutcome) -> None:
        """What a look at one of its shapes brought."""
        shape.take(
            CandidateBound(
                candidate=shape.candidate,
                bound=seen.bound,
                certificate=seen.certificate,
                word=seen.word,
            )
        )
        if seen.found is None:
            return
        peak = max(seen.found.measured.peak_memory, default=0)
        value = seen.found.value + self.step_end
        found = FoundIteration(value=value, peak_memory=peak, candidate=shape.candidate)
        if self.best is None or found < self.best:
            self.best = found
            self.known = KnownSchedule(candidate=shape.candidate, found=seen.found)

    def take_plan(self, found: Plan | NoPlanFound) -> None:
        """What the search of its pipeline alone brought."""
        self.is_planned = True
        if isinstance(found, Plan):
            winner = found.winner
            self.best = FoundIteration(
                value=found.value + self.step_end,
                peak_memory=winner.peak_memory,
                candidate=winner.candidate,
            )
            self.plan = found
        bounds = {each.candidate: each for each in found.bundle}
        for shape in self.shapes:
            shape.take(bounds[shape.candidate])
        if found.status is Status.INFEASIBLE:
            self.reason = "does not fit: no schedule of it does"

    def status(self, best: DeploymentStanding | None) -> Outcome:
        """What became of this one alone."""
        if self.is_too_large:
            return Outcome.TOO_LARGE
        if not self.counted.is_legal:
            return Outcome.NOT_LEGAL
        if self.reason:
            return Outcome.INFEASIBLE
        if self.best is None:
            return unsolved_outcome(self.bound, value_of(best))
        return solved_outcome(self.best.value, self.bound)

    def told(self, best: DeploymentStanding | None) -> str:
        """Why it is not the plan, or that it is."""
        value = value_of(best)
        if self.reason:
            return self.reason
        if self is best:
            return "the plan"
        if value is None:
            return "no schedule was found in the time given"
        if self.bound >= value:
            return "bound not below the plan"
        if self.is_settled:
            return "its orders do not fit" if self.best is None else "its orders are longer"
        return "open: bound below the plan"

    def row(self, best: DeploymentStanding | None) -> DeploymentRow:
        """What became of it, beside the best."""
        row = DeploymentRow(
            combination=self.counted.combination,
            status=self.status(best),
            reason=self.told(best),
            bound=self.bound,
            on_card=self.counted.needed,
        )
        if self.best is None or self.counted.numbers is None:
            return row
        return solved_deployment(
            row,
            value=self.best.value,
            peak_memory=self.best.peak_memory,
            candidate=self.best.candidate,
            beside=self.counted.numbers.beside,
        )


def value_of(best: DeploymentStanding | None) -> int | None:
    """The iteration of the best so far."""
    return None if best is None or best.best is None else best.best.value
