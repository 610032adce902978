"""The model of times against sums written out, and what no constants may change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bubbleproof.costs import Deployment, Transformer, transformer
from bubbleproof.costs.times.card_files import card
from bubbleproof.costs.times.constants import NAMES, starts
from bubbleproof.costs.times.fitted_constants import CONSTANTS
from bubbleproof.costs.times.iteration import iteration_plan
from bubbleproof.costs.times.kernels import KernelTimes, all_reduce, kernel_times
from bubbleproof.costs.times.software import software
from bubbleproof.costs.times.step_work import step
from bubbleproof.costs.times.work import work

GPT = software("megatron-deepspeed")
NODE = 8
H, A, S, B = 1024, 16, 512, 2
MODEL = transformer("gpt", layers=4, hidden=H, heads=A, vocabulary=50304, positions=S)
FORWARD = 24 * B * S * H**2 + 4 * B * S**2 * H  # Narayanan et al., SC 2021, appendix
NOTHING = dict.fromkeys(NAMES, 1e-12) | {
    "matmul": 100.0,
    "memory": 1e30,
    "group": 1e30,
    "group_2": 1.0,
    "group_4": 1.0,
    "message": 1e30,
    "gradient": 1e30,
    "network_group": 1e30,
    "network_gradient": 1e30,
    "odd": 1.0,
    "fp8": 1.0,
    "attention": 1.0,
}
RATES = [each.name for each in CONSTANTS if each.unit in ("TFLOP/s", "GB/s")]
EFFORTS = [
    "half_side",
    "kernels",
    "launch",
    "wait",
    "collective",
    "scores",
    "stream",
    "logits",
    "head",
    "iteration",
]


def at(**changes: object) -> Deployment:
    """A deployment as megatron-deepspeed has it."""
    given = {"micro_batch": B, "sequence": S, "sequence_parallel": False, **changes}
    return Deployment(precision="bf16-gradients", **given)  # type: ignore[arg-type]  # by name


def passes(model: Transformer, where: Deployment, constants: dict[str, float]) -> KernelTimes:
    """The times of one microbatch."""
    return kernel_times(work(model, where, GPT, NODE), constants)


def iteration(model: Transformer, where: Deployment, constants: dict[str, float]) -> float:
    """Milliseconds of 8 microbatches."""
    plan = iteration_plan(
        model, where, microbatches=8, runs=GPT, constants=constants, cards_per_node=NODE
    )
    return plan.milliseconds()


def test_products_alone_take_flops_over_the_rate() -> None:
    found = passes(MODEL, at(), NOTHING)
    assert found.forward == pytest.approx(FORWARD / 100e9)  # 100 TFLOP/s: 1e11 a millisecond
    assert found.backward == pytest.approx(2 * FORWARD / 100e9)
    again = passes(MODEL, at(scope="full"), NOTHING)
    assert again.backward == pytest.approx(3 * FORWARD / 100e9)
    parts = found.input_backward + found.weight_backward
    assert parts == pytest.approx(2 * FORWARD / 100e9)


def test_a_product_of_half_side_runs_at_half_the_rate() -> None:
    """The smallest sides are h = 1024 but for the attention's, whose head is 64 wide."""
    found = passes(MODEL, at(), NOTHING | {"half_side": 1024.0})
    linears, scores = 24 * B * S * H**2, 4 * B * S**2 * H
    assert found.forward == pytest.approx((2 * linears + (1 + 1024 / 64) * scores) / 100e9)


def test_an_all_reduce_moves_its_bytes_twice_but_for_a_share() -> None:
    """Of 2 x 512 x 1024 numbers of 2 bytes over 4 cards: 2 x 3/4 of them at 100 GB/s, and 2 waits
    of 30 us for the two doublings."""
    constants = NOTHING | {"group": 100.0, "collective": 30.0}
    once = work(MODEL, at(tensor=4), GPT, NODE)
    wanted = 2 * 3 / 4 * (B * S * H * 2) / 100e6 + 2 * 0.030
    assert all_reduce(once, constants) == pytest.approx(wanted)
    assert all_reduce(work(MODEL, at(), GPT, NODE), constants) == 0
    apart = kernel_times(once, constants).forward - kernel_times(once, NOTHING).forward
    assert apart == pytest.approx(2 * wanted, rel=1e-6)


def test_context_parallelism_sends_heads_for_tokens() -> None:
    """Of 2 x 512 / 4 tokens: queries, keys, values and the outputs, 4 h numbers of 2 bytes, 3/4 of
    them, at 100 GB/s, and 4 x 2 waits of 30 us, two doublings each; the same backward. Over two
    nodes of two cards half of it leaves, whose 50 GB/s both cards of a node share."""
    constants = NOTHING | {"gradient": 100.0, "network_gradient": 50.0, "collective": 30.0}
    where = at(context=4)
    made = B * S // 4 * 4 * H * 2
    apart = made / 4 / 100e6 + 2 * made / 2 / 50e6
    for per_node, wanted in ((8, made * 3 / 4 / 100e6), (2, apart)):
        once = work(MODEL, where, GPT, per_node)
        spent, plain = kernel_times(once, constants), kernel_times(once, NOTHING)
        assert spent.forward - plain.forward == pytest.approx(wanted + 8 * 0.030, rel=1e-6)
        assert spent.backward - plain.backward == pytest.approx(wanted + 8 * 0.030, rel=1e-6)


def test_a_softmax_is_of_several_operations_where_heads_are_not_in_fours() -> None:
    """Two samples' heads on a card: 32 over 1, 4 over 8, 2 over 16. There 33 bytes more of each
    score, cast, scaled, masked, weighed and cast back (37, not 4), and 35 in the backward; the
    attention alone recomputed moves the forward's again. The host launches 4 operations more than
    a GPT layer's 10."""
    constants = NOTHING | {"memory": 100.0, "scores": 1e-12}
    for tensor, is_apart in ((1, False), (8, False), (16, True)):
        for scope in ("none", "attention"):
            once = work(MODEL, at(tensor=tensor, scope=scope), GPT, 16)
            found, plain = kernel_times(once, constants), kernel_times(once, NOTHING)
            scores = is_apart * 2 * S * S
            again = 33 * scores if scope == "attention" else 0
            assert found.forward - plain.forward == pytest.approx(33 * scores / 100e6)
            assert found.backward - plain.backward == pytest.approx((35 * scores + again) / 100e6)
            assert float(once.launches) == pytest.approx(1 + is_apart * 4 / 10)
    long = at(micro_batch=1).with_changes(sequence=8192)
    assert float(work(MODEL, long, GPT, 8).softmax) == 33 * 16 * 8192**2
    fused = long.with_changes(accounting="fused")
    assert float(work(MODEL, fused, GPT, 8).softmax) == 0


def test_chunks_divide_the_bubble() -> None:
    """Narayanan et al., SC 2021, section 2.2: the bubble is (p - 1) (F + B) / v, F and B those of a
    rank. Four layers of f and 2 f on two ranks, v = 2: 4 microbatches x 2 layers x 3 f, and 3 f."""
    small = MODEL.with_changes(vocabulary=8)  # the head takes next to nothing
    f = float(passes(small, at(), NOTHING).forward)
    plans = [
        iteration_plan(
            small,
            at(pipeline=2),
            microbatches=4,
            runs=GPT,
            constants=NOTHING,
            cards_per_node=NODE,
            chunks=chunks,
        )
        for chunks in (1, 2)
    ]
    once, twice = (plan.milliseconds() for plan in plans)
    assert once == pytest.approx((24 + 6) * f, rel=0.01)
    assert twice == pytest.approx((24 + 3) * f, rel=0.01)
    assert [plan.stages[0]["forward_ms"] for plan in plans] == pytest.approx([2 * f] * 2)


def test_no_pass_is_faster_than_its_launches() -> None:
    found = passes(MODEL, at(), NOTHING | {"launch": 90.0})
    assert found.forward == pytest.approx(30.0)
    assert found.backward == pytest.approx(60.0)


def test_cards_of_a_group_wait_as_far_as_they_keep_up_with_their_hosts() -> None:
    """With 30 ms of host in a forward, 10 of the wait's half are felt beside a card of 20 ms; of a
    card of 60 ms a half of it; alone none. A host that takes no time sets no pace."""
    given = NOTHING | {"launch": 90.0, "wait": 20.0, "matmul": 1e9}
    cards = {"kernels": 3 * 20.0}
    assert passes(MODEL, at(tensor=2), given | cards).forward == pytest.approx(
        _smooth(20.0 + 10.0, 30.0)
    )
    late = passes(MODEL, at(tensor=2), given | {"kernels": 3 * 60.0}).forward
    assert late == pytest.approx(_smooth(60.0 + 10.0 * 30 / 60, 30.0))
    assert passes(MODEL, at(), given | cards).forward == pytest.approx(
        _smooth(20.0, 30.0), rel=1e-3
    )
    assert passes(MODEL, at(tensor=2), NOTHING | {"wait": 20.0}).forward < 1.0


def _smooth(card: float, host: float) -> float:
    return float((card**8 + host**8) ** (1 / 8))


def test_a_message_is_a_cards_share_where_it_may_leave_the_node() -> None:
    """2 x 512 x 1024 numbers of 2 bytes: whole within a node, a quarter between nodes; software
    that scatters sends a quarter within a node, too."""
    whole = B * S * H * 2
    inside, outside = at(tensor=4, pipeline=2), at(tensor=4, pipeline=4)
    assert work(MODEL, inside, GPT, NODE).message == whole
    assert work(MODEL, outside, GPT, NODE).message == whole / 4
    assert work(MODEL, inside, software("megatron-core"), NODE).message == whole / 4


def test_a_step_reduces_gradients_and_moves_the_optimizer() -> None:
    """One of 2 stages: 2 layers of 12 h^2 + 13 h weights, the first with words and positions."""
    weights = 2 * (12 * H**2 + 13 * H) + (50304 + S) * H
    found = step(MODEL, at(pipeline=2, data=4), GPT, NODE, is_first=True, is_last=False)
    assert found.moved == pytest.approx(3 / 4 * weights * 4)
    assert found.sent == 0
    assert found.optimizer == pytest.approx(weights * 30)
    far = step(MODEL, at(pipeline=2, data=16, tensor=2), GPT, NODE, is_first=False, is_last=False)
    halves = 2 * (12 * H**2 / 2 + (3 * H + 4 * H) / 2 + 6 * H)
    assert far.sent == pytest.approx(2 * 15 / 16 * halves * 4)  # two rings share the node's network


def test_one_stage_runs_its_microbatches_one_after_another() -> None:
    constants = starts(card("a100-80gb"))
    once = passes(MODEL, at(), constants)
    each = 4 * (once.forward + once.backward) + once.embedding + once.head
    optimizer = step(MODEL, at(), GPT, NODE, is_first=True, is_last=True).optimizer
    wanted = 8 * each + optimizer / (constants["memory"] * 1e6) + constants["iteration"]
    assert iteration(MODEL, at(), constants) == pytest.approx(float(wanted), rel=1e-6)


CUTS = [
    at(),
    at(tensor=2, pipeline=2),
    at(tensor=8, data=2),
    at(tensor=16, scope="full"),
    at(pipeline=4, data=4, scope="attention"),
]


@pytest.mark.parametrize("cut", CUTS, ids=str)
def test_faster_parts_never_make_it_slower(cut: Deployment) -> None:
    constants = starts(card("a100-80gb"))
    before = iteration(MODEL, cut, constants)
    for name in RATES:
        assert iteration(MODEL, cut, constants | {name: 2 * constants[name]}) <= before, name
    for name in EFFORTS:
        assert iteration(MODEL, cut, constants | {name: 2 * constants[name]}) >= before, name


@pytest.mark.parametrize("cut", CUTS, ids=str)
def test_more_work_never_takes_less_time(cut: Deployment) -> None:
    constants = starts(card("a100-80gb"))
    cut = cut.with_changes(micro_batch=4 * B)  # whose heads on a card are in fours, as twice them
    before = iteration(MODEL, cut, constants)
    assert iteration(MODEL, cut.with_changes(micro_batch=8 * B), constants) >= before
    assert iteration(MODEL.with_changes(vocabulary=100608), cut, constants) >= before
    assert iteration(MODEL.with_changes(layers=8), cut, constants) >= before
    assert iteration(MODEL.with_changes(feed_forward=8 * H), cut, constants) >= before
    wider = MODEL.with_changes(hidden=2 * H, head_width=2 * H // A, feed_forward=8 * H)
    assert iteration(wider, cut, constants) >= before


def test_times_are_smooth_where_card_and_host_are_alike() -> None:
    launch = np.linspace(0.05, 1.0, 200)
    found = [float(passes(MODEL, at(), NOTHING | {"launch": x}).forward) for x in launch]
    assert (np.diff(found) >= 0).all()
    assert max(np.diff(found)) <= 0.34 * (launch[1] - launch[0])  # a third of the launches


def test_every_constant_changes_some_iteration() -> None:
    """One that changes none could not be fitted, and would mean nothing."""
    constants = starts(card("a100-80gb"))
    odd = replace(MODEL, vocabulary=50257)
    cuts = [*CUTS, at(tensor=4, pipeline=2, data=8)]
    slow = constants | {"launch": 50.0, "head": 50.0}
    overlapped = {"attention", "fp8", "exposed_tensor", "exposed_context", "exposed_gradient"}
    for name in sorted({*NAMES} - overlapped):  # those in test_overlaps
        for base in (constants, slow):
            changed = base | {name: 1.5 * base[name]}
            if any(iteration(odd, cut, base) != iteration(odd, cut, changed) for cut in cuts):
                break
        else:
            raise AssertionError(name)
