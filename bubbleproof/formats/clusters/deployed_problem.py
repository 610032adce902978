"""The problem file of one deployment of a model on a cluster, as text and as it is read."""

from __future__ import annotations

from bubbleproof.costs.combinations import CombinationCosts
from bubbleproof.formats.clusters.cluster_toml import ClusterFile
from bubbleproof.formats.clusters.deployed_content import deployed_problem, model_name
from bubbleproof.formats.problem_toml import ProblemFile, problem_of, problem_text


def deployed_text(file: ClusterFile, one: CombinationCosts) -> str:
    """The problem file of one deployment of a cluster file."""
    later = one.numbers.step_end
    training, at, model = file.training, one.combination, model_name(file.training)
    shared = f", each sample on {at.context} cards" if at.context > 1 else ""
    shared += f", experts over {at.expert} replicas" if at.expert > 1 else ""
    remarks = (
        f"{model}, {training.samples} samples of {training.deployment.sequence} tokens on "
        f"{training.cluster.cards} cards:",
        f"tensor {at.tensor}, data {at.data}, pipeline {at.pipeline}, micro-batches of "
        f"{at.micro_batch}, ZeRO {at.zero}, recompute scope {at.scope}{shared}.",
        f"Estimated, not measured. A step takes {later} us more than its pipeline.",
    )
    return problem_text(deployed_problem(file, one), remarks)


def deployed_file(file: ClusterFile, one: CombinationCosts) -> ProblemFile:
    """The problem file of one deployment as a value."""
    return problem_of(deployed_problem(file, one), name=file.name)
