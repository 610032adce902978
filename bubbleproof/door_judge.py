"""Plans at the door: ``check`` judges them with their proofs, ``write`` writes their folder."""

from __future__ import annotations

from pathlib import Path

from bubbleproof.arguments import path_text, wrong
from bubbleproof.formats.clusters.cluster_toml import cluster_file_of_text
from bubbleproof.formats.clusters.deployed_content import deployed_text, deployments
from bubbleproof.formats.clusters.deployed_space import all_counted
from bubbleproof.formats.errors import UnusableInput
from bubbleproof.formats.files import os_reason
from bubbleproof.formats.plans.bundle_json import write_bundle, write_deployment_bundles
from bubbleproof.formats.plans.plan_folder import planned_file, winner_schedule, write_plan_folder
from bubbleproof.formats.plans.plan_json import PlanFile
from bubbleproof.formats.plans.plan_scope import ChoicesToBound, PlanQuestion, plan_question
from bubbleproof.formats.problem_toml import problem_file_of_text
from bubbleproof.formats.schedule_file import ScheduleFile
from bubbleproof.planners.cluster_planned import ClusterPlan, NoClusterPlan
from bubbleproof.planners.plan_facts import DeploymentPlan
from bubbleproof.planners.planned import NoPlanFound, Plan, SolvedCandidate
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace
from bubbleproof.verify.candidates.bundle import BundleVerdict, CandidateBound, check_bundle
from bubbleproof.verify.candidates.other_cuts import with_others
from bubbleproof.verify.candidates.plan_rule import GivenPlan, no_deployment
from bubbleproof.verify.candidates.plan_verdict import (
    ChoicesScope,
    PlanVerdict,
    check_distance,
    check_winner,
)
from bubbleproof.verify.every_rule import check_every_rule
from bubbleproof.verify.verdict import Verdict

FoundPlan = Plan | ClusterPlan | PlanFile


def plan_file(given: object, *, asker: str) -> PlanFile:
    """A plan as its file has it. Raises ``ValueError`` where there is none to be had."""
    return _file(_plan(given, asker), asker)


def check_plan(given: object) -> Verdict:
    """All rules of a plan's schedule, and that it is one of the winning candidate's."""
    question, schedule = _question(_plan(given, "check"), is_whole=False)
    return check_winner(question.plan, check_every_rule(schedule.to_judge), question.anew)


def check_certified(given: object, certificate: object) -> PlanVerdict:
    """The same with the proofs of all candidates, and how near the plan is to what they show."""
    plan = _plan(given, "check")
    question, schedule = _question(plan, is_whole=True)
    checked = check_winner(question.plan, check_every_rule(schedule.to_judge), question.anew)
    proved = _proved(question, certificate)
    return check_distance(question.plan, checked, question.bound.scope, proved)


def write_plan(folder: str, given: object) -> None:
    """The plan's folder, and the proofs of what was planned here as ``certificate.json``."""
    plan = _plan(given, "write")
    file, where = _file(plan, "write"), Path(folder)
    try:
        where.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnusableInput("", "a folder that can be made", os_reason(error), folder) from None
    write_plan_folder(where, file)
    proofs = where / "certificate.json"
    if isinstance(plan, Plan):
        write_bundle(proofs, plan.space, plan.bundle, name=file.name)
    elif isinstance(plan, ClusterPlan) and file.cluster is not None:
        every = deployments(file.cluster, all_counted(file.cluster))
        every = every.with_space(str(file.deployment), plan.plan.space)
        write_deployment_bundles(proofs, every, plan.bundles(every.deployed), name=file.name)


def _plan(given: object, asker: str) -> FoundPlan:
    if isinstance(given, Plan | ClusterPlan | PlanFile):
        return given
    if isinstance(given, NoPlanFound | NoClusterPlan):
        raise ValueError(f"{asker}: the plan has no winner: {given.status.name}")
    raise wrong(given, "plan", "what plan gives, or a plan file that was read", asker=asker)


def _proved(question: PlanQuestion, certificate: object) -> BundleVerdict:
    """What a file of proofs shows, or a plan's own ``bundle``."""
    if not isinstance(certificate, tuple):
        return question.bound.check(path_text(certificate, asker="check"))
    if not isinstance(question.bound, ChoicesToBound):
        raise TypeError("check: the certificate of a plan of deployments is a file, got a tuple")
    for one in certificate:
        if not isinstance(one, CandidateBound):
            raise wrong(one, "certificate", "a file or a plan's bundle", asker="check")
    space = question.bound.scope.space
    return with_others(space, check_bundle(space, certificate))


def _question(plan: FoundPlan, *, is_whole: bool) -> tuple[PlanQuestion, ScheduleFile]:
    """What a plan is judged by, derived from its problem file where there is one."""
    if isinstance(plan, Plan) and not plan.source.text:
        return _of_space(plan.space, plan.winner)
    file = _file(plan, "check")
    return plan_question(file, is_whole=is_whole), file.schedule


def _of_space(space: PlanSpace, winner: SolvedCandidate) -> tuple[PlanQuestion, ScheduleFile]:
    """Of a plan that was made of a ``Pipeline``, its space."""
    schedule = winner_schedule("plan", space, winner)
    given = GivenPlan(
        at=no_deployment(space),
        winner=winner.candidate,
        pipeline=schedule.pipeline,
        problem=schedule.problem,
        schedule=schedule.schedule,
    )
    bound = ChoicesToBound(scope=ChoicesScope(space=space))
    return PlanQuestion(plan=given, bound=bound, anew=_no_file), schedule


def _no_file(name: str) -> Pipeline:
    raise ValueError(f"the plan was made of no file, which would tell of {name}")


def _file(plan: FoundPlan, asker: str) -> PlanFile:
    """The plan as a file has it. Raises ``ValueError`` where nothing was found, or made of none."""
    if isinstance(plan, PlanFile):
        return plan
    if not plan.source.text:
        hint = 'plan a problem file: bp.plan("problem.toml")'
        raise ValueError(f"{asker}: the plan was made of no problem file; {hint}")
    if isinstance(plan, Plan):
        problem = problem_file_of_text(plan.source.text, name=plan.source.name)
        return planned_file(plan.source.text, problem, plan.space, plan.winner)
    if isinstance(plan, DeploymentPlan):  # a configuration of one's own may be a candidate
        cluster = plan.file
    else:
        cluster = cluster_file_of_text(plan.source.text, name=plan.source.name)
    text, own = deployed_text(cluster, plan.winner), plan.plan
    return planned_file(
        text,
        problem_file_of_text(text, name=cluster.name),
        own.space,
        own.winner,
        cluster=cluster,
        deployment=str(plan.winner.combination),
    )
