"""What a plan is judged by, derived anew from a file: its space, and what its proofs must bound.

The file is the one that ``--problem`` names or, in its place, the text that the plan carries. Of a
file that starts from a model and a cluster the deployments are derived by ``costs``: the proofs
have to bound the candidates of every one, and what counts is the iteration.

Pipelines that a plan has beside the file's shapes come from papers. What derives them anew is given
by a wing (``PaperPipelines``): no paper is known here, and without the wing such a plan is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol, cast

from bubbleproof.costs.combinations import CombinationCosts, TrainingJob, legal
from bubbleproof.formats.clusters.cluster_toml import (
    ClusterFile,
    is_cluster_file,
    read_cluster_file,
)
from bubbleproof.formats.clusters.deployed_content import Deployments, deployments
from bubbleproof.formats.clusters.deployed_space import all_counted
from bubbleproof.formats.errors import UnusableInput
from bubbleproof.formats.files import FilePath
from bubbleproof.formats.plans.bundle_json import read_bundle, read_deployment_bundles
from bubbleproof.formats.plans.plan_json import PlanFile
from bubbleproof.formats.problem_toml import ProblemFile, read_problem
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace
from bubbleproof.verify.candidates.bundle import BundleVerdict, DeploymentSpace, check_bundle
from bubbleproof.verify.candidates.deployment_bundles import check_deployments
from bubbleproof.verify.candidates.other_cuts import with_others
from bubbleproof.verify.candidates.plan_rule import Anew, GivenPlan, no_deployment
from bubbleproof.verify.candidates.plan_verdict import ChoicesScope, DeploymentsScope
from bubbleproof.wings import PLANNERS, given

PaperTables = Mapping[str, Mapping[str, object]]  # [paper.NAME] by NAME


class PaperPipelines(Protocol):
    """What derives a paper's pipeline of a name anew; ``ValueError`` where there is none."""

    def of_problem(self, name: str, space: PlanSpace, tables: PaperTables) -> Pipeline:
        """That of a problem file, from its space and its tables."""

    def of_deployment(
        self, name: str, space: PlanSpace, training: TrainingJob, at: CombinationCosts
    ) -> Pipeline:
        """That of a deployment of a model on a cluster, whose pipelines have this space."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChoicesToBound:
    """The candidates of a space, which a bundle of proofs has to bound."""

    scope: ChoicesScope

    def check(self, certificate: FilePath) -> BundleVerdict:
        """Read the proofs and hold them against all candidates."""
        space = self.scope.space
        return with_others(space, check_bundle(space, read_bundle(certificate, space)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeploymentsToBound:
    """The candidates of every deployment of a file that starts from a model."""

    deployments: Deployments

    @property
    def scope(self) -> DeploymentsScope:
        return DeploymentsScope(
            deployed=self.deployments.deployed, num_not_legal=self.deployments.num_not_legal
        )

    def check(self, certificate: FilePath) -> BundleVerdict:
        """Read the proofs and hold them against all deployments."""
        bundles = read_deployment_bundles(certificate, self.deployments)
        return check_deployments(self.deployments.deployed, bundles)


ToBound = ChoicesToBound | DeploymentsToBound


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlanQuestion:
    """A plan to judge, what its proofs have to bound, and what derives its pipelines beside."""

    plan: GivenPlan
    bound: ToBound
    anew: Anew


def bound_of_file(source: FilePath) -> ToBound:
    """What proofs of a problem file's plan have to bound."""
    if is_cluster_file(source):
        file = read_cluster_file(source)
        return DeploymentsToBound(deployments=deployments(file, all_counted(file)))
    return ChoicesToBound(scope=ChoicesScope(space=_planned(read_problem(source), source)))


def plan_question(
    plan: PlanFile, source: FilePath | None = None, *, is_whole: bool = True
) -> PlanQuestion:
    """What a plan is judged by; ``source`` is a problem file in place of the text in the plan.

    Without ``is_whole`` the deployments of a text in the plan are not derived: enough where no
    proofs are judged. Raises ``AbsentWingError`` for a plan with pipelines beside the shapes where
    the wing that derives them is not there.
    """
    if plan.others:
        _papers(plan)  # before anything is judged
    if source is not None and is_cluster_file(source):
        own = None if plan.cluster is None else plan.cluster.own
        file = read_cluster_file(source)
        return _of_cluster(file if own is None else file.with_own(own), plan)
    if source is not None:
        return _of_problem(read_problem(source), source, plan)
    if plan.cluster is None:
        return _of_problem(plan.problem, plan.name, plan)
    if is_whole:
        return _of_cluster(plan.cluster, plan)
    question = _of_problem(plan.problem, plan.name, plan)
    return replace(question, anew=_anew_in(plan.cluster, plan, question.plan.at.space))


def _planned(file: ProblemFile, source: FilePath) -> PlanSpace:
    if file.plan is None:
        raise UnusableInput("plan", "this table, such as chunks = [1, 2]", "nothing", str(source))
    return file.plan


def _papers(plan: PlanFile) -> PaperPipelines:
    """What derives the pipelines beside the shapes of a plan."""
    names = " and ".join(repr(name) for name, _ in plan.others)
    return cast(PaperPipelines, given(PLANNERS, "paper", f"{plan.name} with the pipeline {names}"))


def _of_problem(file: ProblemFile, source: FilePath, plan: PlanFile) -> PlanQuestion:
    alone = _planned(file, source)
    space = plan.beside(alone)
    return PlanQuestion(
        plan=_given(plan, no_deployment(space)),
        bound=ChoicesToBound(scope=ChoicesScope(space=space)),
        anew=lambda name: _papers(plan).of_problem(name, alone, file.paper),
    )


def _of_cluster(file: ClusterFile, plan: PlanFile) -> PlanQuestion:
    every = deployments(file, all_counted(file))
    own = next((one for one in every.deployed if one.name == plan.deployment), None)
    if own is None:
        expected = f"a deployment of {file.name}"
        raise UnusableInput("deployment", expected, plan.deployment or "nothing", plan.name)
    at = replace(own, space=plan.beside(own.space))
    return PlanQuestion(
        plan=_given(plan, at),
        bound=DeploymentsToBound(deployments=every.with_space(own.name, at.space)),
        anew=_anew_in(file, plan, own.space),
    )


def _anew_in(file: ClusterFile, plan: PlanFile, space: PlanSpace) -> Anew:
    """What derives the pipelines beside the shapes of a plan's deployment."""
    alone = replace(space, others=())

    def anew(name: str) -> Pipeline:
        every = legal(all_counted(file))
        counts = (one for one in every if str(one.combination) == plan.deployment)
        at = next(counts, None)
        if at is None:
            raise ValueError(f"{plan.deployment} is no deployment of {file.name}")
        return _papers(plan).of_deployment(name, alone, file.training, at)

    return anew


def _given(plan: PlanFile, at: DeploymentSpace) -> GivenPlan:
    return GivenPlan(
        at=at,
        winner=plan.winner,
        pipeline=plan.schedule.pipeline,
        problem=plan.schedule.problem,
        schedule=plan.schedule.schedule,
    )
