"""Users' models that train a part of their parameters: frozen ones, and low-rank adapters."""

from __future__ import annotations

import torch
from torch import nn

from proofs_tests.reference_exec.own_models import Unused, linear, of


class Adapter(nn.Module):
    """A frozen linear, and beside it two trained ones of rank 2 (LoRA)."""

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(4, 4).requires_grad_(False)
        self.down, self.up = nn.Linear(4, 2, bias=False), nn.Linear(2, 4, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.base(x) + self.up(self.down(x)))


def still() -> nn.Module:
    """A linear that is not trained."""
    return linear().requires_grad_(False)


def nameless() -> nn.Module:
    """A stage without parameters."""
    return nn.Tanh()


class Severed(nn.Module):
    """The parameters are trained, and the output is cut off from them."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.linear(x)
        return y.detach()


adapted = of(Adapter, Adapter)
first = of(still, linear)  # the first stage is frozen
both_first = of(still, still, linear)
middle = of(linear, still, linear)
last = of(linear, still)
bare_first = of(nameless, linear)
whole = of(linear, linear)
deep = of(still, Adapter, still, linear)
nothing = of(still, still)
severed = of(Severed, linear)
unused = of(linear, Unused)
