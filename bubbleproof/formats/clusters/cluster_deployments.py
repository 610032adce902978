"""The deployments of a problem file that starts from a model, as spaces of pipelines.

A planner goes through them, and a reader of its proofs derives them anew: every combination that no
number forbids, with the space of its pipeline's shapes and the ticks that follow the pipeline in
every step. Whether it fits is no part of this: that is shown of its candidates.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bubbleproof.costs.combinations import CombinationCosts, combinations, counted
from bubbleproof.formats.clusters.deployed_space import deployed_problem, deployed_space
from bubbleproof.formats.errors import values_at
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace
from bubbleproof.verify.candidates.bundle import DeploymentSpace

if TYPE_CHECKING:  # the file has been read
    from bubbleproof.formats.clusters.cluster_toml import ClusterFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployments:
    """``digest`` tells them from those of other numbers; ``num_not_legal`` are left out."""

    deployed: tuple[DeploymentSpace, ...]
    digest: str
    num_not_legal: int

    def with_space(self, name: str, space: PlanSpace) -> Deployments:
        """With another space of the deployment of this name: with more beside its shapes."""
        found = (replace(one, space=space) if one.name == name else one for one in self.deployed)
        return replace(self, deployed=tuple(found))


def all_counted(file: ClusterFile) -> list[CombinationCosts]:
    """Every combination of the file with its numbers, or why it has none."""
    with values_at("plan"):
        listed = combinations(file.training, file.lists)
    return [counted(file.training, each) for each in listed]


def deployments(file: ClusterFile, counts: Sequence[CombinationCosts]) -> Deployments:
    """Those that no number forbids. ``counts`` are ``all_counted`` of the file."""
    deployed, digest = [], hashlib.sha256()
    for one in counts:
        if one.numbers is None:
            continue
        try:
            space = deployed_space(file, one)
        except ValueError:  # such as more microbatches than a problem may have
            continue
        numbers = one.numbers
        name, after, rest = str(one.combination), numbers.step_end, numbers.rest_end
        deployed.append(DeploymentSpace(name=name, space=space, after=after, rest=rest))
        problem = {**deployed_problem(file, one), "name": "", "description": ""}
        told = [str(one.combination), numbers.step_end, problem]
        digest.update(json.dumps(told, sort_keys=True).encode())
    return Deployments(
        deployed=tuple(deployed),
        digest=digest.hexdigest(),
        num_not_legal=len(counts) - len(deployed),
    )
