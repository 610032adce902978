"""A paper's pipelines beside a file's shapes, derived anew for who judges a plan.

What a plan has under a paper's name is what the paper's planner runs of the file's numbers, and
under the name with ``BETTER`` behind it the best of its kind that our planner found. Both planners
give the same pipeline whenever they are asked; only its order of actions may be searched for
longer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from bubbleproof.costs.combinations import CombinationCosts, TrainingJob
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace

if TYPE_CHECKING:  # planners are loaded for a plan that has pipelines of papers, and for no other
    from bubbleproof.papers.planning.paper_choice import PaperInput


def of_problem(name: str, space: PlanSpace, tables: Mapping[str, Mapping[str, object]]) -> Pipeline:
    """The pipeline of this name of a problem file with the tables ``[paper.NAME]``.

    Raises ``ValueError`` for the name of no paper, numbers that its planner does not take, and
    where nothing runs.
    """
    from bubbleproof.papers.planning.paper_choice import PaperInput

    return _derived(name, lambda paper: PaperInput(space=space, table=tables.get(paper, {})))


def of_deployment(
    name: str, space: PlanSpace, training: TrainingJob, at: CombinationCosts
) -> Pipeline:
    """The same of a deployment of a model on a cluster, whose pipelines have this space."""
    from bubbleproof.papers.planning.paper_deployments import deployed_input

    return _derived(name, lambda paper: deployed_input(paper, space, training, at))


def _derived(name: str, given_of: Callable[[str], PaperInput]) -> Pipeline:
    from bubbleproof.papers.planning.paper_choice import BETTER
    from bubbleproof.papers.planning.planner_list import paper_choice, require_paper

    paper = name.removesuffix(BETTER)
    require_paper(paper)
    chosen = paper_choice(paper, given_of(paper))
    run = chosen.run if name == paper else chosen.improved
    if run is None:
        raise ValueError(f"nothing runs of {name}")
    return run.pipeline
