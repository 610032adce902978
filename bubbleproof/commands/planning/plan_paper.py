"""``plan FILE --paper NAME``: a paper's choice among the plan's candidates, by the same costs.

What runs of the paper enters the search (``papers.planning.joint_plan``): the plan is never worse.
This module loads the papers' wing, and is loaded where a paper is asked for; what is told of the
choice is in ``paper_results``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bubbleproof.commands.planning.paper_results import PipelinesBeside
from bubbleproof.commands.planning.plan_results import AnyPlan
from bubbleproof.costs.combinations import AnyCount, CombinationCosts, legal
from bubbleproof.formats import UnusableInput
from bubbleproof.formats.clusters.cluster_toml import ClusterFile
from bubbleproof.formats.clusters.deployed_space import deployed_space
from bubbleproof.formats.problem_toml import ProblemFile
from bubbleproof.papers.planning.joint_deployments import with_plan
from bubbleproof.papers.planning.joint_plan import with_paper
from bubbleproof.papers.planning.paper_choice import PaperChoice, PaperInput, iteration, known_of
from bubbleproof.papers.planning.paper_deployments import (
    chooses_deployments,
    deployed_input,
    deployment_of,
)
from bubbleproof.papers.planning.planner_list import paper_choice, require_paper
from bubbleproof.papers.planning.shorter_orders import with_shorter_order
from bubbleproof.planners import Plan, PlanOptions, plan
from bubbleproof.planners.cluster_planned import ClusterPlan
from bubbleproof.planners.known_schedules import KnownSchedule

NO_GRID = "nothing of the grid fits on paper"
NO_MESH = "PipeMesh shards the optimizer's state, and plan.zero has no 1 that fits these sizes"
FEW = 1.0  # seconds, or units of work, for the shapes of the paper's own deployment


def chosen_by(name: str, file: ProblemFile) -> PaperChoice:
    """What the paper's planner says of a problem file.

    Raises ``ValueError`` for an unknown paper, ``UnusableInput`` for a file that it cannot take.
    """
    require_paper(name)
    if file.plan is None:
        raise UnusableInput("plan", "this table, such as chunks = [1, 2]", "nothing", file.name)
    return paper_choice(name, PaperInput(space=file.plan, table=file.paper.get(name, {})))


def known_to(chosen: PaperChoice) -> tuple[KnownSchedule, ...]:
    """What the search begins with."""
    known = known_of(chosen)
    return () if known is None else (known,)


def joined(
    found: AnyPlan,
    chosen: PaperChoice,
    options: PlanOptions | None = None,
    inside: int = 0,
) -> tuple[AnyPlan, PipelinesBeside]:
    """The plan with the paper's choice among its candidates; ``options`` as they were for it.

    ``inside``: see ``with_paper``.
    """
    chosen = with_shorter_order(chosen, options or PlanOptions())
    return with_paper(found, chosen, inside), PipelinesBeside(chosen=chosen, value=chosen.value)


def joined_deployments(
    name: str,
    file: ClusterFile,
    counts: Sequence[AnyCount],
    found: ClusterPlan,
    options: PlanOptions,
) -> tuple[ClusterPlan, PipelinesBeside]:
    """The same for a model on a cluster, where values are iterations.

    A paper with a grid of deployments takes its own, others plan the winner's; PipeMesh, whose
    pipelines have the replicas' collectives in themselves, that under ZeRO-1.
    """
    at, cluster, inside = found.winner, file.training.cluster, 0
    if name == "pipemesh":
        mesh = _mesh_deployment(counts, at)
        if mesh is None:
            return found, PipelinesBeside(chosen=_nothing(name, NO_MESH), value=None)
        at, chosen = mesh, _mesh_choice(file, mesh)
        has_collectives = chosen.run is not None and chosen.run.pipeline.choices.sharding
        if has_collectives:
            inside = at.numbers.step_end - at.numbers.rest_end
    elif not chooses_deployments(name):
        given = deployed_input(name, deployed_space(file, at), file.training, at)
        chosen = paper_choice(name, given)
    else:
        own = deployment_of(name, counts, lambda one: deployed_space(file, one), cluster)
        if own is None:
            return found, PipelinesBeside(chosen=_nothing(name, NO_GRID), value=None)
        at, chosen = own.counted, paper_choice(name, own.given)
        told = {"deployment": str(at.combination), **chosen.choice}
        chosen = replace(chosen, choice=told)
    plan_of: AnyPlan = found.plan
    if at is not found.winner:
        plan_of = plan(deployed_space(file, at), replace(options.at_most(FEW), tell=None))
    joint, shown = joined(plan_of, chosen, options, inside)
    later = at.numbers.step_end - inside
    if shown.value is not None:
        shown = replace(shown, value=shown.value + later)
    return (with_plan(found, at, joint, inside) if isinstance(joint, Plan) else found), shown


def _mesh_deployment(counts: Sequence[AnyCount], at: CombinationCosts) -> CombinationCosts | None:
    """The winner's deployment under ZeRO-1, where PipeMesh begins; None where it is not listed."""
    wanted = replace(at.combination, zero=1)
    fitting = (one for one in legal(counts) if not one.reason)
    return next((one for one in fitting if one.combination == wanted), None)


def _mesh_choice(file: ClusterFile, at: CombinationCosts) -> PaperChoice:
    """PipeMesh's choice there, its collectives by the model of times.

    Others have theirs at the step's end, by the file's costs: their makespan is their cost here.
    """
    given = deployed_input("pipemesh", deployed_space(file, at), file.training, at)
    chosen = paper_choice("pipemesh", given)
    told = {"deployment": str(at.combination), **chosen.choice}
    return replace(chosen, choice=told, cost=iteration)


def _nothing(name: str, why: str) -> PaperChoice:
    return PaperChoice(
        paper=name, choice={"deployment": None}, executable=False, value=None, run=None, note=why
    )
