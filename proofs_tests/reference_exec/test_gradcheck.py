"""What ranks and oracles share has the derivatives of what it computes, by differences.

A replay compares ranks with oracles that are made of the same layers and losses, so that a wrong
backward of one of these would be the same on both sides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import autograd
from torch.autograd.function import FunctionCtx

from bubbleproof.reference_exec.ledger import Ledger
from bubbleproof.reference_exec.models.layers import as_message
from bubbleproof.reference_exec.models.linear import WeightGradStore, deferrable_product
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.reference import (
    Stage,
    _SquaredError,
    cross_entropy,
    microbatch_input,
    squared_error,
)
from bubbleproof.reference_exec.runtime.sliced import _in_place_of

SPECS = {
    "mlp": ModelSpec(hidden=4, sequence=2, batch=1),
    "transformer": ModelSpec(kind="transformer", hidden=4, sequence=2, batch=1),
    "llama": ModelSpec(kind="llama", hidden=8, heads=4, kv_heads=2, sequence=2, batch=1),
}


def gradcheck(function: Callable[..., torch.Tensor], given: tuple[torch.Tensor, ...]) -> bool:
    """Whether a derivative is that of differences, to the sixth digit."""
    return autograd.gradcheck(
        function, given, rtol=1e-6, atol=1e-7, fast_mode=True, raise_exception=False
    )


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("has_store", [True, False])
@pytest.mark.parametrize("name", SPECS)
def test_stages(name: str, has_store: bool) -> None:
    module = Stage(SPECS[name], 0)
    names = [name for name, _ in module.named_parameters()]
    store = WeightGradStore(Ledger()) if has_store else None

    def run(x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        given = dict(zip(names, weights, strict=True))
        y: torch.Tensor = torch.func.functional_call(module, given, (x, store))
        return y

    weights = [weight.detach().requires_grad_() for weight in module.parameters()]
    assert gradcheck(run, (drawn(*SPECS[name].shape), *weights))


@pytest.mark.parametrize("stage", [0, 1])
@pytest.mark.parametrize("kind", ["mlp", "llama"])
def test_words_in_and_words_out(kind: str, stage: int) -> None:
    spec = replace(SPECS[kind], vocabulary=5).on(2)
    module = Stage(spec, stage)
    names = [name for name, _ in module.named_parameters()]
    x = drawn(*spec.shape) if stage else microbatch_input(spec, 0)

    def run(*weights: torch.Tensor) -> torch.Tensor:
        given = dict(zip(names, weights, strict=True))
        y: torch.Tensor = torch.func.functional_call(module, given, (x, None))
        return y

    weights = [weight.detach().requires_grad_() for weight in module.parameters()]
    assert gradcheck(run, tuple(weights))


WORDS = torch.tensor([[1, 0, 4]])
FUNCTIONS: dict[str, tuple[Callable[..., torch.Tensor], tuple[torch.Tensor, ...]]] = {
    "squared error": (
        lambda y: squared_error(y, drawn(1, 3, 4, seed=1).detach(), 0.3),
        (drawn(1, 3, 4),),
    ),
    "cross-entropy": (lambda y: cross_entropy(y, WORDS, 0.3), (drawn(1, 3, 5),)),
    "boundary": (lambda x: as_message(x.transpose(0, 1)), (drawn(3, 4),)),
    "product": (
        lambda x, w: deferrable_product(x, w, WeightGradStore(Ledger())),
        (drawn(2, 3, 4), drawn(5, 4, seed=1)),
    ),
    "keys of a slice that runs again": (lambda x: _in_place_of(x, x.detach()), (drawn(2, 3),)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    function, given = FUNCTIONS[name]
    assert gradcheck(function, given)


def test_a_wrong_derivative_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = _SquaredError.backward

    def wrong(ctx: FunctionCtx, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        return (right(ctx, *gradients)[0] * 1.001, None, None)

    monkeypatch.setattr(_SquaredError, "backward", staticmethod(wrong))
    function, given = FUNCTIONS["squared error"]
    assert not gradcheck(function, given)
