"""The problem file of one deployment of a model on a cluster, as content.

It has the same keys as a measured one (``bubbleproof profile``), with ``[layers]`` in microseconds
and bytes, for ``plan``, ``solve`` and ``replay`` to take.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bubbleproof.costs.cluster_layers import ClusterLayers
from bubbleproof.costs.combinations import CombinationCosts, TrainingJob
from bubbleproof.formats.clusters.deployed_space import MEMORY_UNIT, UNIT, part_values
from bubbleproof.formats.printable import harmless

if TYPE_CHECKING:  # files are read elsewhere
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
            "number": layers.number,
            "cuts": list(layers.kinds),
            **part_values(layers.layer),
            "embedding": part_values(layers.embedding),
            "head": part_values(layers.head),
        },
        "memory": {"capacity": numbers.capacity, "message": numbers.message},
        "links": {"latency": numbers.latency},
        "plan": dict(plan or {"chunks": [1]}),
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
