"""The deployments of a file with what tells them from those of other numbers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bubbleproof.costs.combinations import AnyCount
from bubbleproof.formats.clusters.cluster_deployments import deployed_spaces
from bubbleproof.formats.clusters.deployed_content import deployed_problem
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


def deployments(file: ClusterFile, counts: Sequence[AnyCount]) -> Deployments:
    """Those that no number forbids. ``counts`` are ``all_counted`` of the file."""
    found, digest = deployed_spaces(file, counts), hashlib.sha256()
    for one, deployed in found:
        problem = {**deployed_problem(file, one), "name": "", "description": ""}
        told = [deployed.name, deployed.after, problem]
        digest.update(json.dumps(told, sort_keys=True).encode())
    return Deployments(
        deployed=tuple(deployed for _, deployed in found),
        digest=digest.hexdigest(),
        num_not_legal=len(counts) - len(found),
    )
