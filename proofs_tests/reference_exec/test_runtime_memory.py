"""PyTorch's runtime holds what is predicted, byte for byte, after each action.

The prediction knows rules of lifetime; the watch knows storages. They share only sizes of tensors.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("torch.distributed.pipelining.schedules", reason="torch is not installed")

import torch

from benchmarks.pytorch_memory import MemoryRow, memory_of, page
from benchmarks.pytorch_training import plan_of
from benchmarks.runtime_memory import predicted_runtime_bytes, stage_bytes
from benchmarks.storage_watch import StorageWatch
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.theory.model.actions import Kind

pytestmark = pytest.mark.torch

SPEC = ModelSpec(kind="mlp", hidden=4, layers=1, sequence=3)
MESSAGE = SPEC.batch * 3 * 4 * 8  # batch, sequence, hidden, bytes of a float64


@pytest.mark.parametrize(("name", "kind"), [("zb-v", "mlp"), ("zb-h1", "transformer")])
def test_the_runtime_holds_what_is_predicted_after_every_action(name: str, kind: str) -> None:
    row = memory_of(name, 2, 4, replace(SPEC, kind=kind, heads=2))
    assert row.measured == row.predicted
    assert row.num_equal == row.num_readings
    # a control: I lets nothing go there, so that the runtime keeps more than our ranks do
    assert max(map(max, row.measured)) > max(map(max, row.own))


def test_a_reading_that_differs_is_counted() -> None:
    row = MemoryRow(name="x", model="mlp", predicted=((1, 2),), measured=((1, 3),), own=((1, 1),))
    assert (row.num_equal, row.num_readings) == (1, 2)
    assert "Of 2 readings 1 came out" in page([row], 1, 1)


def test_each_rule_of_lifetime_counts() -> None:
    """1F1B on two ranks, two microbatches; no gloo."""
    plan = plan_of("1f1b", 2, 2, "compute_comms", SPEC)
    orders = plan.program.orders(2)
    first, last = predicted_runtime_bytes(SPEC, orders, plan.stage_ranks, 2)
    # gradients are received on rank 0, inputs on rank 1, two buffers each from the start
    assert first[0] == last[0] == 2 * MESSAGE
    # as its step ends rank 0 keeps its buffers and outputs that were sent and never waited for
    assert first[-1] == 4 * MESSAGE
    # rank 1: buffers, outputs that are returned, gradients that were sent, and two losses
    loss = SPEC.element_bytes
    assert last[-1] == (2 + 2 + 2) * MESSAGE + 2 * loss
    kept = predicted_runtime_bytes(SPEC, orders, plan.stage_ranks, 2, returns_outputs=False)
    assert kept[0] == first
    assert kept[1][-1] == last[-1] - 2 * MESSAGE


def test_a_wait_lets_a_sent_output_go_after_its_backward() -> None:
    plan = plan_of("1f1b", 2, 2, "compute_comms", SPEC)
    order = list(plan.program.orders(2)[0])
    at = next(i for i, action in enumerate(order) if action.kind is Kind.SEND_F)
    wait = replace(order[at], kind=Kind.WAIT_SEND_F)
    waiting = [*order[: at + 1], wait, *order[at + 1 :]]
    levels, without = (
        predicted_runtime_bytes(SPEC, [each, []], plan.stage_ranks, 2)[0]
        for each in (waiting, order)
    )
    assert levels[at + 2] == levels[at + 1]  # its backward still needs it
    assert levels[-1] == without[-1] - MESSAGE


def test_only_models_whose_products_are_listed_are_predicted() -> None:
    with pytest.raises(ValueError, match="got llama, vocabulary 0; use --model mlp"):
        stage_bytes(replace(SPEC, kind="llama"), 0, 2)
    with pytest.raises(ValueError, match="got mlp, vocabulary 8"):
        stage_bytes(replace(SPEC, vocabulary=8), 0, 2)


def test_the_watch_counts_each_storage_once_while_anything_holds_it() -> None:
    old = torch.zeros(10)
    with StorageWatch() as watch:
        assert watch.live_bytes() == 0
        made = old + 1
        view = made[2:]
        assert watch.live_bytes() == made.nbytes
        old.add_(1)  # made before, and so not counted
        assert watch.live_bytes() == made.nbytes
        del made
        assert watch.live_bytes() == 10 * view.itemsize  # the view holds all of it
        del view
        assert watch.live_bytes() == 0


def test_the_watch_sees_what_autograd_saves_and_leaves_gradients_apart() -> None:
    weight = torch.ones(4, 4, requires_grad=True)
    with StorageWatch(lambda: [weight.grad]) as watch:
        given = torch.ones(2, 4) * 2
        out = torch.tanh(given @ weight)
        del given  # the product saved it
        assert watch.live_bytes() == 2 * 4 * 4 + out.nbytes
        loss = out.sum()
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        assert watch.live_bytes() == out.nbytes + loss.nbytes
        assert weight.grad is not None
    assert StorageWatch(lambda: [weight.grad]).live_bytes() == 0


def test_a_circle_of_references_holds_nothing() -> None:
    with StorageWatch() as watch:
        circle: list[object] = [torch.zeros(8) + 1]
        circle.append(circle)
        del circle
        assert watch.live_bytes() == 0
