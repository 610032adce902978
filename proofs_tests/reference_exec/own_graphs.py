"""Users' modules whose graphs or outputs are no plain chain of linears."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from bubbleproof.reference_exec.models.own import OwnModel
from proofs_tests.reference_exec.own_models import batch_of_step, of


class Pair(nn.Module):
    """Two linears, y = b(a(x)), of which subclasses make something else."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.b(torch.sigmoid(self.a(x)))
        return y


class Checkpointed(Pair):
    """Its backward runs the forward again."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = checkpoint(super().forward, x, use_reentrant=False)
        return y


class Part(Pair):
    """Its output is half of a storage."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = super().forward(x)
        return torch.cat([y, y])[: len(x)]


class Turned(Pair):
    """Its output lies in memory column by column, and so does the gradient of its input."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        turned = x.t().contiguous().t()
        return super().forward(turned).t().contiguous().t()


class Ended(Pair):
    """Its backward needs its output, of which the linear made the storage."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x).tanh_()


class Caching(Pair):
    """It keeps an activation of its last forward."""

    seen: torch.Tensor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen = torch.softmax(self.a(x), -1)
        y: torch.Tensor = self.b(self.seen)
        return y


def _staged(*stages: Callable[[], nn.Module]) -> Callable[[], OwnModel]:
    return lambda: replace(of(*stages)(), batch=batch_of_step)


checkpointed, caching = _staged(Checkpointed, Checkpointed), _staged(Caching, Caching)
part, turned, ended = _staged(Part, Pair), _staged(Turned, Turned), _staged(Ended, Ended)
