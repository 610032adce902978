"""A user's model of two stages whose second does in a replay what the variable TROUBLE says.

It computes as ever while it is examined, before any process group is there.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import torch
import torch.distributed
from torch import nn

from bubbleproof.reference_exec.models.own import OwnModel


class Troubled(nn.Module):
    """A linear stage that tells a file that it has been reached, and does what is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if torch.distributed.is_initialized():
            Path(os.environ["REACHED"]).touch()
            trouble(os.environ["TROUBLE"])
        output: torch.Tensor = self.linear(x)
        return output


def trouble(kind: str) -> None:
    if kind == "raises":
        raise RuntimeError("no luck today")
    if kind == "exits":
        raise SystemExit(0)
    if kind == "leaves":
        os._exit(0)
    if kind == "waits":
        while True:
            time.sleep(0.1)


def model() -> OwnModel:
    torch.manual_seed(7)
    stages = [nn.Sequential(nn.Linear(4, 4), nn.Tanh()), Troubled()]
    data = torch.randn(8, 2, 4)
    return OwnModel(
        stages=stages,
        batch=lambda j: (data[j], data[j + 4]),
        loss=lambda y, target: ((y - target) ** 2).mean(),
    )
