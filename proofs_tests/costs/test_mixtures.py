"""Experts, latent attention and dense first layers: sums written out for DeepSeek-V2.

h 5120, 128 heads of 128 + 64 numbers (values 128), ranks 1536 and 512, 160 experts of width 1536, 6
a token, a shared one of 3072; the first layer's block is 12288 wide.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from bubbleproof.costs import (
    Deployment,
    Transformer,
    known_model,
    layer_flops,
    layer_operations,
    layer_saved,
    model_costs,
    transformer,
)
from bubbleproof.costs.cluster import Cluster
from bubbleproof.costs.moment_bytes import placeholders
from bubbleproof.costs.times.allocated import allocated
from bubbleproof.costs.times.card_files import card
from bubbleproof.costs.times.constants import starts
from bubbleproof.costs.times.iteration import iteration_plan
from bubbleproof.costs.times.kernels import kernel_times, slower
from bubbleproof.costs.times.profiles import software
from bubbleproof.costs.times.replicas import replicas
from bubbleproof.costs.times.work import operand_bytes, work
from bubbleproof.costs.weights import layer_weights

CORE = software("megatron-core")
MODEL = known_model("deepseek-v2").model.with_changes(layers=4)
T = 4096
AT = Deployment(data=8, expert=8, sequence=T, zero=1, accounting="engine")
H, A, QK, V = 5120, 128, 192, 128
ATTENTION = H * 1536 + 1536 * A * QK + H * (512 + 64) + 512 * A * (128 + V) + A * V * H
EXPERT, SHARED, DENSE, ROUTER = 3 * H * 1536, 3 * H * 3072, 3 * H * 12288, H * 160
NORMS = 2 * H + 1536 + 512


def test_weights_of_a_layer_on_one_of_eight_ranks() -> None:
    found = layer_weights(MODEL, AT)
    assert found.experts == 20 * EXPERT
    assert found.dense == ATTENTION + SHARED + ROUTER + NORMS
    first = layer_weights(MODEL.dense, AT)
    assert (first.dense, first.experts) == (ATTENTION + DENSE + NORMS, 0)


def test_flops_of_a_token_are_of_six_experts_and_the_shared_one() -> None:
    linears = 2 * T * (ATTENTION + 6 * EXPERT + SHARED + ROUTER)
    scores = 2 * T * T * A * (QK + V)
    found = layer_flops(MODEL, AT)
    assert found.forward == linears + scores
    assert found.input_backward == linears + Fraction(5, 2) * scores
    assert found.weight_backward == linears


def test_what_a_layer_keeps() -> None:
    """Of a token in 16 bits: two norms' outputs and two sums; what goes down and its norms; queries
    and keys with positions, values, the attention's output; six copies, each with up, gate and
    their product; the shared one's. In 32: statistics, of four norms and of each head, and
    the router's rates."""
    numbers = 4 * H + 2 * 1536 + (512 + 64) + 512 + A * (QK + QK + V + V)
    numbers += 6 * (H + 3 * 1536) + 3 * 3072
    statistics = 4 + A + 160
    assert layer_saved(MODEL, AT) == T * (2 * numbers + 4 * statistics)
    # Where experts are weighed after their last linear its output is kept as well, and gates are.
    plain = layer_saved(MODEL, AT.with_changes(accounting="fused"))
    assert plain - layer_saved(MODEL, AT) == T * 2 * (6 * (H + 1536) + 3072)


def test_dense_layers_are_in_the_first_stage() -> None:
    at = AT.with_changes(pipeline=2, data=4, expert=4)
    first, last = model_costs(MODEL, at).stages
    mixed, dense = layer_flops(MODEL, at), layer_flops(MODEL.dense, at)
    assert first.flops == mixed + dense
    assert last.flops.forward == 2 * mixed.forward + 2 * T * H * 102400
    held = allocated(MODEL, at, CORE, 4)
    assert held[0].saved == 2 * (layer_saved(MODEL, at) + layer_saved(MODEL.dense, at))
    assert held[1].saved == 2 * layer_saved(MODEL, at)


def test_a_stage_has_dense_layers_and_others() -> None:
    """Three dense layers on two stages of two: two, and one with one of experts."""
    model = MODEL.with_changes(dense_layers=3)
    dense = model.dense
    assert model.layer_runs == ((dense, 3), (model, 1))
    assert model.between(0, 2) == ((dense, 2),)
    assert model.between(2, 2) == ((dense, 1), (model, 1))
    at = AT.with_changes(pipeline=2, data=4, expert=4)
    first, last = model_costs(model, at).stages
    assert first.flops == layer_flops(dense, at) * 2
    head = Fraction(2 * T * H * 102400)
    assert last.flops.forward == (layer_flops(dense, at) + layer_flops(model, at)).forward + head


def test_one_placeholder_stands_for_each_shape() -> None:
    shapes = {(H, 1536), (1536, A * QK), (H, 576), (512, A * 256), (A * V, H)}
    shapes |= {(H, 2 * 1536), (1536, H), (H, 2 * 3072), (3072, H), (H, 2 * 12288), (12288, H)}
    assert placeholders(MODEL.layer_runs, AT) == 2 * sum(inner * outer for inner, outer in shapes)


def test_an_experts_product_has_the_rows_that_its_ranks_send() -> None:
    """Up and gate of 20 experts are one product each, of T 8 x 6 / 160 rows; of the router T."""
    operations = {each.name: each for each in layer_operations(MODEL)}
    rows = T * 8 * 6 / 160
    moved = 20 * 2 * (rows * H + H * 2 * 1536 + rows * 2 * 1536)
    assert operand_bytes(operations["up"], MODEL, AT) == moved
    alone = AT.with_changes(expert=1)
    moved = 160 * 2 * (rows / 8 * H + H * 2 * 1536 + rows / 8 * 2 * 1536)
    assert operand_bytes(operations["up"], MODEL, alone) == moved
    assert operand_bytes(operations["router"], MODEL, AT) == 2 * (T * H + H * 160 + T * 160)


def test_more_expert_ranks_than_replicas_hold_experts_whole() -> None:
    """With 2 tensor ranks and 4 replicas experts are cut in two over 4 ranks, and whole over 8:
    as many weights on a card, of two replicas' cards; as many FLOPs; half the stream is sent."""
    over = AT.with_changes(tensor=2, data=4, expert=8)
    cut = AT.with_changes(tensor=2, data=4, expert=4)
    over.require(MODEL)
    assert (cut.expert_cut, over.expert_cut) == (2, 1)
    assert layer_weights(MODEL, over).experts == layer_weights(MODEL, cut).experts == 20 * EXPERT
    assert over.expert_replicas == cut.expert_replicas == 1
    assert layer_flops(MODEL, over) == layer_flops(MODEL, cut)
    both = [work(MODEL, each, CORE, 8) for each in (over, cut)]
    assert float(both[0].sent) == T / 2 * 6 * H * 2 * 7 / 8
    assert float(both[1].sent) == T * 6 * H * 2 * 3 / 4
    with pytest.raises(ValueError, match="expert must divide data x context x tensor 8, got 16"):
        over.with_changes(expert=16).require(MODEL)


def test_a_pass_copies_sorts_and_turns() -> None:
    """Thirteen passes over six copies of a token, a third of them in the forward, and queries, keys
    and values read and written. Between nodes of 2 cards a token goes to each of 4 nodes once."""
    found = work(MODEL, AT, CORE, 8)
    turned = T * 2 * 2 * A * (QK + QK + V)
    assert float(found.copied) == pytest.approx(13 / 3 * T * 2 * 6 * H + turned)
    assert found.sent == T * 2 * 6 * H * 7 / 8
    assert found.sent_out == 0
    assert found.sent_steps == 3
    assert work(MODEL.dense, AT, CORE, 8).copied == turned
    apart = work(MODEL, AT, CORE, 2)
    assert apart.sent == T * 2 * 6 * H / 2
    assert apart.sent_out == T * 2 * 4 * H * 3 / 4
    hidden = replace(CORE, hides_experts=True)
    assert work(MODEL, AT, hidden, 2).sent_out == apart.sent_out / 2


def test_the_host_of_a_mixture_is_slow_and_never_far_ahead() -> None:
    """7 ms, and 0.18 for each of 20 experts on a card, x 1.3 in 8 bits; (a^2.5 + b^2.5)^(1/2.5)."""
    found = work(MODEL, AT, CORE, 8)
    assert float(found.host) == pytest.approx((7 + 0.18 * 20) / 7)
    assert float(work(MODEL, AT, CORE.computing_in("fp8"), 8).host) == pytest.approx(
        1.3 * (7 + 0.18 * 20) / 7
    )
    assert float(work(MODEL.dense, AT, CORE, 8).host) == 1
    ten = np.asarray(10.0)
    assert slower(ten, ten, found) == pytest.approx(10 * 2**0.4)
    assert slower(ten, ten, work(MODEL.dense, AT, CORE, 8)) == pytest.approx(10 * 2**0.125)


def test_each_constant_of_a_mixture_is_felt() -> None:
    c = starts(card("b200"))
    many = work(MODEL, AT, software("megatron-core").computing_in("fp8"), 2)
    before = kernel_times(many, c)
    for name in ("grouped", "fp8", "exchange"):
        assert kernel_times(many, c | {name: 2 * c[name]}).backward < before.backward, name
    for name in ("dispatch", "exposed_expert"):
        assert kernel_times(many, c | {name: 2 * c[name]}).backward > before.backward, name
    blocks = work(MODEL, AT, replace(CORE, blocks=True), 2)
    plain = kernel_times(work(MODEL, AT, CORE, 2), c)
    found = kernel_times(blocks, c)
    both = found.forward + found.backward - plain.forward - plain.backward
    assert both == pytest.approx(c["blocking"])


def test_gradients_of_experts_are_reduced_among_fewer() -> None:
    """Over 8 replicas with expert 4: dense weights 7/8 of 4 bytes, those of experts 1/2; each card
    16 bytes of every weight, and 46 of its share."""
    at = AT.with_changes(expert=4)
    weights = layer_weights(MODEL, at)
    found = replicas(weights, at, CORE, 8)
    dense, experts = float(weights.dense), float(weights.experts)
    assert float(found.in_end_reduce) == pytest.approx(4 * (7 / 8 * dense + 1 / 2 * experts))
    assert float(found.in_end_gather) == pytest.approx(2 * (7 / 8 * dense + 1 / 2 * experts))
    wanted = (16 + 46 / 8) * dense + (16 + 46 / 2) * experts
    assert float(found.optimizer) == pytest.approx(wanted)


def test_stages_take_the_times_of_their_layers() -> None:
    constants, at = starts(card("b200"), CORE), AT.with_changes(pipeline=2, data=4, expert=4)
    cluster = Cluster(card=card("b200"), cards=8, constants=constants, runs=CORE)
    plan = iteration_plan(MODEL, at, cluster, microbatches=4)
    mixed, dense = (
        kernel_times(work(kind, at, CORE, 8), constants) for kind in (MODEL, MODEL.dense)
    )
    assert plan.stages[0]["forward_ms"] == pytest.approx(
        float(mixed.forward + dense.forward + 0.5 * mixed.embedding)
    )
    assert plan.stages[1]["forward_ms"] == pytest.approx(float(2 * mixed.forward + mixed.head / 3))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"rope_width": 64}, "model rope_width needs kv_rank"),
        ({"query_rank": 64}, "model query_rank needs kv_rank"),
        ({"kv_rank": 64, "kv_heads": 2}, "kv_heads must be heads 8 with kv_rank, got 2"),
        ({"shared_feed_forward": 64}, "shared_feed_forward need experts"),
        ({"dense_layers": 1}, "dense_layers and dense_feed_forward go together"),
        (
            {"dense_layers": 9, "dense_feed_forward": 64, "experts": 2, "experts_per_token": 1},
            "dense_layers must be at most layers 4, got 9",
        ),
    ],
)
def test_shapes_that_are_none(changes: dict[str, int], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        transformer(
            "llama", layers=4, hidden=64, heads=8, feed_forward=128, vocabulary=9, **changes
        )


def test_latent_attention_of_nothing_more_is_that_of_all_heads() -> None:
    """A negative control: plain heads stay as they were, whatever latent fields there are."""
    plain = transformer("llama", layers=1, hidden=64, heads=8, feed_forward=128, vocabulary=9)
    assert isinstance(plain, Transformer)
    assert plain.query_width == plain.kv_width == plain.value_width == plain.output_width == 64
