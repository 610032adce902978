"""The linears of a user's module that leave their weight gradients for W.

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
from functools import partial
from typing import TypeGuard

import torch
from torch import nn

from bubbleproof.reference_exec.models.linear import WeightGradStore, deferrable_product


class CurrentStore:
    """The weight-gradient store of the forward or backward that runs, or ran last.

    In a backward too, because a checkpoint of torch runs parts of the forward again there.
    """

    store: WeightGradStore | None = None

    def begin(self, store: WeightGradStore | None) -> None:
        self.store = store


def defer(linear: nn.Linear, current: CurrentStore) -> None:
    """Let a linear leave its weight gradients to whatever store is current, if one is."""
    forward = partial(_product, weakref.ref(linear), current)  # no circle: freed with its module
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


def _product(
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


def deferrable(module: nn.Module, x: torch.Tensor) -> tuple[str, ...]:
    """The names of the linears in ``module`` (itself is ``""``) that can be deferred, see above.

    Runs its forward once, on ``x``. What else uses their weights only a backward shows.
    """
    linears = {n: m for n, m in module.named_modules() if is_linear(m)}
    calls: Counter[str] = Counter()
    handles = [
        linear.register_forward_pre_hook(lambda *_, name=name: calls.update([name]))
        for name, linear in linears.items()
    ]
    module(x)
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
