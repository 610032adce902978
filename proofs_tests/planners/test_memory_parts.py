"""What cards hold by kind: the kinds add up to the card, and bytes are those of the precision."""

from __future__ import annotations

import pytest

from bubbleproof.costs.weights import embedding_weights, head_weights, layer_weights
from bubbleproof.formats.clusters.cluster_toml import cluster_file_of_text
from bubbleproof.formats.clusters.deployed_space import all_counted, deployed_space
from bubbleproof.planners import PlanOptions
from bubbleproof.planners.cluster_planned import ClusterPlan
from bubbleproof.planners.cluster_results import memory_of, parts_of
from bubbleproof.planners.planning import plan_cluster
from proofs_tests.commands.small_cluster import SMALL

LISTS = "tensor = [2]\npipeline = [2]\ndata = [1]\nmicro_batch = [1]\nscope = ['none']\n"
REPLICATED = "tensor = [1]\npipeline = [2]\ndata = [2]\nmicro_batch = [1]\nscope = ['none']\n"


@pytest.mark.parametrize(("lists", "zero"), [(LISTS, 0), (REPLICATED, 0), (REPLICATED, 1)])
def test_kinds_add_up_to_the_card(lists: str, zero: int) -> None:
    """bf16: 2 bytes of a weight, 4 of its gradient, 12 of the optimizer, which ZeRO 1 shares."""
    plan = f'[plan]\nframework = "megatron-core"\nlayers = "even"\nzero = [{zero}]\n{lists}'
    file = cluster_file_of_text(f"{SMALL}\n{plan}", name="small")
    options = PlanOptions(work=1.0, orders=file.orders)
    found = plan_cluster(all_counted(file), lambda one: deployed_space(file, one), options)
    assert isinstance(found, ClusterPlan)
    parts, numbers = parts_of(file, found), found.winner.numbers
    peaks = found.plan.winner.measured.peak_memory
    assert [each.total for each in parts] == [peak + numbers.beside for peak in peaks]
    at = file.training.deployment.with_changes(**found.winner.combination.to_json())
    model, first = file.training.model, parts[0]
    layers = layer_weights(model, at).total * 2 + embedding_weights(model, at).total
    if found.plan.winner.candidate.chunks == 1:
        assert (first.weights, first.gradients) == (2 * layers, 4 * layers)
        shared = 12 * layers / (2 if zero else 1)
        assert abs(first.optimizer - shared) <= len(numbers.cuts[0]) * 4  # rounded up by layer
    every = sum(each.weights for each in parts)
    ends = embedding_weights(model, at).total + head_weights(model, at, is_copied=True).total
    assert every == 2 * (layer_weights(model, at).total * 4 + ends)
    assert "weights " in memory_of(file, found)
