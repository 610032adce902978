"""What a plan of a model on a cluster is: every deployment, what became of it, and what shows it.

An *iteration* is the makespan of a deployment's pipeline and what follows it in every step
(gradients, weights, optimizer), in ticks. ``bundles`` has for each deployment that no number
forbids the bound of each of its candidates with its proof, which ``verify.candidates.bundle`` holds
against deployments derived anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bubbleproof.costs.combinations import Combination, CombinationCosts, ForbiddenCombination
from bubbleproof.facts import extended
from bubbleproof.planners.candidate_standing import legal_candidates
from bubbleproof.planners.counting import UncountedCombination
from bubbleproof.planners.outcome import Outcome
from bubbleproof.planners.planned import Plan, SearchResults
from bubbleproof.solvers.result import Status
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate
from bubbleproof.verify.candidates.bundle import CandidateBound, DeploymentSpace

UNFIT = (Outcome.TOO_LARGE, Outcome.NOT_LEGAL, Outcome.INFEASIBLE)
NOT_COUNTED = "not estimated: the time did not suffice for so many deployments"
ESTIMATED = "by the estimated times"
ANY_ORDER = "any order of these deployments"
STATEMENTS = {
    Status.OPTIMAL: "optimal over these deployments and choices",
    Status.FEASIBLE: "feasible: nothing shorter was found, nor excluded",
    Status.INFEASIBLE: "infeasible: no deployment fits",
    Status.UNKNOWN: "unknown: no schedule was found in the time given",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeploymentRow:
    """A combination and what became of it; one that has a schedule is a ``SolvedDeployment``.

    No iteration of it takes less than ``bound`` ticks. ``on_card`` bytes of a card are needed: by
    one microbatch, or by its schedule.
    """

    combination: Combination
    status: Outcome
    reason: str
    bound: int
    on_card: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SolvedDeployment(DeploymentRow):
    """One with a schedule: its iteration in ticks, and the highest load of a card in bytes.

    ``candidate`` is the shape of its pipeline.
    """

    value: int
    peak_memory: int
    candidate: Candidate


def row_without_numbers(one: ForbiddenCombination | UncountedCombination) -> DeploymentRow:
    """That of a combination that a number forbids, or that was not counted."""
    status = Outcome.INFEASIBLE if one.reason else Outcome.UNKNOWN
    return DeploymentRow(
        combination=one.combination,
        status=Outcome.NOT_LEGAL if isinstance(one, ForbiddenCombination) else status,
        reason=one.reason or NOT_COUNTED,
        bound=0,
        on_card=0,
    )


def solved_deployment(
    row: DeploymentRow, *, value: int, peak_memory: int, candidate: Candidate, beside: int
) -> SolvedDeployment:
    """The row with a schedule, beside whose highest load so many bytes of a card are taken.

    Parameters
    ----------
    value
        The iteration, in microseconds.
    peak_memory
        The highest load of any rank of the schedule, in bytes.
    beside
        Bytes of that card beside the schedule's load.
    """
    told = {"value": value, "peak_memory": peak_memory, "candidate": candidate}
    return extended(SolvedDeployment, row, **told, on_card=peak_memory + beside)


@dataclass(frozen=True, slots=True, kw_only=True)
class NearestDeployment:
    """The deployment that needs the least of a card, in bytes."""

    combination: Combination
    memory: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeploymentResults(SearchResults):
    """What a plan of deployments is and what is none have in common.

    No iteration takes less than ``lower_bound`` ticks, of the orders that ``bounded`` names;
    ``cuts`` say how layers were cut before the search. ``nearest`` has the deployment that would
    run on the smallest card; none where no number allows one. ``bundled`` has the proofs of those
    deployments that have a space, by name. ``orders`` are the families of which every order was
    timed that may be the best; none where that is not so, or any order may be run.
    """

    rows: tuple[DeploymentRow, ...]
    lower_bound: int
    nearest: tuple[NearestDeployment, ...]
    bundled: Mapping[str, tuple[CandidateBound, ...]]
    orders: tuple[str, ...] = ()
    bounded: str = ANY_ORDER
    cuts: str = ""

    @property
    def statement(self) -> str:
        """What was found, in a sentence, and what was too large to be looked at."""
        large = [row for row in self.rows if row.status is Outcome.TOO_LARGE]
        told = STATEMENTS[self.status]
        if self.status is Status.OPTIMAL:
            told += f"{self.cuts}, {ESTIMATED}"
        names = ", ".join(name.removesuffix(" G") for name in self.orders)
        if self.status is Status.INFEASIBLE and self.orders:
            told += f" in the orders that it runs ({names}){self.cuts}"
        if self.status is Status.FEASIBLE and self.orders:
            told = f"the best of the orders that it runs ({names}){self.cuts}, {ESTIMATED}"
        if not large:
            return told
        beyond = f"{len(large)} of {len(self.rows)} deployments are larger than a plan takes"
        if self.status is Status.UNKNOWN and all(row.status in UNFIT for row in self.rows):
            return f"unknown: {beyond} ({large[0].reason}), and no other fits; use fewer samples"
        return f"{told}; {beyond} and were not looked at"

    @property
    def solved(self) -> tuple[SolvedDeployment, ...]:
        """Those that have a schedule."""
        return tuple(row for row in self.rows if isinstance(row, SolvedDeployment))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterPlan(DeploymentResults):
    """The best of all deployments. ``plan`` is that of the ``winner``'s pipeline.

    ``value`` is the iteration; ``step_end`` is the part of it that follows the pipeline.
    """

    winner: CombinationCosts
    plan: Plan
    value: int
    step_end: int

    def __repr__(self) -> str:
        told = self.status.name.lower()
        found = f"{self.winner.combination}: {self.value} us"
        bound = f"lower bound {self.lower_bound} ({self.bounded})"
        return f"<ClusterPlan: {told}, {found}, {bound}, {len(self.rows)} deployments>"

    def bundles(self, deployed: Sequence[DeploymentSpace]) -> dict[str, tuple[CandidateBound, ...]]:
        """The proofs of every deployment."""
        return {one.name: self.bundled.get(one.name) or _unseen(one) for one in deployed}


def _unseen(one: DeploymentSpace) -> tuple[CandidateBound, ...]:
    """Of one that an interrupted search did not come to."""
    legal, _ = legal_candidates(one.space)
    return tuple(proof for each in legal for proof in each.proofs)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoClusterPlan(DeploymentResults):
    """That no deployment has a schedule, or that none was found."""

    def __repr__(self) -> str:
        return f"<NoClusterPlan: {self.status.name.lower()}, {len(self.rows)} deployments>"
