"""A user's module as a rank runs it: its linears can leave their weight gradients for W.

Replaced is an ``nn.Linear`` (no subclass) that the stage calls once per forward and whose weight no
other module has. Its bias, and every other parameter, gets its gradient in B or I: for a module
without such linears I is the whole backward and W does nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import torch
from torch import nn

from bubbleproof.reference_exec.broken import BrokenProgram
from bubbleproof.reference_exec.models.attention import Prefix
from bubbleproof.reference_exec.models.linear import WeightGradStore, deferrable_product


class _Current:
    """The weight-gradient store of the forward or backward that runs, or ran last.

    In a backward too, because a checkpoint of torch runs parts of the forward again there.
    """

    store: WeightGradStore | None = None

    def begin(self, store: WeightGradStore | None) -> None:
        self.store = store


class ReplacedLinear(nn.Module):
    """x W^T + b in the place of an ``nn.Linear``, with its very parameters."""

    def __init__(self, linear: nn.Linear, current: _Current) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.weight, self.bias = linear.weight, linear.bias
        self._current = current

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        product = deferrable_product(x, self.weight, self._current.store)
        return product if self.bias is None else product + self.bias


class OwnLayer(nn.Module):
    """A user's module, the linears named in ``replaced`` replaced in it."""

    def __init__(self, module: nn.Module, replaced: Collection[str]) -> None:
        super().__init__()
        self._current = _Current()
        holder = nn.ModuleDict({"module": module})
        for name in replaced:
            path = f"module.{name}".rstrip(".")
            parent, _, last = path.rpartition(".")
            linear, owner = holder.get_submodule(path), holder.get_submodule(parent)
            assert isinstance(linear, nn.Linear)
            owner.add_module(last, ReplacedLinear(linear, self._current))
        self.module = holder["module"]

    def forward(
        self, x: torch.Tensor, store: WeightGradStore | None, prefix: Prefix | None = None
    ) -> torch.Tensor:
        if prefix is not None:
            raise BrokenProgram("a user's own stage takes whole samples, got a slice")
        current = self._current
        current.begin(store)
        result: torch.Tensor = self.module(x)
        if result.requires_grad:
            result.register_hook(lambda _: current.begin(store))  # type: ignore[no-untyped-call]  # torch's stub
        return result

    def gemm_weights(self) -> list[torch.Tensor]:
        """The weights of the replaced linears, in the module's order."""
        return [m.weight for m in self.modules() if isinstance(m, ReplacedLinear)]


def replaceable(module: nn.Module, x: torch.Tensor) -> tuple[str, ...]:
    """The names of the linears in ``module`` (itself is ``""``) that can be replaced, see above.

    Runs its forward once, on ``x``.
    """
    linears = {n: m for n, m in module.named_modules() if type(m) is nn.Linear}
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
    return tuple(n for n, m in linears.items() if calls[n] == 1 and owners[id(m.weight)] == 1)
