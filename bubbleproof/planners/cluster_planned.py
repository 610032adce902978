"""What a plan of a model on a cluster is: every deployment, what became of it, and what shows it.

An *iteration* is the makespan of a deployment's pipeline and what follows it in every step
(gradients, weights, optimizer), in ticks. ``bundles`` has for each deployment that no number
forbids the bound of each of its candidates with its proof, which ``verify.candidates.bundle`` holds
against deployments derived anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bubbleproof.costs.combinations import Combination, CombinationCosts
from bubbleproof.planners.case_proofs import NEVER
from bubbleproof.planners.cluster_bound import quick_claim
from bubbleproof.planners.known_schedules import KnownSchedule
from bubbleproof.planners.outcome import Outcome, solved_outcome, unsolved_outcome
from bubbleproof.planners.planned import NO_FILE, Plan, PlanSource
from bubbleproof.solvers import Status
from bubbleproof.theory.pipelines.plan_space import Candidate, PlanSpace
from bubbleproof.theory.pipelines.shaping import NotLegalError, ShapedPipeline, shaped
from bubbleproof.verify.candidates.bundle import CandidateBound, DeploymentSpace


@dataclass(kw_only=True, eq=False)
class ShapeBound:
    """A candidate of a deployment's pipeline, and the best bound on its makespan."""

    candidate: Candidate
    shaped: ShapedPipeline
    bounded: CandidateBound

    @classmethod
    def of(cls, candidate: Candidate, found: ShapedPipeline) -> ShapeBound:
        """With the bound of microseconds."""
        claim = quick_claim(found)
        bounded = CandidateBound(
            candidate=candidate, bound=0 if claim is None else claim.bound, certificate=claim
        )
        return cls(candidate=candidate, shaped=found, bounded=bounded)

    def take(self, bounded: CandidateBound) -> None:
        """Another bound of it: the greater counts, of equals the one that is shown."""
        is_shown = bounded.certificate is not None and self.bounded.certificate is None
        if (bounded.bound, is_shown) > (self.bounded.bound, False):
            self.bounded = bounded


def legal_shapes(space: PlanSpace) -> tuple[list[ShapeBound], list[NotLegalError]]:
    """The legal candidates of a space, and why others are none."""
    shapes, reasons = [], []
    for candidate in space.candidates():
        try:
            shapes.append(ShapeBound.of(candidate, shaped(space, candidate)))
        except NotLegalError as why:
            reasons.append(why)
    return shapes, reasons


@dataclass(kw_only=True, eq=False)
class DeploymentProgress:
    """A combination, and what is known of its iteration (ticks)."""

    counted: CombinationCosts
    space: PlanSpace | None = None
    shapes: list[ShapeBound] = field(default_factory=list)
    value: int | None = None
    peak: int | None = None
    plan: Plan | None = None
    known: KnownSchedule | None = None  # the schedule of ``value``
    reason: str = ""
    is_too_large: bool = False

    @property
    def step_end(self) -> int:
        return 0 if self.counted.numbers is None else self.counted.numbers.step_end

    @property
    def bound(self) -> int:
        """No iteration takes less; ``NEVER`` where nothing fits."""
        if not self.shapes:
            return 0
        return min(map(self.bound_of, self.shapes))

    def bound_of(self, shape: ShapeBound) -> int:
        """The bound of an iteration of one of its shapes."""
        return min(NEVER, shape.bounded.bound + self.step_end)

    @property
    def on_card(self) -> int:
        """Bytes of a card; see ``DeploymentRow``."""
        if self.peak is None or self.counted.numbers is None:
            return self.counted.needed
        return self.peak + self.counted.numbers.beside

    @property
    def bundle(self) -> tuple[CandidateBound, ...]:
        """What shows the bound of each of its candidates."""
        return tuple(shape.bounded for shape in self.shapes)

    def status(self, best: DeploymentProgress | None) -> Outcome:
        """What became of this one alone."""
        if self.is_too_large:
            return Outcome.TOO_LARGE
        if not self.counted.is_legal:
            return Outcome.NOT_LEGAL
        if self.reason:
            return Outcome.INFEASIBLE
        if self.value is None:
            return unsolved_outcome(self.bound, None if best is None else best.value)
        return solved_outcome(self.value, self.bound)

    def told(self, best: DeploymentProgress | None) -> str:
        """Why it is not the plan, or that it is."""
        if self.reason:
            return self.reason
        if self is best:
            return "the plan"
        if best is None or best.value is None:
            return "no schedule was found in the time given"
        if self.bound >= best.value:
            return "bound not below the plan"
        return "open: bound below the plan"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeploymentRow:
    """A combination and what became of it: iterations in ticks, the highest load in bytes.

    ``on_card`` are bytes of a card: those of the highest load with all that lies beside it, or,
    where there is no schedule, those that one microbatch needs.
    """

    combination: Combination
    status: Outcome
    reason: str
    value: int | None
    bound: int
    peak_memory: int | None
    on_card: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterPlan:
    """The outcome. ``plan`` is the joint planner's of the ``winner``'s problem.

    ``value`` and ``lower_bound`` are iterations in ticks; ``step_end`` is the part of ``value``
    that follows the pipeline. Without a winner ``least_memory`` bytes of a card let the nearest
    combination (``nearest``) run. ``bundled`` has the proofs of those deployments that have a
    space, by name.
    """

    status: Status
    rows: tuple[DeploymentRow, ...]
    winner: CombinationCosts | None
    plan: Plan | None
    value: int | None
    lower_bound: int
    step_end: int
    least_memory: int | None
    nearest: Combination | None
    seconds: float
    bundled: Mapping[str, tuple[CandidateBound, ...]]
    reason: str = ""
    source: PlanSource = NO_FILE

    def __repr__(self) -> str:
        told = self.status.name.lower()
        found = "" if self.winner is None else f", {self.winner.combination}: {self.value} us"
        bound = "" if self.winner is None else f", no iteration is below {self.lower_bound}"
        return f"<ClusterPlan: {told}{found}{bound}, {len(self.rows)} deployments>"

    def bundles(self, deployed: Sequence[DeploymentSpace]) -> dict[str, tuple[CandidateBound, ...]]:
        """The proofs of every deployment."""
        return {one.name: self.bundled.get(one.name) or _unseen(one) for one in deployed}


def _unseen(one: DeploymentSpace) -> tuple[CandidateBound, ...]:
    """Of one that an interrupted search did not come to."""
    shapes, _ = legal_shapes(one.space)
    return tuple(shape.bounded for shape in shapes)
