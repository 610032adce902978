"""What a deployment takes on a cluster: the model of times, sharding beside it, ticks and bytes."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from bubbleproof.costs import Deployment, known_model, layer_saved
from bubbleproof.costs.cluster import Cluster
from bubbleproof.costs.cluster_times import cluster_times
from bubbleproof.costs.combinations import (
    CombinationCosts,
    Lists,
    combinations,
    counted,
    counted_deployment,
)
from bubbleproof.costs.times.allocated import allocated
from bubbleproof.costs.times.iteration import iteration_plan
from bubbleproof.costs.times.profiles import software
from bubbleproof.costs.times.replicas import Passes
from bubbleproof.formats.clusters.cluster_toml import read_cluster_file, with_efficiency
from bubbleproof.theory.families import family
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.cut_lists import NamedCuts
from proofs_tests.costs.cluster_cases import CARDS, MODEL, TRAINING, cluster_layers

EXAMPLE = Path(__file__).parents[2] / "examples" / "cluster" / "llama-13b-64xA100.toml"
ONE = Deployment(sequence=256, accounting="fused", data=4)
DENSE = 4 * 256 * 256 + 3 * 256 * 512 + 2 * 256  # weights of a layer
# Bytes that a layer keeps of a token: two norms, q, k, v, attention, output, 4 x 512 and down, in
# 16 bits; in 32 one number of each norm and head.
KEPT = 256 * (2 * (2 * 256 + 3 * 256 + 256 + 256 + 4 * 512 + 256) + 4 * (2 + 4))


UNEVEN = NamedCuts(kinds=("even", "balanced"))
SLOW = 1 + CARDS.constants["straggler"]  # four cards are two nodes
RING = 3 * 0.08 * CARDS.constants["collective"] / 1e3  # of four cards


def layer_of(at: Deployment, cluster: Cluster = CARDS) -> Passes[float]:
    """A layer of the small model."""
    return cluster_times(MODEL, at, cluster).layers[0][0]


@pytest.mark.parametrize("pipeline", [1, 2, 4])
def test_stages_take_what_an_iteration_is_estimated_from(pipeline: int) -> None:
    """``estimate`` makes stages of the same passes: forward and full backward, to a microsecond."""
    at = Deployment(sequence=256, accounting="fused", pipeline=pipeline, data=4 // pipeline)
    whole = iteration_plan(MODEL, at, CARDS, microbatches=4).pipeline
    layers = cluster_layers(MODEL, at, CARDS, NamedCuts()).layers
    for stage in range(pipeline):
        part = layers.stages((4 // pipeline,) * pipeline)[stage]
        ticks = whole.ticks  # nanoseconds; each of 4 layers is rounded to microseconds
        assert part.forward == pytest.approx(ticks.forward[stage, 0] / 1000, abs=4)
        assert part.backward == pytest.approx(ticks.backward[stage, 0] / 1000, abs=8)
        assert part.input_backward + part.weight_backward == part.backward


@pytest.mark.parametrize(
    "sizes", [(1, 32, 2, 1), (2, 8, 4, 1), (1, 8, 8, 0), (8, 2, 4, 1), (2, 8, 4, 3)]
)
def test_estimate_and_plan_tell_the_same_iteration_of_a_deployment(
    sizes: tuple[int, int, int, int],
) -> None:
    """Up to the rounding to a microsecond of each layer: both are made of ``cluster_times``."""
    tensor, data, pipeline, zero = sizes
    job = read_cluster_file(EXAMPLE).training
    at = job.deployment.with_changes(tensor=tensor, data=data, pipeline=pipeline, zero=zero)
    cluster, microbatches = job.cluster, job.samples // data
    estimated = iteration_plan(job.model, at, cluster, microbatches=microbatches)
    found = cluster_layers(job.model, at, cluster, NamedCuts())
    cut = found.cuts[0]
    parts = found.layers.stages(cut)
    planned = Pipeline(
        num_ranks=pipeline,
        num_microbatches=microbatches,
        forward=tuple(part.forward for part in parts),
        backward=tuple(part.backward for part in parts),
        latency=found.latency,
    )
    problem = planned.problem()
    ticks = measure(problem, family("1f1b").schedule(planned, problem)).makespan + found.step_end
    rounded = job.model.layers * 2 * (microbatches + pipeline)  # half a microsecond each, twice
    assert ticks == pytest.approx(estimated.milliseconds() * 1000, abs=rounded)


def test_zero_3_waits_for_weights_and_zero_2_for_gradients() -> None:
    """Four replicas on two nodes of two: 3/4 of the layer's bytes over a node's network, and three
    steps of a ring, 0.08 of a collective's own time each. A weight is gathered in 2 bytes, a
    gradient reduced in 4. With a doubling of nodes all takes ``straggler`` longer."""
    rate, own = CARDS.constants["network_gradient"] * 1e6, RING
    weights, gradients = (SLOW * (own + 3 / 4 * DENSE * size / rate) for size in (2, 4))
    plain, two, three = (layer_of(ONE.with_changes(zero=zero)) for zero in (1, 2, 3))
    assert (two.forward, two.input_backward) == (plain.forward, plain.input_backward)
    assert two.weight_backward == pytest.approx(plain.weight_backward + gradients)
    assert three.forward == pytest.approx(plain.forward + weights)
    assert three.input_backward == pytest.approx(plain.input_backward + weights)
    assert three.weight_backward == two.weight_backward


def test_what_is_hidden_is_a_share_and_no_more_than_there_is_computation() -> None:
    """But for the steps of a ring, which nothing hides."""
    plain, three = (layer_of(ONE.with_changes(zero=zero)) for zero in (1, 3))
    waited = three.forward - plain.forward
    assert 0.25 * waited < plain.forward  # there is enough to hide so much
    quarter = CARDS.with_changes(hidden=0.25)
    found = layer_of(ONE.with_changes(zero=3), quarter).forward
    assert found == pytest.approx(plain.forward + 0.75 * waited + 0.25 * SLOW * RING)
    # Over a network a thousand times as slow no more is hidden than the forward takes.
    slow = {**CARDS.constants, "network_gradient": CARDS.constants["network_gradient"] / 1e3}
    for hidden, beside in ((0.0, plain.forward), (1.0, 0.0)):
        cluster = CARDS.with_changes(constants=slow, hidden=hidden)
        found = layer_of(ONE.with_changes(zero=3), cluster).forward
        moved = RING + 3 / 4 * DENSE * 2 / (slow["network_gradient"] * 1e6)
        assert found == pytest.approx(SLOW * moved + beside)
    with pytest.raises(ValueError, match="cluster hidden must be 0 to 1"):
        CARDS.with_changes(hidden=1.5)


def test_gradients_of_the_last_microbatch_are_reduced_beside_its_backward() -> None:
    """Of ZeRO 1: 4 bytes beside the backward, 2 beside the next forward, by the same rule."""
    one = ONE.with_changes(zero=1)
    plain, hidden = (layer_of(one, CARDS.with_changes(hidden=share)) for share in (0, 1))
    rate = CARDS.constants["network_gradient"] * 1e6
    reduced, gathered = (SLOW * 3 / 4 * DENSE * size / rate for size in (4, 2))
    backward = plain.input_backward + plain.weight_backward
    beside = min(reduced, backward) + min(gathered, plain.forward)
    assert beside > 0
    assert plain.step - hidden.step == pytest.approx(beside)


@pytest.mark.parametrize(
    ("framework", "per_node", "is_sequence_parallel", "share"),
    [
        ("megatron-core", 4, False, 2),
        ("megatron-2021", 2, False, 2),
        ("megatron-2021", 4, False, 1),
        ("megatron-2021", 4, True, 2),
    ],
)
def test_a_message_is_whole_where_each_card_holds_it_and_nothing_scatters_it(
    framework: str, per_node: int, is_sequence_parallel: bool, share: int
) -> None:
    """256 tokens of 256 numbers of 2 bytes, by the cards of a tensor group of 2 or by each."""
    at = ONE.with_changes(tensor=2, data=1, pipeline=2, sequence_parallel=is_sequence_parallel)
    card = replace(CARDS.card, cards_per_node=per_node)
    cluster = CARDS.with_changes(runs=software(framework), card=card)
    found = cluster_times(MODEL, at, cluster).message
    sent = 256 * 256 * 2 / share
    took = 0.9 * (sent / (CARDS.constants["message"] * 1e6) + 0.060)  # of software without overlap
    assert found == pytest.approx(took)
    assert (
        cluster_layers(MODEL, at, cluster, NamedCuts()).message == sent
    )  # what the problem holds and moves


def test_the_heaviest_stage_of_any_cut_ends_a_step() -> None:
    times = cluster_times(MODEL, ONE.with_changes(pipeline=2, data=2), CARDS)
    layer, ends = times.layers[0][0].step, (times.embedding.step, times.head.step)
    found = times.step_end([(2, 2), (3, 1)]) - times.beside
    assert found == pytest.approx(max(2 * layer + ends[1], 3 * layer + ends[0]))


def test_a_step_ends_with_what_no_microbatch_has_moved() -> None:
    """Of each weight 3/4 of 4 bytes reduced, and gathered: 4 without ZeRO, else 2; then none."""
    weights = 4 * DENSE + 2 * 1000 * 256 + 256
    constants = {**CARDS.constants, "memory": 1e12, "iteration": 1e-12}  # network alone
    alone = CARDS.with_changes(constants=constants)
    moved = (4 + 4, 4 + 2, 2, 0)
    for zero, each in enumerate(moved):
        wanted = SLOW * 3 / 4 * weights * each / (constants["network_gradient"] * 1e6)
        found = cluster_times(MODEL, ONE.with_changes(zero=zero), alone).step_end([(4,)])
        assert found == pytest.approx(wanted, abs=1e-9)


def test_experts_exchange_tokens() -> None:
    """Four ranks of experts on two nodes of two cards, two copies of 256 tokens' 256 numbers of 2
    bytes: half of them to a neighbour; to the other node, that one of two nodes, a copy of each
    token; there and back, two doublings each time. What is waited for is 0.63 of it."""
    mixture = MODEL.with_changes(experts=4, experts_per_token=2)
    alike = {**CARDS.constants, "memory": 1e12, "dispatch": 1e-12, "exposed_expert": 0.63}
    cards = CARDS.with_changes(constants=alike)
    alone, spread = (
        cluster_times(mixture, ONE.with_changes(expert=expert), cards).layers[0][0]
        for expert in (1, 4)
    )
    token = 2 * 256 * 256
    sent = 2 * token / 2 / (alike["gradient"] * 1e6) + token / (alike["exchange"] * 1e6)
    more = 0.63 * 2 * (sent + 2 * alike["collective"] / 1000)
    # Of 4 experts' rows each now has four times as many: products alone move the same or less.
    assert spread.forward - alone.forward == pytest.approx(SLOW * more, rel=1e-6)


def test_layers_that_differ_have_runs_of_their_own() -> None:
    """One dense layer and three mixtures: each run as a model of that kind alone has it."""
    mixture = MODEL.with_changes(
        experts=4, experts_per_token=2, dense_layers=1, dense_feed_forward=512
    )
    at = ONE.with_changes(data=2, pipeline=2)
    found = cluster_layers(mixture, at, CARDS, NamedCuts(kinds=("balanced",)))
    alone = mixture.with_changes(dense_layers=0, dense_feed_forward=0)
    dense, mixed = (
        cluster_layers(each, at, CARDS, NamedCuts()).layers for each in (mixture.dense, alone)
    )
    assert found.layers.runs == ((dense.runs[0][0], 1), (mixed.runs[0][0], 3))
    assert dense.runs[0][0].static < mixed.runs[0][0].static
    # The step ends by the weights of each stage: 1 dense and 1 mixture, or 2 mixtures and the head.
    times = cluster_times(mixture, at, CARDS)
    (first, _), (other, _) = times.layers
    parts = times.embedding.step + first.step + other.step, times.head.step + 2 * other.step
    assert times.step_end([(2, 2)]) == pytest.approx(max(parts) + times.beside)


@pytest.mark.parametrize("name", ["llama-3.1-8b", "gpt-oss-20b", "deepseek-v2-lite"])
def test_a_job_has_the_numbers_of_each_deployment_alone(name: str) -> None:
    """What its deployments have in common is computed once, for those that have it."""
    known, cards = known_model(name).model, CARDS.with_changes(cards=16)
    training = replace(TRAINING, model=known, cluster=cards, samples=32, rule=UNEVEN, shares=2)
    experts = (1, 2) if known.experts else (1,)
    lists = Lists(micro_batch=(1, 2), context=(1, 2), expert=experts)
    every = combinations(training, lists)
    draw = random.Random(name)
    for one in draw.sample(every, 60):
        found = counted(training, one)
        assert found == counted(replace(training), one)
        if isinstance(found, CombinationCosts):
            at = counted_deployment(training, one)
            alone = cluster_layers(known, at, cards, UNEVEN, 2, found.microbatches)
            assert found.numbers == alone


def test_numbers_are_ticks_and_bytes() -> None:
    at = ONE.with_changes(data=2, pipeline=2, micro_batch=2)
    found, times = cluster_layers(MODEL, at, CARDS, NamedCuts()), cluster_times(MODEL, at, CARDS)
    assert found.layers.number == 4
    assert found.layers.runs[0][0].forward == round(times.layers[0][0].forward * 1000)
    assert found.layers.runs[0][0].activation == 2 * KEPT
    assert found.layers.runs[0][0].static == 18 * DENSE
    assert found.layers.head.static == 18 * (1000 * 256 + 256)  # the norm, and its own words
    assert found.message == 2 * 256 * 256 * 2


@pytest.mark.parametrize("scope", ["none", "full"])
@pytest.mark.parametrize("name", ["llama-3-70b", "gpt2-xl"])
def test_one_microbatch_needs_what_is_allocated(name: str, scope: str) -> None:
    """By the count that was held against measured peaks (``costs.times.allocated``)."""
    model = known_model(name).model
    at = Deployment(sequence=1024, accounting="engine", pipeline=4, data=1, scope=scope, zero=1)
    found = cluster_layers(model, at, CARDS, NamedCuts())
    wanted = allocated(model, at, CARDS.runs, 1)
    beside = Fraction(CARDS.memory - found.capacity)
    if scope == "full":  # here as room beside, there what the layer keeps as a whole comes on top
        beside += layer_saved(model, at, "full")
    for stage in (0, 1, 3):
        part = found.layers.stages((model.layers // 4,) * 4)[stage]
        held = part.static + part.activation + beside
        ends = found.layers.embedding.activation if stage == 0 else 0  # counted here alone
        assert float(held - ends) == pytest.approx(wanted[stage].total, rel=1e-6)


def test_recomputation_leaves_room_for_one_layer_whole() -> None:
    plain, again = (
        cluster_layers(MODEL, ONE.with_changes(scope=scope), CARDS, NamedCuts())
        for scope in ("none", "full")
    )
    assert again.layers.runs[0][0].activation == 256 * 256 * 2
    assert plain.capacity - again.capacity == KEPT - 256 * 256 * 2
    assert again.layers.runs[0][0].input_backward > plain.layers.runs[0][0].input_backward
    assert again.layers.runs[0][0].weight_backward == plain.layers.runs[0][0].weight_backward


def test_efficiency_is_the_rate_of_products() -> None:
    twice = with_efficiency(CARDS, 1.0)
    half = with_efficiency(CARDS, 0.5)
    assert twice.constants["matmul"] == 2 * half.constants["matmul"] == 1.0
    assert twice.constants["attention"] == 2 * half.constants["attention"]
    assert layer_of(ONE, twice).forward < layer_of(ONE, half).forward


@pytest.mark.parametrize("efficiency", [-0.5, 0.0, 1.5])
def test_an_efficiency_that_is_none(efficiency: float) -> None:
    with pytest.raises(ValueError, match=r"above 0 and at most 1, got .*; use such as"):
        with_efficiency(CARDS, efficiency)


def test_a_cluster_that_is_none() -> None:
    with pytest.raises(ValueError, match="cluster cards must be 1 or more, got 0"):
        CARDS.with_changes(cards=0)
    with pytest.raises(ValueError, match="cluster memory must be more than the reserve"):
        CARDS.with_changes(reserve=128 << 20)
    with pytest.raises(ValueError, match="must be the 4 cards, got 2 x 1 x 1 = 2"):
        cluster_layers(MODEL, Deployment(tensor=2, sequence=256), CARDS, NamedCuts())
