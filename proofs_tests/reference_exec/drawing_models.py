"""Users' models that draw random numbers: dropout, noise, and generators that are foreign."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from proofs_tests.reference_exec.own_models import linear, of

FOREIGN = np.random.default_rng(1)


class Dropping(nn.Module):
    """A linear with dropout before and behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.u, self.drop = nn.Linear(4, 4), nn.Dropout(0.4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.drop(torch.tanh(self.u(self.drop(x)))) + x
        return y


class Checkpointed(Dropping):
    """The same, run again in the backward by torch's own checkpoint."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = checkpoint(super().forward, x, use_reentrant=False)
        return y


class Noisy(Dropping):
    """Noise of many numbers, which torch draws in the tensor's own type."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + torch.randn(40, dtype=x.dtype)[: x.shape[-1]]


class Foreign(Dropping):
    """Noise of NumPy's."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) * float(FOREIGN.uniform(1, 2))


class _DrawsBack(torch.autograd.Function):
    @staticmethod
    def forward(_: object, x: torch.Tensor) -> torch.Tensor:
        return x * 1

    @staticmethod
    def backward(_: object, *gradients: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(gradients[0], 0.4)


class Backwards(Dropping):
    """Draws in its backward."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = _DrawsBack.apply(super().forward(x))  # type: ignore[no-untyped-call]  # torch's stub
        return y


dropped = of(Dropping, Dropping)
four = of(Dropping, Dropping, Dropping, Dropping)
checkpointed = of(linear, Checkpointed)
noisy = of(linear, Noisy)
foreign = of(linear, Foreign)
backwards = of(linear, Backwards)
