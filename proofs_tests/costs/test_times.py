"""The model of times against sums written out, and what no constants may change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bubbleproof.costs import Deployment, Transformer, transformer
from bubbleproof.costs.cluster import Cluster
from bubbleproof.costs.cluster_times import cluster_times
from bubbleproof.costs.times.card_files import card
from bubbleproof.costs.times.constants import CONSTANTS, NAMES, starts
from bubbleproof.costs.times.iteration import iteration_plan
from bubbleproof.costs.times.kernels import KernelTimes, gather, kernel_times
from bubbleproof.costs.times.profiles import software
from bubbleproof.costs.times.replicas import replicas
from bubbleproof.costs.times.work import work
from bubbleproof.costs.weights import layer_weights

GPT = software("megatron-2021")
NODE = 8
H, A, S, B = 1024, 16, 512, 2
MODEL = transformer("gpt", layers=4, hidden=H, heads=A, vocabulary=50304, positions=S)
FORWARD = 24 * B * S * H**2 + 4 * B * S**2 * H  # Narayanan et al., SC 2021, appendix
NOTHING = dict.fromkeys(NAMES, 1e-12) | {
    each.name: 1e30 for each in CONSTANTS if each.unit == "GB/s"
}
NOTHING |= dict.fromkeys(("group_2", "group_4", "odd", "fp8", "grouped", "factor"), 1.0)
NOTHING |= {"matmul": 100.0, "attention": 100.0}
RATES = [each.name for each in CONSTANTS if each.unit in ("TFLOP/s", "GB/s")]
EFFORTS = [each.name for each in CONSTANTS if each.unit in ("ms", "us", "passes", "bytes")]


def at(**changes: object) -> Deployment:
    """A deployment as megatron-2021 has it."""
    given = {"micro_batch": B, "sequence": S, "sequence_parallel": False, **changes}
    return Deployment(precision="bf16-gradients", **given)  # type: ignore[arg-type]  # by name


def passes(model: Transformer, where: Deployment, constants: dict[str, float]) -> KernelTimes:
    """The times of one microbatch."""
    return kernel_times(work(model, where, GPT, NODE), constants)


def on(constants: dict[str, float], cut: Deployment, framework: str = "megatron-2021") -> Cluster:
    """The cards of a cut, eight in a node."""
    return Cluster(
        card=card("a100-80gb"), cards=cut.devices, constants=constants, runs=software(framework)
    )


def iteration(model: Transformer, where: Deployment, constants: dict[str, float]) -> float:
    """Milliseconds of 8 microbatches."""
    return iteration_plan(model, where, on(constants, where), microbatches=8).milliseconds()


def test_products_alone_take_flops_over_the_rate() -> None:
    found = passes(MODEL, at(), NOTHING)
    assert found.forward == pytest.approx(FORWARD / 100e9)  # 100 TFLOP/s: 1e11 a millisecond
    assert found.backward == pytest.approx(2 * FORWARD / 100e9)
    again = passes(MODEL, at(scope="full"), NOTHING)
    assert again.backward == pytest.approx(3 * FORWARD / 100e9)
    parts = found.input_backward + found.weight_backward
    assert parts == pytest.approx(2 * FORWARD / 100e9)


def test_a_product_moves_its_operands() -> None:
    """Of T = 1024 tokens in 16 bits: query, key and value as one product of h by 3 h, the output h
    by h, up and down h by 4 h; each T x inner, inner x outer and T x outer numbers; two passes."""
    tokens = B * S
    sides = ((H, 3 * H), (H, H), (H, 4 * H), (4 * H, H))
    moved = sum(2 * (tokens * a + a * b + tokens * b) for a, b in sides)
    found = passes(MODEL, at(), NOTHING | {"operands": 2.0, "memory": 100.0})
    plain = passes(MODEL, at(), NOTHING | {"memory": 100.0})
    assert found.forward - plain.forward == pytest.approx(2 * moved / 100e6)
    assert found.weight_backward - plain.weight_backward == pytest.approx(2 * moved / 100e6)


def test_elements_are_passes_over_the_stream_and_inside_blocks() -> None:
    """34 passes over 2 T h bytes, and 2 T (7 x 4 h + 4 x 3 h) of blocks and heads; a third of them
    in the forward. Over 2 tensor ranks half of what is inside, and of 0.4 of the stream."""
    constants = NOTHING | {"stream": 34.0, "memory": 100.0, "scores": 1e-15}
    stream, inner = 2 * B * S * H, 2 * B * S * 40 * H
    for tensor, kept in ((1, 1.0), (2, 0.6 + 0.4 / 2)):
        found = passes(MODEL, at(tensor=tensor), constants).forward
        alone = passes(MODEL, at(tensor=tensor), NOTHING).forward
        wanted = (34 * stream * kept + inner / tensor) / 3 / 100e6
        assert found - alone == pytest.approx(wanted, rel=1e-5)


def test_heads_whose_width_is_no_multiple_of_eight_are_slow() -> None:
    """16 of 64 numbers, or 16 of 60 beside them: at 0.28 of the rate, not 0.57, scores as well."""
    odd = MODEL.with_changes(head_width=60, value_head_width=60)
    slow, plain = (work(each, at(), GPT, NODE) for each in (odd, MODEL))
    assert float(slow.attention) == pytest.approx(0.57 / 0.28 * 60 / 64 * float(plain.attention))
    assert float(slow.scores) == pytest.approx(0.57 / 0.28 * float(plain.scores))
    fused = at().with_changes(accounting="fused")
    assert float(work(odd, fused, GPT, NODE).scores) == 0


def test_a_tensor_group_gathers_and_scatters() -> None:
    """Of 2 x 512 x 1024 numbers of 2 bytes over 4 cards: 3/4 of them at 100 GB/s, and 2 waits of
    30 us for the two doublings; four times in a forward, six in a backward with sequence
    parallelism. Without it two all-reduces each way: twice the bytes, and the waits once."""
    constants = NOTHING | {"group": 100.0, "collective": 30.0}
    for parallel, back, waits in ((False, 4, 1), (True, 6, 2)):
        wanted = 3 / 4 * (B * S * H * 2) / 100e6 + waits * 0.030
        once = work(MODEL, at(tensor=4, sequence_parallel=parallel), GPT, NODE)
        assert gather(once, constants) == pytest.approx(wanted)
        spent, plain = kernel_times(once, constants), kernel_times(once, NOTHING)
        assert spent.forward - plain.forward == pytest.approx(4 * wanted, rel=1e-6)
        assert spent.backward - plain.backward == pytest.approx(back * wanted, rel=1e-6)
    assert gather(work(MODEL, at(), GPT, NODE), constants) == 0


def test_context_parallelism_sends_keys_and_values_round() -> None:
    """Of 2 x 512 / 4 tokens 2 h numbers of 2 bytes, three times, at 100 GB/s, with 30 us each;
    twice as much in the backward. Over two nodes of two cards at a card's 12.5 GB/s. What runs
    beside the attention is not waited for but for 0.2 of it."""
    constants = NOTHING | {"gradient": 100.0, "card_network": 12.5, "exposed_context": 0.2}
    constants |= {"collective": 30.0}
    made = 3 * B * S // 4 * 2 * H * 2
    for per_node, rate in ((8, 100e6), (2, 12.5e6)):
        once = work(MODEL, at(context=4), GPT, per_node)
        spent, plain = kernel_times(once, constants), kernel_times(once, NOTHING)
        beside = 4 * B * S // 4 * S * H / 100e9  # the attention of a quarter of the tokens
        for found, alone, times in (
            (spent.forward, plain.forward, 1),
            (spent.backward, plain.backward, 2),
        ):
            moved = times * made / rate + 3 * 0.030
            wanted = moved - min(0.8 * moved, times * beside)
            assert found - alone == pytest.approx(wanted, rel=1e-6)


def test_a_softmax_is_of_several_operations_where_heads_are_not_in_fours() -> None:
    """Two samples' heads on a card: 32 over 1, 4 over 8, 2 over 16. There 33 bytes more of each
    score, cast, scaled, masked, weighed and cast back (37, not 4), and 35 in the backward; the
    attention alone recomputed moves the forward's again. The host launches 4 operations more than
    a GPT layer's 10."""
    constants = NOTHING | {"memory": 100.0}
    for tensor, is_apart in ((1, False), (8, False), (16, True)):
        for scope in ("none", "attention"):
            once = work(MODEL, at(tensor=tensor, scope=scope), GPT, 16)
            inner = 2 * B * S * 40 * H / tensor / 3  # blocks and heads, a third of them
            found, plain = kernel_times(once, constants), kernel_times(once, NOTHING)
            scores = is_apart * 2 * S * S
            again = 33 * scores if scope == "attention" else 0
            wanted = (33 * scores + inner) / 100e6
            assert found.forward - plain.forward == pytest.approx(wanted)
            wanted = (35 * scores + again + 2 * inner) / 100e6
            assert found.backward - plain.backward == pytest.approx(wanted)
            assert float(once.host) == pytest.approx(1 + is_apart * 4 / 10)
    long = at(micro_batch=1).with_changes(sequence=8192)
    assert float(work(MODEL, long, GPT, 8).softmax) == 33 * 16 * 8192**2
    fused = long.with_changes(accounting="fused")
    assert float(work(MODEL, fused, GPT, 8).softmax) == 0


def test_chunks_divide_the_bubble() -> None:
    """Narayanan et al., SC 2021, section 2.2: the bubble is (p - 1) (F + B) / v, F and B those of a
    rank. Four layers of f and 2 f on two ranks, v = 2: 4 microbatches x 2 layers x 3 f, and 3 f."""
    small = MODEL.with_changes(vocabulary=8)  # the head takes next to nothing
    slow = NOTHING | {"matmul": 1.0, "attention": 1.0}  # a message is nothing beside it
    f = float(passes(small, at(), slow).forward)
    plans = [
        iteration_plan(
            small,
            at(pipeline=2),
            on(slow, at(pipeline=2)),
            microbatches=4,
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
    given = NOTHING | {"launch": 90.0, "wait": 20.0, "matmul": 1e9, "attention": 1e9}
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
    """The first of 2 stages: 2 layers of 12 h^2 + 13 h weights, words and positions."""
    where = at(pipeline=2, data=4)
    layer = 12 * H**2 + 13 * H
    found = replicas(layer_weights(MODEL, where), where, GPT, NODE)
    assert float(found.in_end_reduce) == float(found.in_end_gather) == 3 / 4 * layer * 2
    assert float(found.out_end_reduce) == 0
    assert float(found.optimizer) == layer * 30
    far = at(pipeline=2, data=16, tensor=2)
    halves = 12 * H**2 / 2 + (3 * H + 4 * H) / 2 + 6 * H
    found = replicas(layer_weights(MODEL, far), far, GPT, NODE)
    # Two rings share the node's network; 64 cards are 8 nodes of 8.
    assert float(found.out_end_reduce) == pytest.approx(2 * 15 / 16 * halves * 2)
    assert float(found.doublings) == 3
    constants = NOTHING | {"memory": 100.0, "gradient": 50.0}
    times = cluster_times(MODEL, where, on(constants, where))
    weights = 2 * layer + (50304 + S) * H
    wanted = 30 * weights / 100e6 + 3 / 4 * 4 * weights / 50e6
    assert times.stages((2, 2), "step")[0] == pytest.approx(wanted)


def test_shards_of_replicas_gather_within_their_group() -> None:
    """HSDP: of 16 replicas on two nodes 8 share, each weight 7/8 of 2 bytes in a node; the two that
    hold the same shard reduce an eighth of the gradients between nodes, there and back."""
    core = software("torchtitan")
    where = at(data=16, zero=3, shard=8).with_changes(accounting="fused")
    weights = layer_weights(MODEL, where)
    found = replicas(weights, where, core, NODE)
    assert float(found.in_gather) == pytest.approx(7 / 8 * 2 * float(weights.dense))
    assert float(found.out_gather) == 0
    assert float(found.out_end_reduce) == pytest.approx(2 * 4 / 8 / 2 * 8 * float(weights.dense))
    whole = replicas(weights, where.with_changes(shard=0), core, NODE)
    assert float(whole.in_gather) == 0
    assert float(whole.out_gather) == pytest.approx(15 / 16 * 2 * float(weights.dense))


def test_an_iteration_is_the_sum_of_its_terms() -> None:
    """A deployment written out by hand, without a function of ``costs``: Llama of 2 layers of one
    replica on one A100 card, 3 microbatches of one sample of 1024 tokens, in megatron-core.

    h 1024, 16 heads of 64 numbers, 4 of keys and values, block 4096, 32,000 words (250 x 128)."""
    h, kv, f, words, tokens = 1024, 256, 4096, 32_000, 1024
    llama = transformer(
        "llama", layers=2, hidden=h, heads=16, kv_heads=4, feed_forward=f, vocabulary=words
    )
    names = ("matmul", "attention", "memory", "operands", "stream", "kernels", "launch")
    c = starts(card("a100-80gb"), software("megatron-core"))
    rate, fused, memory, operands, stream, kernels, launch = (c[name] for name in names)
    sides = ((h, h + 2 * kv), (h, h), (h, 2 * f), (f, h))
    flops = sum(2 * tokens * a * b for a, b in sides)
    moved = sum(2 * (tokens * a + a * b + tokens * b) for a, b in sides)
    products = flops / rate / 1e9 + operands * moved / memory / 1e6
    attention = (4 * tokens * tokens * h / 2) / fused / 1e9
    inner = 2 * tokens * (7 * f + 4 * (h + 2 * kv))
    elements = (stream * 2 * tokens * h + inner) / memory / 1e6

    def slower(one: float, other: float) -> float:
        return float((one**8 + other**8) ** (1 / 8))

    forward = slower(products + attention + elements / 3 + kernels / 3, launch / 3)
    backward = 2 * products + 2.6 * attention + 2 * elements / 3 + 2 * kernels / 3
    backward = slower(backward, 2 * launch / 3)
    ends = 10 * 2 * tokens * h / memory / 1e6  # passes over the stream
    embedding = ends + 0.2 * c["head"]
    head = 2 * tokens * h * words / rate / 1e9
    head += operands * 2 * (tokens * words + words * h + tokens * h) / memory / 1e6
    head = 3 * head + ends + c["head"] + tokens * words * c["logits"] / memory / 1e6
    layer = h * (h + 2 * kv) + h * h + 3 * h * f + 2 * h
    weights = 2 * layer + 2 * words * h + h
    optimizer = (16 + 46) * weights / memory / 1e6
    wanted = 3 * (2 * (forward + backward) + embedding + head) + optimizer + c["iteration"]
    where = Deployment(sequence=tokens, accounting="engine", zero=1)
    plan = iteration_plan(llama, where, on(c, where, "megatron-core"), microbatches=3)
    assert plan.milliseconds() == pytest.approx(wanted, rel=1e-5)


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
    cuts = [*CUTS, at(tensor=4, pipeline=2, data=8), at(tensor=4, context=4)]
    slow = constants | {"launch": 50.0, "head": 50.0}
    others = {name for name in NAMES if name.startswith("exposed")}  # in test_overlaps
    others |= {"fp8", "grouped", "dispatch", "exchange", "blocking"}  # and test_mixtures
    for name in sorted({*NAMES} - others):
        for base in (constants, slow):
            changed = base | {name: 1.5 * base[name]}
            if any(iteration(odd, cut, base) != iteration(odd, cut, changed) for cut in cuts):
                break
        else:
            raise AssertionError(name)
