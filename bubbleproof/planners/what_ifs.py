"""A plan beside that of the same job on another cluster, each in as much time."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

from bubbleproof.formats.clusters.cluster_toml import ClusterFile
from bubbleproof.planners.cluster_planned import ClusterPlan, NoClusterPlan
from bubbleproof.planners.configuration_words import (
    deployment_parts,
    difference,
    in_words,
    more,
    shape_parts,
)
from bubbleproof.planners.planned import PlanOptions, SearchResults
from bubbleproof.planners.planning import plan_deployments
from bubbleproof.report.amounts import time


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedPlan:
    """A change of the cluster, and what is planned of the job then, or why nothing can be."""

    change: str
    file: ClusterFile
    found: ClusterPlan | NoClusterPlan | str

    def text(self, plan: SearchResults) -> str:
        """The iteration, the deployment and what of it is not the plan's, in a line."""
        cards = self.file.training.cluster.cards
        change = f"{self.change} ({cards:,} cards)" if "cards=" in self.change else self.change
        if not isinstance(self.found, ClusterPlan):
            why = self.found if isinstance(self.found, str) else self.found.statement
            return f"{change}: {why}"
        told = f"{change}: {time(self.found.value, 'us')}/iteration"
        here = _parts(self.found)
        if not isinstance(plan, ClusterPlan):
            return f"{told} · {in_words(here)}"
        there = _parts(plan)
        which = "the same" if here == there else f"changed: {difference(here, there)}"
        return f"{told} ({more(self.found.value, plan.value)}) · {in_words(here)} · {which}"

    def to_json(self) -> dict[str, object]:
        """For programs."""
        plan = self.found if isinstance(self.found, ClusterPlan) else None
        return {
            "change": self.change,
            "cards": self.file.training.cluster.cards,
            "status": "NOT_LEGAL" if isinstance(self.found, str) else self.found.status.name,
            "value": None if plan is None else plan.value,
            "deployment": None if plan is None else in_words(_parts(plan)),
        }


def _parts(found: ClusterPlan) -> dict[str, str]:
    at = deployment_parts(found.winner.combination)
    return {**at, **shape_parts(found.plan.winner.candidate)}


def changed_plans(
    files: Sequence[tuple[str, ClusterFile]],
    options: PlanOptions,
    executor: Executor | None = None,
) -> tuple[ChangedPlan, ...]:
    """The plan of each, within the options.

    Parameters
    ----------
    files
        Each change with the file that has it.
    options
        Of one of them.
    """
    plans = []
    for change, file in files:
        found: ClusterPlan | NoClusterPlan | str
        try:
            found = plan_deployments(file, replace(options, tell=None), executor)
        except ValueError as why:  # no deployment is that of the cards: the plan itself stands
            found = str(why)
        plans.append(ChangedPlan(change=change, file=file, found=found))
    return tuple(plans)
