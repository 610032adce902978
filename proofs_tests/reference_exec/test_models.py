"""The reference models compute what they say, and a split backward has the bits of a full one."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bubbleproof.reference_exec.broken import BrokenProgram
from bubbleproof.reference_exec.ledger import Ledger
from bubbleproof.reference_exec.models.layers import TransformerLayer
from bubbleproof.reference_exec.models.linear import DeferredLinear, WeightGradStore
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.reference import (
    Stage,
    microbatch_input,
    microbatch_loss,
    microbatch_target,
    squared_error,
)

SPECS = [
    ModelSpec(kind=kind, dtype=dtype, layers=2)
    for kind in ("mlp", "transformer", "llama")
    for dtype in ("float64", "float32")
]


def backward(
    stage: Stage, spec: ModelSpec, store: WeightGradStore | None
) -> dict[str, torch.Tensor | None]:
    """Gradients of one microbatch on a fresh copy of ``stage``, input gradient under ``x``."""
    stage.zero_grad(set_to_none=True)
    x = microbatch_input(spec, 0).requires_grad_()
    stage(x, store).backward(microbatch_target(spec, 0))
    return {"x": x.grad, **{name: p.grad for name, p in stage.named_parameters()}}


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_full_and_split_backwards_have_the_bits_of_plain_torch(spec: ModelSpec) -> None:
    stage = Stage(spec, 0)
    plain = backward(stage, spec, None)
    full = backward(stage, spec, WeightGradStore(Ledger()))
    store = WeightGradStore(Ledger())
    store.is_deferring = True
    after_input = backward(stage, spec, store)
    for name, expected in plain.items():
        assert expected is not None
        assert torch.equal(full[name], expected), name  # type: ignore[arg-type]  # None would not be equal
        deferred = name in stage.gemms()
        assert (after_input[name] is None) == deferred, name
    store.run()
    for name, parameter in stage.named_parameters():
        assert torch.equal(parameter.grad, plain[name]), name  # type: ignore[arg-type]  # likewise


def test_a_store_adds_to_what_is_there_and_runs_once() -> None:
    linear, x = DeferredLinear(3, 2, torch.float64), torch.ones(4, 3, dtype=torch.float64)
    with torch.no_grad():
        linear.weight.fill_(1.0)
    linear.weight.grad = torch.full((2, 3), 10.0, dtype=torch.float64)
    store = WeightGradStore(Ledger())
    store.is_deferring = True
    linear(x.requires_grad_(), store).sum().backward()
    store.run()
    # dW = sum over 4 rows of 1 * 1 = 4, on top of 10
    assert linear.weight.grad.tolist() == [[14.0] * 3] * 2
    with pytest.raises(BrokenProgram, match="without work"):
        store.run()


def test_weights_and_data_follow_from_the_seed() -> None:
    spec = ModelSpec(kind="transformer")

    def weight(of: ModelSpec, stage: int) -> torch.Tensor:
        return Stage(of, stage).get_parameter("layers.0.up.weight")

    assert torch.equal(weight(spec, 1), weight(spec, 1))
    assert not torch.equal(weight(spec, 1), weight(spec, 2))
    assert not torch.equal(weight(spec, 1), weight(replace(spec, seed=1), 1))
    first = [weight(replace(spec, seed=seed), 0)[0, 0].item() for seed in range(100)]
    assert len(set(first)) == 100
    rounded = replace(spec, dtype="float32")
    assert torch.equal(weight(rounded, 1), weight(spec, 1).float())
    assert not torch.equal(microbatch_input(spec, 0), microbatch_input(spec, 1))
    assert not torch.equal(microbatch_input(spec, 0), microbatch_target(spec, 0))


def test_attention_is_torchs_own_causal_attention() -> None:
    spec = ModelSpec(kind="transformer", hidden=8, heads=2, sequence=5, batch=3)
    layer = Stage(spec, 0).layers[0]
    assert isinstance(layer, TransformerLayer)
    x = microbatch_input(spec, 0)
    query, key, value = (
        linear(x, None).view(3, 5, 2, 4).transpose(1, 2)
        for linear in (layer.query, layer.key, layer.value)
    )
    mixed = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    expected = layer.output(mixed.transpose(1, 2).reshape(3, 5, 8), None)
    assert torch.allclose(layer._attention(x, None), expected, rtol=0, atol=1e-14)


def test_a_later_token_changes_no_earlier_output() -> None:
    spec = ModelSpec(kind="transformer", layers=2)
    x = microbatch_input(spec, 0)
    changed = x.clone()
    changed[:, 2] += 1
    before, after = Stage(spec, 0)(x, None), Stage(spec, 0)(changed, None)
    assert torch.equal(before[:, :2], after[:, :2])
    assert not torch.equal(before[:, 2:], after[:, 2:])


def test_microbatch_losses_add_up_to_the_mean_over_the_batch() -> None:
    spec = ModelSpec()
    y = [microbatch_input(spec, j) for j in range(3)]
    target = [microbatch_target(spec, j) for j in range(3)]
    total = sum(microbatch_loss(spec, a, b, 3).item() for a, b in zip(y, target, strict=True))
    mean = (torch.cat(y) - torch.cat(target)).square().mean().item() / 2
    assert total == pytest.approx(mean, rel=1e-14)


def test_derivatives_agree_with_finite_differences() -> None:
    spec = ModelSpec(kind="transformer", hidden=4, heads=2, sequence=2, batch=1)
    x = microbatch_input(spec, 0).requires_grad_()
    target = microbatch_target(spec, 0)
    stage = Stage(spec, 0)
    store = WeightGradStore(Ledger())

    def loss(x: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
        return squared_error(stage(x, store), target, 0.7)

    assert torch.autograd.gradcheck(loss, (x, *stage.parameters()))
