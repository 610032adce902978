"""A pipeline step on PyTorch's own runtime, for ``test_step.py``: two stages, one a rank."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import torch
from torch import distributed
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import Schedule1F1B

Microbatch = tuple[torch.Tensor, torch.Tensor]
NAMES = ("first", "second")


def model() -> torch.nn.Module:
    """The whole model, the same wherever it is made."""
    torch.manual_seed(0)
    whole = torch.nn.Sequential()
    for name in NAMES:
        whole.add_module(name, torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh()))
    return whole.double()


def batch(microbatches: int = 4) -> list[Microbatch]:
    """Inputs and targets of each microbatch."""
    draw = torch.Generator().manual_seed(1)
    return [
        (
            torch.randn(2, 8, generator=draw, dtype=torch.float64),
            torch.randn(2, 8, generator=draw, dtype=torch.float64),
        )
        for _ in range(microbatches)
    ]


@cache
def _schedule(whole: torch.nn.Module, rank: int, microbatches: int) -> Schedule1F1B:
    """Made once: where each step made its own, torch 2.13 held 640 bytes more after each."""
    part = whole.get_submodule(NAMES[rank])
    stage = PipelineStage(part, rank, len(NAMES), torch.device("cpu"))
    return Schedule1F1B(stage, microbatches, loss_fn=torch.nn.functional.mse_loss)


def step(whole: torch.nn.Module, given: Sequence[Microbatch]) -> list[torch.Tensor]:
    """One step: this rank's stage alone computes, the others' parameters get no gradient."""
    rank = distributed.get_rank()
    schedule = _schedule(whole, rank, len(given))
    losses: list[torch.Tensor] = []
    if rank == 0:
        schedule.step(torch.cat([inputs for inputs, _ in given]))
    else:
        schedule.step(target=torch.cat([target for _, target in given]), losses=losses)
    return losses
