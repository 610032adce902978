"""The plain time model, and a deployment's numbers, against sums written out."""

from __future__ import annotations

import pytest

from bubbleproof.costs import Deployment, layer_flops
from bubbleproof.costs.cluster import Cluster
from bubbleproof.costs.cluster_layers import cluster_layers
from bubbleproof.costs.plain_times import plain_times
from proofs_tests.costs.cluster_cases import CARDS, MODEL

ONE = Deployment(sequence=256, accounting="fused", data=4)
# One layer of 256 tokens: query, key, value, output of 256 x 256; up, gate and down of 256 x 512.
LINEARS = 2 * 256 * (4 * 256 * 256 + 3 * 256 * 512)
SCORES = 4 * 256 * 256 * 256
# Numbers that operations put out for a token: two norms, q, k, v, attention, output, 4 x 512, down.
KEPT = 256 * (2 * (2 * 256 + 3 * 256 + 256 + 256 + 4 * 512 + 256) + 4 * (2 + 4))


def test_a_layer_is_products_and_traffic() -> None:
    traffic = 2 * KEPT / 1e11  # written and read
    found = plain_times(MODEL, ONE, CARDS).layer
    assert found.forward == pytest.approx((LINEARS + SCORES) / 0.5e12 + traffic)
    assert found.input_backward == pytest.approx((LINEARS + 2.5 * SCORES) / 0.5e12 + 2 * traffic)
    assert found.weight_backward == pytest.approx(LINEARS / 0.5e12)
    again = plain_times(MODEL, ONE.with_changes(scope="full"), CARDS).layer
    assert again.input_backward - found.input_backward == pytest.approx(found.forward - traffic)


def test_tensor_parallel_cards_exchange_twice_a_pass() -> None:
    """All-reduces of 256 x 256 numbers of two bytes: each card sends 2 (t-1)/t of them."""
    split = ONE.with_changes(tensor=2, data=2)
    found = plain_times(MODEL, split, CARDS).layer
    half = plain_times(MODEL, split, CARDS.with_changes(node_link=1e20, latency=0.0)).layer
    each = 2 * (1 / 2) * 256 * 256 * 2 / 1e10 + CARDS.latency
    assert found.forward - half.forward == pytest.approx(2 * each)
    far = plain_times(MODEL, split, CARDS.with_changes(per_node=1)).layer
    slower = 10 * (each - CARDS.latency) + CARDS.latency  # the network's bytes
    assert far.forward - half.forward == pytest.approx(2 * slower)


def test_a_step_ends_with_gradients_weights_and_the_optimizer() -> None:
    """ZeRO 1 on 4 replicas over the network: gradients (4 bytes) reduced, weights (2) gathered."""
    weights = 4 * (4 * 256 * 256 + 3 * 256 * 512 + 2 * 256) + 2 * 1000 * 256 + 256
    at = ONE.with_changes(zero=1)
    moved = weights / 4 * (2 * 12 + 4 + 2) / 1e11
    wanted = 3 / 4 * weights * (4 + 2) / 1e9 + moved
    assert plain_times(MODEL, at, CARDS).step_end == pytest.approx(wanted)
    all_reduce = 3 / 4 * weights * 2 * 4 / 1e9 + weights * (2 * 12 + 4 + 2) / 1e11
    assert plain_times(MODEL, ONE, CARDS).step_end == pytest.approx(all_reduce)


def test_numbers_are_ticks_and_bytes() -> None:
    at = ONE.with_changes(data=2, pipeline=2, micro_batch=2)
    found = cluster_layers(MODEL, at, CARDS)
    times = plain_times(MODEL, at, CARDS)
    assert found.layers.number == 4
    assert found.layers.layer.forward == round(times.layer.forward * 1e6)
    assert found.layers.layer.activation == 2 * KEPT
    assert found.layers.layer.static == 18 * (4 * 256 * 256 + 3 * 256 * 512 + 2 * 256)
    assert found.layers.head.static == 18 * (1000 * 256 + 256)  # the norm, and its own words
    assert found.message == 2 * 256 * 256 * 2
    assert found.capacity == CARDS.memory
    # 10 us and 262144 bytes at 1 GB/s.
    assert found.latency == 10 + 263


def test_recomputation_leaves_room_for_one_layer_whole() -> None:
    at = ONE.with_changes(scope="full")
    found = cluster_layers(MODEL, at, CARDS)
    assert found.layers.layer.activation == 256 * 256 * 2
    assert CARDS.memory - found.capacity == KEPT - 256 * 256 * 2


def test_more_of_everything_is_never_slower() -> None:
    """Faster cards and links shorten every time, or leave it."""
    at = Deployment(sequence=256, tensor=2, data=1, pipeline=2)
    before = plain_times(MODEL, at, CARDS)
    for name in ("flops", "node_link", "network", "memory_bandwidth"):
        faster = CARDS.with_changes(**{name: 2 * getattr(CARDS, name)})
        after = plain_times(MODEL, at, faster)
        assert after.layer.forward <= before.layer.forward
        assert after.message <= before.message
        assert after.step_end <= before.step_end


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"efficiency": -0.5}, "cluster efficiency must be above 0 and at most 1, got -0.5"),
        ({"efficiency": 1.5}, "use such as 0.5"),
        ({"cards": 0}, "cluster cards must be above 0, got 0"),
        ({"network": -1.0}, "cluster network must be above 0"),
        ({"reserve": 64 << 20}, "cluster reserve must be less than memory"),
    ],
)
def test_a_cluster_that_is_none(changes: dict[str, float], told: str) -> None:
    with pytest.raises(ValueError, match="must be") as error:
        CARDS.with_changes(**changes)
    assert told in str(error.value)


def test_sizes_must_be_the_cards() -> None:
    with pytest.raises(ValueError, match="must be the 4 cards, got 2 x 1 x 1 = 2"):
        cluster_layers(MODEL, Deployment(tensor=2, sequence=256), CARDS)


def test_flops_are_those_of_costs() -> None:
    assert layer_flops(MODEL, ONE).forward == LINEARS + SCORES
    assert isinstance(CARDS, Cluster)
