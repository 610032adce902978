"""``plan FILE --paper NAME``: a paper's choice among the plan's candidates, by the same costs.

What runs of the paper enters the search (``papers.planning.joint_plan``): the plan is never worse.
What is told of the choice is in ``paper_results``. The command finds this module by an entry point
(``bubbleproof.planners``).

Who judges such a plan derives its pipelines anew (``of_problem``, ``of_deployment``): what stands
under a paper's name is what the paper's planner runs of the file's numbers, and under the name with
``BETTER`` behind it the best of its kind that our planner found. Both planners give the same
pipeline whenever they are asked; only its order of actions may be searched for longer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf

from bubbleproof.commands.planning.other_plans import Search
from bubbleproof.costs.combinations import AnyCount, CombinationCosts, TrainingJob
from bubbleproof.formats import UnusableInput
from bubbleproof.formats.clusters.cluster_toml import ClusterFile
from bubbleproof.formats.clusters.deployed_space import deployed_space
from bubbleproof.formats.problem_toml import ProblemFile
from bubbleproof.papers.field.vocabulary_deployed import vocabulary_choice
from bubbleproof.papers.planning.deployed_choice import PaperGrid
from bubbleproof.papers.planning.joint_deployments import with_plan
from bubbleproof.papers.planning.joint_plan import with_paper
from bubbleproof.papers.planning.paper_choice import BETTER, PaperChoice, PaperInput, known_of
from bubbleproof.papers.planning.paper_deployments import deployed_input
from bubbleproof.papers.planning.paper_results import PipelinesBeside
from bubbleproof.papers.planning.planner_list import OF_MODELS, paper_choice
from bubbleproof.papers.planning.planner_list import require_paper as require_paper
from bubbleproof.papers.planning.shorter_orders import MOST_SECONDS, with_shorter_order
from bubbleproof.planners import Plan, PlanOptions, plan
from bubbleproof.planners.cluster_planned import ClusterPlan
from bubbleproof.planners.jitter import AnyPlan
from bubbleproof.planners.known_schedules import KnownSchedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace

FEW = 1.0  # seconds, or units of work, for the shapes of the paper's own deployment


def beside_problem(
    name: str, file: ProblemFile, options: PlanOptions, search: Search
) -> tuple[AnyPlan, PipelinesBeside]:
    """The plan of a problem file that ``search`` finds, with the paper's choice among it."""
    chosen = chosen_by(name, file)
    return joined(search(known_to(chosen)), chosen, options)


def chosen_by(name: str, file: ProblemFile) -> PaperChoice:
    """What the paper's planner says of a problem file, before anything is searched.

    Raises ``ValueError`` for an unknown paper and for numbers that its planner does not take,
    ``UnusableInput`` for a file that has no plan.
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


def beside_deployments(
    name: str,
    file: ClusterFile,
    counts: Sequence[AnyCount],
    found: ClusterPlan,
    options: PlanOptions,
) -> tuple[ClusterPlan, PipelinesBeside]:
    """The same for a model on a cluster, where values are iterations.

    What the paper's planner cannot run is told, and the plan that was found stays; so it does
    beside a planner whose choice is no pipeline.
    """
    if name in OF_MODELS:
        told, value = vocabulary_choice(counts, inf if options.work else MOST_SECONDS)
        return found, PipelinesBeside(chosen=told, value=value)
    grid = PaperGrid(
        paper=name,
        training=file.training,
        counts=counts,
        winner=found.winner,
        space_of=lambda one: deployed_space(file, one),
    )
    own = grid.choice()
    at, chosen, inside = own.at, own.chosen, own.inside
    if at is None or chosen.run is None:
        return found, PipelinesBeside(chosen=chosen, value=None)
    plan_of: AnyPlan = found.plan
    if at is not found.winner:
        plan_of = plan(deployed_space(file, at), replace(options.at_most(FEW), tell=None))
    joint, shown = joined(plan_of, chosen, options, inside)
    later = at.numbers.step_end - inside
    if shown.value is not None:
        shown = replace(shown, value=shown.value + later)
    return (with_plan(found, at, joint, inside) if isinstance(joint, Plan) else found), shown


def of_problem(name: str, space: PlanSpace, tables: Mapping[str, Mapping[str, object]]) -> Pipeline:
    """The pipeline of this name of a problem file with the tables ``[paper.NAME]``.

    Raises ``ValueError`` for the name of no paper, numbers that its planner does not take, and
    where nothing runs.
    """
    return _derived(name, lambda paper: PaperInput(space=space, table=tables.get(paper, {})))


def of_deployment(
    name: str, space: PlanSpace, training: TrainingJob, at: CombinationCosts
) -> Pipeline:
    """The same of a deployment of a model on a cluster, whose pipelines have this space."""
    return _derived(name, lambda paper: deployed_input(paper, space, training, at))


def _derived(name: str, given_of: Callable[[str], PaperInput]) -> Pipeline:
    paper = name.removesuffix(BETTER)
    require_paper(paper)
    chosen = paper_choice(paper, given_of(paper))
    run = chosen.run if name == paper else chosen.improved
    if run is None:
        raise ValueError(f"nothing runs of {name}")
    return run.pipeline
