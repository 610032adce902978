"""Optimizers, as every rank, host, shard and oracle of a training uses them, and what they step.

The walk over model state finds the storages that a rank and its host hold as a pass ends. Every
storage counts once, with the bytes that it has then, whoever refers to it; it belongs to what it is
met as first: weights, gradients, optimizer. Nothing is taken from shapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import torch

from bubbleproof.reference_exec.ledger import storage_key
from bubbleproof.reference_exec.plans.state_bytes import StateBytes
from bubbleproof.reference_exec.plans.training import MOMENTUM, OPTIMIZERS, Training
from bubbleproof.reference_exec.runtime.master_weights import MasterSteps

LEARNING_RATE = OPTIMIZERS["sgd"]  # without a training
ParameterTensors = Iterable[torch.Tensor]


class Descent:
    """w - LEARNING_RATE * gradient, without torch's optimizers, which take long to load."""

    def __init__(self, weights: ParameterTensors) -> None:
        self.state: Mapping[torch.Tensor, dict[str, object]] = {}
        self._weights = list(weights)

    def step(self) -> None:
        for weight in self._weights:
            if weight.grad is not None:
                weight.detach().add_(weight.grad, alpha=-LEARNING_RATE)


Optimizer = torch.optim.Optimizer | Descent | MasterSteps


def optimizer_of(training: Training | None, parameters: ParameterTensors) -> Optimizer:
    """Torch's own optimizer, one tensor at a time; plain descent without a training.

    Weights of float16 have masters in float32 (``master_weights``). Plain descent it is without
    parameters, which torch's refuse: a user's stage need not have any.
    """
    given = list(parameters)
    if training is None or not given:
        return Descent(given)
    if given[0].dtype is torch.float16:
        return MasterSteps(given, partial(_torchs, training))
    return _torchs(training, given)


def _torchs(training: Training, given: list[torch.Tensor]) -> torch.optim.Optimizer:
    if training.optimizer == "adam":
        return torch.optim.Adam(given, lr=training.rate, foreach=False)
    momentum = MOMENTUM if training.optimizer == "momentum" else 0.0
    return torch.optim.SGD(given, lr=training.rate, momentum=momentum, foreach=False)


def step_with(optimizer: Optimizer, gradients: Iterable[tuple[torch.Tensor, torch.Tensor]]) -> None:
    """Step an optimizer's weights, each with the gradient beside it, of which none stays."""
    pairs = [(_stepped(optimizer, weight), gradient) for weight, gradient in gradients]
    for weight, gradient in pairs:
        weight.grad = gradient
    optimizer.step()
    for weight, _ in pairs:
        weight.grad = None


def _stepped(optimizer: Optimizer, weight: torch.Tensor) -> torch.Tensor:
    return optimizer.stepped(weight) if isinstance(optimizer, MasterSteps) else weight


def walked(
    weights: ParameterTensors, gradients: ParameterTensors, optimizers: Iterable[Optimizer]
) -> StateBytes:
    """The bytes of the storages of all tensors given and of what the optimizers keep."""
    met: set[int] = set()
    return StateBytes(
        weights=_new_bytes(weights, met),
        gradients=_new_bytes(gradients, met),
        optimizer=_new_bytes(kept_by(optimizers), met),
    )


def kept_by(optimizers: Iterable[Optimizer]) -> Iterator[torch.Tensor]:
    """The tensors of the optimizers' states: moments, and counters of steps."""
    for optimizer in optimizers:
        for state in optimizer.state.values():
            yield from (value for value in state.values() if isinstance(value, torch.Tensor))


def _new_bytes(tensors: ParameterTensors, met: set[int]) -> int:
    total = 0
    for tensor in tensors:
        key = storage_key(tensor)
        if key not in met:
            met.add(key)
            total += tensor.untyped_storage().nbytes()
    return total
