"""Optimizers: torch's own, as every rank, host, shard and oracle of a training uses them."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from bubbleproof.reference_exec.plans.training import MOMENTUM, Training


def optimizer_of(training: Training, parameters: Iterable[torch.Tensor]) -> torch.optim.Optimizer:
    """Torch's own optimizer, one tensor at a time."""
    given = list(parameters)
    if training.optimizer == "adam":
        return torch.optim.Adam(given, lr=training.rate, foreach=False)
    momentum = MOMENTUM if training.optimizer == "momentum" else 0.0
    return torch.optim.SGD(given, lr=training.rate, momentum=momentum, foreach=False)
