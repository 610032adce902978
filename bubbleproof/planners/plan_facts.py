"""Plans as results: what ``plan`` gives in Python, with the file it was made of, stating its facts.

The facts are those of the command, which works out more beside a plan: timing noise, where the time
of other deployments goes, and what would make a job fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from bubbleproof.costs.combinations import AnyCount
from bubbleproof.facts import Fact, FactCells, FactSource, extended
from bubbleproof.formats.clusters.cluster_toml import ClusterFile
from bubbleproof.formats.clusters.deployed_content import deployed_file
from bubbleproof.formats.problem_toml import ProblemFile
from bubbleproof.planners.assumption_sheet import AssumptionSheet, assumption_sheet
from bubbleproof.planners.cluster_planned import ClusterPlan, NoClusterPlan
from bubbleproof.planners.cluster_results import (
    AnyOwn,
    cluster_facts,
    days_facts,
    fit_facts,
    own_facts,
    restriction_facts,
    times_to_json,
    winner_facts,
)
from bubbleproof.planners.deployment_times import DeploymentTimes
from bubbleproof.planners.jitter import AnyPlan, Timed
from bubbleproof.planners.own_run import FittingChange
from bubbleproof.planners.plan_results import NOISE, plan_facts
from bubbleproof.planners.planned import NoPlanFound, Plan
from bubbleproof.planners.restriction import AnyRestriction
from bubbleproof.planners.what_ifs import ChangedPlan, what_if_facts
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace


class _StatedPlan(FactSource):
    """A plan, or that there is none, with its ``file``."""

    __slots__ = ()
    columns: ClassVar[FactCells] = ("quantity", "expected", "found", "verdict")

    @classmethod
    def of(cls, file: ProblemFile | ClusterFile, found: Any, **beside: Any) -> Self:
        """What was found of the file."""
        return extended(cls, found, file=file, **beside)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PipelinePlan(_StatedPlan, Plan):
    """The best pipeline of a space."""

    __repr__ = Plan.__repr__
    file: ProblemFile

    def facts(self) -> Iterable[Fact]:
        """What to run, how good it is, and every candidate."""
        return _without_noise(plan_facts(self.file, self, {}))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoPipelinePlan(_StatedPlan, NoPlanFound):
    """That no pipeline of a space was found, or that none fits."""

    __repr__ = NoPlanFound.__repr__
    file: ProblemFile

    def facts(self) -> Iterable[Fact]:
        """Why there is none, what would do, and every candidate."""
        return plan_facts(self.file, self, {})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeploymentPlan(_StatedPlan, ClusterPlan):
    """The best of all deployments of a model on a cluster.

    Beside it stand what ``yours`` takes, the plan of each ``what_if``, and the days of so many
    ``tokens``; where they were worked out, where the ``times`` of the next deployments go, timing
    noise (``timed``), and what the ``restriction`` to a framework costs. ``counts`` are kept then.
    """

    __repr__ = ClusterPlan.__repr__
    file: ClusterFile
    yours: AnyOwn = None
    what_if: tuple[ChangedPlan, ...] = ()
    tokens: float | None = None
    counts: Sequence[AnyCount] = ()
    times: tuple[DeploymentTimes, ...] | None = None
    timed: Timed | None = None
    restriction: AnyRestriction = None

    @property
    def assumptions(self) -> AssumptionSheet:
        """What its times and memory rest on."""
        return assumption_sheet(self.file)

    @property
    def deployed(self) -> ProblemFile:
        """The problem of the winner's pipeline."""
        return deployed_file(self.file, self.winner)

    def facts(self) -> list[Fact]:
        """What to run, how good it is, and every deployment."""
        return self.stated()

    def stated(self, shown: Iterable[Fact] = ()) -> list[Fact]:
        """The same with what is said of a paper's choice."""
        winner = winner_facts(self.deployed, self, self.timed or {})
        found = [*cluster_facts(self.file, self)]
        found += _without_noise(winner) if self.timed is None else winner
        if self.times is not None:
            found.append(Fact(key="times", value=times_to_json(self.times)))
        found += restriction_facts(self.restriction, self.value)
        found += own_facts(self.file, self.yours, self)
        found += [*days_facts(self.file, self, self.tokens), *shown]
        return [*found, *what_if_facts(self.what_if, self)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoDeploymentPlan(_StatedPlan, NoClusterPlan):
    """That no deployment of a model on a cluster runs, or that none was found.

    ``fits`` are changes with which it would, where they were looked for.
    """

    __repr__ = NoClusterPlan.__repr__
    file: ClusterFile
    yours: AnyOwn = None
    what_if: tuple[ChangedPlan, ...] = ()
    counts: Sequence[AnyCount] = ()
    fits: tuple[FittingChange, ...] = ()

    def facts(self) -> list[Fact]:
        """Why there is none, the nearest, and every deployment."""
        found = [*cluster_facts(self.file, self), *own_facts(self.file, self.yours, self)]
        return [*found, *fit_facts(self.fits), *what_if_facts(self.what_if, self)]


def stated_plan(file: ProblemFile | None, found: AnyPlan) -> PipelinePlan | NoPipelinePlan:
    """A plan of a problem file, or of a pipeline alone."""
    told = file or _file_of(found.space)
    return (PipelinePlan if isinstance(found, Plan) else NoPipelinePlan).of(told, found)


def _without_noise(facts: Iterable[Fact]) -> list[Fact]:
    """Without a word on timing noise, which nobody has sampled."""
    return [fact for fact in facts if fact.label != NOISE]


def _file_of(space: PlanSpace) -> ProblemFile:
    """The file that would say the same."""
    return ProblemFile(
        name="",
        description="",
        pipeline=space.pipeline,
        has_split_ticks=True,
        compare=(),
        objective="makespan",
        within=None,
        time_limit=None,
        plan=space,
    )
