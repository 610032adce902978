"""A plan judged whole: the rules of its schedule, its winner, its bound, and both in a sentence.

What is bounded is a *scope*: all candidates of one space (``ChoicesScope``), or those of every
deployment of a model (``DeploymentsScope``), where values are iterations. ``plan_rule`` decides.
"""

from __future__ import annotations

from dataclasses import dataclass

from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace
from bubbleproof.theory.pipelines.shapes.space_scope import cut_words, with_cuts
from bubbleproof.theory.pipelines.units import plural
from bubbleproof.verify.candidates.bundle import BundleVerdict, DeploymentSpace
from bubbleproof.verify.candidates.plan_rule import (
    Anew,
    GivenPlan,
    not_below,
    plan_refusals,
    plan_value,
)
from bubbleproof.verify.finding import Rule
from bubbleproof.verify.verdict import RuleDecision, Verdict, Violation, join


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChoicesScope:
    """The candidates of a space: no schedule of any takes less than the bound."""

    space: PlanSpace
    objective: str = "makespan"
    thing: str = "schedule"
    all_of_them: str = "candidates"

    @property
    def over(self) -> str:
        """What is bounded, and how layers were cut in it."""
        return f"these choices{with_cuts(self.space)}"

    @property
    def unit(self) -> str:
        return self.space.pipeline.unit

    @property
    def num_beside(self) -> int:
        """How many pipelines stand beside the file's shapes."""
        return len(self.space.others)

    def counts(self, proved: BundleVerdict) -> str:
        """What was proved, and of what nothing has to be."""
        return f"{_number(proved.num_proved, 'candidate')} proved, {proved.num_not_legal} not legal"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeploymentsScope:
    """The candidates of all deployments: no iteration takes less; ``num_not_legal`` have none."""

    deployed: tuple[DeploymentSpace, ...]
    num_not_legal: int
    objective: str = "iteration"
    thing: str = "iteration"
    all_of_them: str = "deployments"

    @property
    def over(self) -> str:
        """What is bounded, and how layers were cut in it."""
        kinds = (one.space.layers for one in self.deployed if one.space.pipeline.num_ranks > 1)
        layers = next(kinds, None)
        cuts = "" if layers is None else f", with layers {cut_words(layers)}"
        return f"these deployments and choices{cuts}"

    @property
    def unit(self) -> str:
        return next((one.space.pipeline.unit for one in self.deployed), "")

    @property
    def num_beside(self) -> int:
        """How many pipelines stand beside the file's shapes."""
        return sum(len(one.space.others) for one in self.deployed)

    def counts(self, proved: BundleVerdict) -> str:
        """What was proved, and of what nothing has to be."""
        return (
            f"{_number(len(self.deployed), 'deployment')}: "
            f"{_number(proved.num_proved, 'candidate')} proved, {proved.num_without_room} of them "
            f"without room for a microbatch; {self.num_not_legal} more have no legal pipeline"
        )


PlanScope = ChoicesScope | DeploymentsScope


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDistance:
    """How a plan's value (ticks) stands to the bound that was ``proved`` of its scope.

    ``value`` is None where there is no plan, or its schedule is wrong.
    """

    scope: PlanScope
    proved: BundleVerdict
    value: int | None

    @property
    def gap(self) -> int | None:
        """Ticks above the bound."""
        bound = self.proved.bound
        return None if self.value is None or bound is None else self.value - bound

    @property
    def statement(self) -> str:
        """One line for people."""
        proved, scope, gap = self.proved, self.scope, self.gap
        if proved.refusals or proved.bound is None:
            return "nothing is proved about how good the plan is"
        if gap is None:
            least = _ticks(proved.bound, scope.unit)
            return f"no {scope.thing} over {scope.over} is below {least} ({self.by})"
        value = _ticks(proved.bound + gap, scope.unit)
        if gap <= 0:
            best = f"optimal over {scope.over}: {value}"
            return f"{best}, and no {scope.thing} has less ({self.by})"
        return (
            f"within {_ticks(gap, scope.unit)} of optimal over {scope.over}: {value}, "
            f"and no {scope.thing} is below {proved.bound:,} ({self.by})"
        )

    @property
    def by(self) -> str:
        """What the bound rests on."""
        by = self.scope.counts(self.proved)
        if beside := self.scope.num_beside:
            number = _number(beside, "pipeline")
            by += f"; {number} of the plan beside the file's shapes, derived anew from the file"
        if self.proved.believed:
            by += f", the others by an uncertified bound of {' and '.join(self.proved.believed)}"
        return by


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanVerdict:
    """All that was decided of a plan: every rule in ``verdict``, and its ``distance``."""

    verdict: Verdict
    distance: PlanDistance

    def __repr__(self) -> str:
        return f"<PlanVerdict: {self.statement}>"

    @property
    def ok(self) -> bool:
        """Whether every rule holds; how good the plan is tells ``distance``."""
        return self.verdict.ok

    @property
    def violations(self) -> tuple[Violation, ...]:
        return self.verdict.violations

    @property
    def statement(self) -> str:
        """How good the plan is, in a sentence."""
        return self.distance.statement


def check_winner(plan: GivenPlan, whole: Verdict, anew: Anew) -> Verdict:
    """``whole``, all rules of the plan's schedule, with why it is none of its winner's."""
    refusals = plan_refusals(plan, anew)
    found = RuleDecision.of_sentences(Rule.CERTIFICATE, refusals)
    return join([whole, Verdict(decisions=(found,) if refusals else ())])


def check_distance(
    plan: GivenPlan, checked: Verdict, scope: PlanScope, proved: BundleVerdict
) -> PlanVerdict:
    """``checked`` with rule 9 for the bound, and how far the plan is from it.

    ``checked`` is what ``check_winner`` says, ``proved`` what the bundle of proofs shows of the
    scope.
    """
    value = None
    if checked.measured is not None and checked.ok:
        value = plan_value(plan, checked.measured.makespan)
        proved = not_below(proved, value, scope.objective, scope.all_of_them)
    return _joined(checked, PlanDistance(scope=scope, proved=proved, value=value))


def check_bound(scope: PlanScope, proved: BundleVerdict) -> PlanVerdict:
    """Rule 9 for a bound alone, where there is no plan."""
    return _joined(Verdict(decisions=()), PlanDistance(scope=scope, proved=proved, value=None))


def _joined(checked: Verdict, distance: PlanDistance) -> PlanVerdict:
    found = RuleDecision.of_sentences(Rule.CERTIFICATE, distance.proved.refusals)
    verdict = join([checked, Verdict(decisions=(found,))])
    return PlanVerdict(verdict=verdict, distance=distance)


def _ticks(count: int, unit: str) -> str:
    return f"{count:,} {unit if count == 1 else plural(unit)}"


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")
