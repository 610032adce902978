"""Linear layers whose weight gradient can wait.

The backward of y = x W^T is two GEMMs: dx = dy W, which the preceding stage waits for, and
dW = dy^T x, which nobody waits for. A full backward (B) does both; a split one does the first in I
and leaves the second, with its two operands, in a ``WeightGradStore`` until W, or until the part of
W that runs it (``DeferredWeight``). Either way the same kernel sees the same operands, so the
gradient has the same bits. Where a weight lies the other way round, as (inputs, outputs) with
y = x W (GPT-2's ``Conv1D``), the GEMMs are dx = dy W^T and dW = x^T dy: the same with x and dy in
each other's place.

Under autocast both see operands of its type, as torch's own linear does, and the gradient is cast
to the weight's type.

The linears of a user's module that leave their weight gradients for W.

The user's own ``nn.Linear``, or the ``Conv1D`` of transformers' GPT-2, which is one with its weight
the other way round, stays what it is, of its class, with its parameters and hooks; its
``forward`` alone is another while it is *deferred*. That can be done with a linear that the stage
calls once per forward, whose weight nothing else uses and is not frozen. It is not done where
somebody watches the weight's gradient (``register_hook``, ``register_post_accumulate_grad_hook``):
a hook is called by the backward that makes the gradient, which then is I.
"""

from __future__ import annotations

import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeGuard

import torch
from torch import nn
from torch.autograd.function import FunctionCtx

from bubbleproof.reference_exec.broken import require
from bubbleproof.reference_exec.ledger import Hold, Ledger


def weight_gradient(output_gradient: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """dW = dy^T x, shape (outputs, inputs), over all leading dimensions of both."""
    rows = output_gradient.reshape(-1, output_gradient.shape[-1])
    return rows.t() @ x.reshape(-1, x.shape[-1])


class WeightGradStore:
    """The weight-gradient GEMMs of one microbatch on one stage that I left for W."""

    def __init__(self, ledger: Ledger) -> None:
        self.is_deferring = False
        self._ledger = ledger
        self._left: list[tuple[nn.Parameter, Hold, Hold]] = []

    def put(self, weight: nn.Parameter, output_gradient: torch.Tensor, x: torch.Tensor) -> None:
        """Leave one GEMM for later and hold its operands."""
        self._left.append((weight, Hold(self._ledger, output_gradient), Hold(self._ledger, x)))

    def has(self, weight: torch.Tensor) -> bool:
        """Whether the GEMM of this weight is left."""
        return any(left[0] is weight for left in self._left)

    @torch.no_grad()
    def run(self, weights: Iterable[torch.Tensor] | None = None) -> None:
        """Do every GEMM left, or those of ``weights``; their operands are let go.

        Each product is added to its weight's gradient.
        """
        now, later = self._left, []
        if weights is not None:
            chosen = set(map(id, weights))
            now = [left for left in self._left if id(left[0]) in chosen]
            later = [left for left in self._left if id(left[0]) not in chosen]
        require(now, "a weight-gradient store ran without work")
        self._left = later
        for weight, output_gradient, x in now:
            gradient = weight_gradient(output_gradient.tensor, x.tensor).to(weight.dtype)
            if weight.grad is None:
                weight.grad = gradient
            else:
                weight.grad += gradient


class _DeferrableProduct(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: FunctionCtx,
        x: torch.Tensor,
        weight: nn.Parameter,
        store: WeightGradStore,
        inputs_first: bool,
    ) -> torch.Tensor:
        operand = _cast(weight)
        is_asked = ctx.needs_input_grad[0]  # type: ignore[attr-defined]  # absent from torch's stubs
        ctx.save_for_backward(x, *([operand] if is_asked else []))
        ctx.store, ctx.weight = store, weight  # type: ignore[attr-defined]  # torch's idiom
        ctx.inputs_first = inputs_first  # type: ignore[attr-defined]  # torch's idiom
        return _product(x, operand, inputs_first)

    @staticmethod
    def backward(
        ctx: FunctionCtx, *output_gradients: torch.Tensor
    ) -> tuple[torch.Tensor | None, torch.Tensor | None, None, None]:
        x, *operands = ctx.saved_tensors  # type: ignore[attr-defined]  # absent from torch's stubs
        store: WeightGradStore = ctx.store  # type: ignore[attr-defined]  # set in forward
        weight: nn.Parameter = ctx.weight  # type: ignore[attr-defined]  # set in forward
        inputs_first: bool = ctx.inputs_first  # type: ignore[attr-defined]  # set in forward
        (output_gradient,) = output_gradients
        factors = [operand.t() if inputs_first else operand for operand in operands]
        input_gradient = output_gradient @ factors[0] if factors else None
        pair = (x, output_gradient) if inputs_first else (output_gradient, x)
        if store.is_deferring:
            store.put(weight, *pair)
            return input_gradient, None, None, None
        return input_gradient, weight_gradient(*pair).to(weight.dtype), None, None


def _product(x: torch.Tensor, weight: torch.Tensor, inputs_first: bool) -> torch.Tensor:
    return x @ weight if inputs_first else nn.functional.linear(x, weight)


def deferrable_product(
    x: torch.Tensor,
    weight: torch.Tensor,
    store: WeightGradStore | None,
    *,
    inputs_first: bool = False,
) -> torch.Tensor:
    """x W^T, or x W where the weight has ``inputs_first``; without a store it is torch's own."""
    if store is None:
        return _product(x, weight, inputs_first)
    given = _cast(x)
    if given.dim() > 2 and given.requires_grad:
        # folded as torch folds it, which copies a part of a larger tensor and keeps the copy alone
        given = given.reshape(-1, given.shape[-1])
    product: torch.Tensor = _DeferrableProduct.apply(given, weight, store, inputs_first)  # type: ignore[no-untyped-call]  # torch's stub
    return product.reshape(*x.shape[:-1], product.shape[-1])


def _cast(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor as autocast hands it to a product: float64 and integers stay what they are."""
    kind = tensor.device.type
    if not torch.amp.is_autocast_available(kind) or tensor.dtype == torch.float64:
        return tensor
    if not torch.is_autocast_enabled(kind):
        return tensor
    return tensor.to(torch.get_autocast_dtype(kind)) if tensor.is_floating_point() else tensor


class DeferredLinear(nn.Module):
    """y = x W^T; without a store it is torch's own linear, which is what the oracles use."""

    def __init__(self, inputs: int, outputs: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs, dtype=dtype))

    def forward(self, x: torch.Tensor, store: WeightGradStore | None) -> torch.Tensor:
        return deferrable_product(x, self.weight, store)


class CurrentStore:
    """The weight-gradient store of the forward or backward that runs, or ran last.

    In a backward too, because a checkpoint of torch runs parts of the forward again there.
    """

    store: WeightGradStore | None = None

    def begin(self, store: WeightGradStore | None) -> None:
        self.store = store


def defer(linear: nn.Linear, current: CurrentStore) -> None:
    """Let a linear leave its weight gradients to whatever store is current, if one is."""
    forward = partial(
        _own_product, weakref.ref(linear), current
    )  # no circle: freed with its module
    linear.forward = forward  # type: ignore[method-assign]  # of this one alone


def is_linear(module: nn.Module) -> TypeGuard[nn.Linear]:
    """Whether a module is a linear layer as such, of no class derived from it."""
    return type(module) is nn.Linear or _has_inputs_first(module)


def _has_inputs_first(module: nn.Module) -> bool:
    """Whether it is a ``Conv1D`` of transformers, whose weight is (inputs, outputs)."""
    loaded = sys.modules.get("transformers.pytorch_utils")
    return loaded is not None and type(module) is loaded.Conv1D


def restore(linear: nn.Module) -> None:
    """Give a linear its own forward back."""
    vars(linear).pop("forward", None)


def _own_product(
    whose: weakref.ref[nn.Linear],
    current: CurrentStore,
    input: torch.Tensor,  # noqa: A002 - torch's name
) -> torch.Tensor:
    """x W^T + b, the sum in the product's type, which under autocast is not the bias's."""
    if (linear := whose()) is None:
        raise ReferenceError("the linear layer that is called is gone")
    product = deferrable_product(
        input, linear.weight, current.store, inputs_first=_has_inputs_first(linear)
    )
    return product if linear.bias is None else product + linear.bias.to(product.dtype)


def deferrable(module: nn.Module, forward: Callable[[], object]) -> tuple[str, ...]:
    """The names of the linears in ``module`` (itself is ``""``) that can be deferred, see above.

    Runs its ``forward`` once. What else uses their weights only a backward shows.
    """
    linears = {n: m for n, m in module.named_modules() if is_linear(m)}
    calls: Counter[str] = Counter()
    handles = [
        linear.register_forward_pre_hook(lambda *_, name=name: calls.update([name]))
        for name, linear in linears.items()
    ]
    forward()
    for handle in handles:
        handle.remove()
    owners = Counter(
        id(parameter) for part in module.modules() for parameter in part.parameters(recurse=False)
    )
    return tuple(
        name
        for name, linear in linears.items()
        if calls[name] == 1 and owners[id(linear.weight)] == 1 and _is_deferred(linear.weight)
    )


def _is_deferred(weight: torch.Tensor) -> bool:
    return weight.requires_grad and not is_watched(weight)


def is_watched(parameter: torch.Tensor) -> bool:
    """Whether hooks are called with its gradient, before or after it is added."""
    return bool(parameter._backward_hooks or parameter._post_accumulate_grad_hooks)


def watched(module: nn.Module) -> tuple[str, ...]:
    """The names of the parameters that hooks watch."""
    return tuple(name for name, each in module.named_parameters() if is_watched(each))


def frozen(module: nn.Module) -> tuple[str, ...]:
    """The names of the parameters that get no gradient and are never stepped."""
    return tuple(name for name, each in module.named_parameters() if not each.requires_grad)
