"""Where an iteration's time goes: of the plan, and of the deployments next to it.

Of each the parts of ``time_parts``, which sum to the iteration. A paper's pipeline, which is none
of the shapes, has no parts here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from bubbleproof.costs.combinations import CombinationCosts, legal
from bubbleproof.costs.time_parts import TimeParts, time_parts
from bubbleproof.formats.clusters.cluster_toml import ClusterFile
from bubbleproof.formats.clusters.deployed_space import deployed_space
from bubbleproof.planners.cluster_planned import ClusterPlan, SolvedDeployment
from bubbleproof.planners.counting import AnyListed
from bubbleproof.planners.search_budget import timely
from bubbleproof.theory.pipelines.shapes.shaping import shaped

NEXT = 5  # deployments beside the plan


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentTimes:
    """A deployment, and where its iteration's microseconds go."""

    row: SolvedDeployment
    parts: TimeParts

    @property
    def name(self) -> str:
        """The deployment and its shape."""
        return f"{self.row.combination}, {self.row.candidate}"


def deployment_times(
    file: ClusterFile, counts: Sequence[AnyListed], found: ClusterPlan, seconds: float
) -> tuple[DeploymentTimes, ...]:
    """The plan's times first, then those of the next in turn, as many as there is time for.

    Parameters
    ----------
    seconds
        For those beside the plan.
    """
    of = {one.combination: one for one in legal(counts)}
    solved = [row for row in found.solved if not row.candidate.beside]
    nearest = sorted(solved, key=lambda row: row.value)[: 1 + NEXT]
    rows = chain(nearest[:1], timely(nearest[1:], seconds))
    return tuple(_times(file, of[row.combination], row) for row in rows)


def _times(file: ClusterFile, one: CombinationCosts, row: SolvedDeployment) -> DeploymentTimes:
    pipeline = shaped(deployed_space(file, one), row.candidate).pipeline
    makespan = row.value - one.numbers.step_end
    return DeploymentTimes(
        row=row,
        parts=time_parts(file.training, one, pipeline, row.candidate.layers or (), makespan),
    )
