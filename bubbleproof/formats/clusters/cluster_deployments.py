"""The deployments of a problem file that starts from a model, as spaces of pipelines.

A planner goes through them, and a reader of its proofs derives them anew: every combination that no
number forbids, with the space of its pipeline's shapes and the ticks that follow the pipeline in
every step. Whether it fits is no part of this: that is shown of its candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bubbleproof.costs.combinations import AnyCount, CombinationCosts, combinations, counted, legal
from bubbleproof.formats.clusters.deployed_space import deployed_space
from bubbleproof.formats.errors import values_at
from bubbleproof.verify.candidates.bundle import DeploymentSpace

if TYPE_CHECKING:  # the file has been read
    from bubbleproof.formats.clusters.cluster_toml import ClusterFile


def all_counted(file: ClusterFile) -> list[AnyCount]:
    """Every combination of the file with its numbers, or why it has none; last what is its own."""
    with values_at("plan"):
        listed = [each for each in combinations(file.training, file.lists) if file.runs(each)]
    own = [] if file.own is None else [file.own.combination]
    return [counted(file.training, each) for each in dict.fromkeys([*listed, *own])]


def deployed_spaces(
    file: ClusterFile, counts: Sequence[AnyCount]
) -> list[tuple[CombinationCosts, DeploymentSpace]]:
    """Those that no number forbids. ``counts`` are ``all_counted`` of the file."""
    found = []
    for one in legal(counts):
        try:
            space = deployed_space(file, one)
        except ValueError:  # such as more microbatches than a problem may have
            continue
        name, after, rest = str(one.combination), one.numbers.step_end, one.numbers.rest_end
        found.append((one, DeploymentSpace(name=name, space=space, after=after, rest=rest)))
    return found
