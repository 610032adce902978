"""The plan that a command's words name: its file, and the model and deployment in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bubbleproof.costs.combinations import combinations
from bubbleproof.formats.files import PLAN_NAME
from bubbleproof.formats.plans.plan_json import PlanFile
from bubbleproof.hand_over.handed import PlannedModel

FORMAT = b'"bubbleproof/plan"'


def plan_file(words: Sequence[str]) -> Path | None:
    """The file or the folder of a plan, where the words name one."""
    if len(words) != 1:
        return None
    path = Path(words[0])
    if path.is_dir():
        return path if (path / PLAN_NAME).is_file() else None
    if path.suffix.lower() != ".json" or not path.is_file():
        return None
    with path.open("rb") as file:
        return path if FORMAT in file.read(200) else None


def planned_of(plan: PlanFile) -> PlannedModel | None:
    """The model and deployment of a plan that starts from a model; None of a problem's."""
    if plan.cluster is None or not plan.winner.layers:
        return None
    job = plan.cluster.training
    named = {str(each): each for each in combinations(job, plan.cluster.lists)}
    found = named.get(plan.deployment or "")
    if found is None:
        raise ValueError(
            f"plan {plan.name} has no deployment {plan.deployment!r} among those of its file"
        )
    return PlannedModel(
        model=job.model,
        deployment=job.deployment.with_changes(**found.to_json()),
        layers=plan.winner.layers,
        samples=job.samples,
    )
