"""The problem file of one deployment of a model on a cluster, as content, text and as it is read.

It has the same keys as a measured one (``bubbleproof profile``), with ``[layers]`` in microseconds
and bytes, for ``plan``, ``solve`` and ``replay`` to take. The digest of a
file's ``Deployments`` is one of all these contents.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bubbleproof.costs.cluster_layers import ClusterLayers
from bubbleproof.costs.combinations import AnyCount, CombinationCosts, TrainingJob
from bubbleproof.formats.clusters.cluster_toml import ClusterFile
from bubbleproof.formats.clusters.deployed_space import (
    MEMORY_UNIT,
    UNIT,
    deployed_spaces,
    part_values,
)
from bubbleproof.formats.printable import harmless
from bubbleproof.formats.problem_toml import ProblemFile, problem_of
from bubbleproof.formats.toml_text import toml_text
from bubbleproof.theory.pipelines.shapes.layer_cuts import Layers
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace
from bubbleproof.verify.candidates.bundle import DeploymentSpace

if TYPE_CHECKING:
    from bubbleproof.formats.clusters.cluster_toml import ClusterFile


def deployed_content(
    numbers: ClusterLayers,
    *,
    ranks: int,
    microbatches: int,
    name: str,
    description: str = "",
    plan: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """The problem file of one deployment."""
    layers = numbers.layers
    return {
        "name": name,
        "description": description,
        "unit": UNIT,
        "memory_unit": MEMORY_UNIT,
        "ranks": ranks,
        "microbatches": microbatches,
        "layers": {
            **_runs(layers),
            "embedding": part_values(layers.embedding),
            "head": part_values(layers.head),
        },
        "memory": {"capacity": numbers.capacity, "message": numbers.message},
        "links": {"latency": numbers.latency},
        "plan": dict(plan or {"chunks": [1]}),
    }


def _runs(layers: Layers) -> dict[str, object]:
    """How many layers there are of what, as a file tells it."""
    cuts = list(layers.rule.kinds)
    if len(layers.runs) == 1:
        return {"number": layers.number, "cuts": cuts, **part_values(layers.runs[0][0])}
    names = {
        part: f"layer{n}" for n, part in enumerate(dict.fromkeys(part for part, _ in layers.runs))
    }
    return {
        "pattern": [f"{names[part]}*{number}" for part, number in layers.runs],
        "cuts": cuts,
        "kinds": {name: part_values(part) for part, name in names.items()},
    }


def deployed_problem(file: ClusterFile, one: CombinationCosts) -> dict[str, object]:
    """The content of the problem file of one deployment of a cluster file."""
    training, at = file.training, one.combination
    return deployed_content(
        one.numbers,
        ranks=at.pipeline,
        microbatches=one.microbatches,
        name=file.name,
        description=f"{model_name(training)} on {training.cluster.cards} cards, {at}",
        plan=file.plan_of(one),
    )


def model_name(training: TrainingJob) -> str:
    """The model's name as it may stand in a file."""
    return harmless(training.model.name) or "a model"


def deployed_text(file: ClusterFile, one: CombinationCosts) -> str:
    """The problem file of one deployment of a cluster file."""
    later = one.numbers.step_end
    training, at, model = file.training, one.combination, model_name(file.training)
    shared = f", each sample on {at.context} cards" if at.context > 1 else ""
    over = "cards" if at.data % at.expert else "replicas"
    shared += f", experts over {at.expert} {over}" if at.expert > 1 else ""
    shared += f", precision {at.precision}" if at.precision else ""
    remarks = (
        f"{model}, {training.samples} samples of {training.deployment.sequence} tokens on "
        f"{training.cluster.cards} cards:",
        f"tensor {at.tensor}, data {at.data}, pipeline {at.pipeline}, micro-batches of "
        f"{at.micro_batch}, ZeRO {at.zero}, recompute scope {at.scope}{shared}.",
        f"Estimated, not measured. A step takes {later} us more than its pipeline.",
    )
    return toml_text(deployed_problem(file, one), remarks)


def deployed_file(file: ClusterFile, one: CombinationCosts) -> ProblemFile:
    """The problem file of one deployment as a value."""
    return problem_of(deployed_problem(file, one), name=file.name)


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
