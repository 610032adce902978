"""Optimizers, as every rank, host, shard and oracle of a training uses them, and what they step.

The walk over model state finds the storages that a rank and its host hold as a pass ends. Every
storage counts once, with the bytes that it has then, whoever refers to it; it belongs to what it is
met as first: weights, gradients, optimizer. Nothing is taken from shapes.

What a rank does about a scaled loss: what its backward begins with, and what a STEP takes.

The rule is ``plans.training``. A backward of the last stage begins with S where torch's own would
begin with 1. A STEP takes gradients that are divided by S: in float32 where they are of float16, in
their own type otherwise. Whether all are finite every rank tells before the STEPs, with its norms
where gradients are clipped (``updates``), so that all ranks skip the same steps and have the same
scale.

Master weights: an optimizer of float16 weights steps copies of them in float32.

What a step adds to a weight is often less than the last bit of float16, and the square of a small
gradient is 0 there. So torch's optimizer keeps its weights and its moments in float32, takes
gradients in float32, and the weights of the model are the masters rounded to float16 after each
step (Micikevicius et al., "Mixed precision training", ICLR 2018, section 3.1). Masters are made at
the first step that is taken, of the weights that are there then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

import torch

from bubbleproof.reference_exec.ledger import storage_key
from bubbleproof.reference_exec.plans.state_bytes import StateBytes
from bubbleproof.reference_exec.plans.training import MOMENTUM, OPTIMIZERS, LossScale, Training


class MasterSteps:
    """Weights of float16 with their masters, and the optimizer of these, which ``make`` makes."""

    def __init__(
        self,
        weights: Iterable[torch.Tensor],
        make: Callable[[list[torch.Tensor]], torch.optim.Optimizer],
    ) -> None:
        self._weights, self._make = list(weights), make
        self._masters: dict[int, torch.Tensor] = {}  # by the id of the weight
        self._inner: torch.optim.Optimizer | None = None

    @property
    def state(self) -> Mapping[torch.Tensor, Mapping[str, object]]:
        """The master of each weight, and the moments of it; nothing before the first step."""
        if self._inner is None:
            return {}
        masters = {weight: self._masters[id(weight)] for weight in self._weights}
        inner = self._inner.state
        return {w: {"master": m, **inner.get(m, {})} for w, m in masters.items()}

    def stepped(self, weight: torch.Tensor) -> torch.Tensor:
        """The tensor that is stepped in the place of a weight."""
        self._made()
        return self._masters[id(weight)]

    def step(self) -> None:
        """Step the masters, which have their gradients, and round them to the weights."""
        self._made().step()
        for weight in self._weights:
            weight.detach().copy_(self._masters[id(weight)])

    def _made(self) -> torch.optim.Optimizer:
        """The optimizer of the masters, which are made with it, of the weights as they are."""
        if self._inner is None:
            self._masters = {id(each): each.detach().float() for each in self._weights}
            self._inner = self._make(list(self._masters.values()))
        return self._inner


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

    Weights of float16 have masters in float32 (``MasterSteps``). Plain descent it is without
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


def first_gradient(root: torch.Tensor, scale: LossScale | None) -> torch.Tensor | None:
    """What the backward of a loss begins with; None is torch's own 1."""
    if scale is None:
        return None
    return torch.full_like(root, scale.value, dtype=torch.float64).to(root)  # infinite if too large


def unscaled(gradient: torch.Tensor, scale: LossScale | None) -> torch.Tensor:
    """A gradient as a STEP takes it."""
    whole = gradient.float() if gradient.dtype is torch.float16 else gradient
    return whole if scale is None else whole / scale.value


def all_finite(gradients: Iterable[torch.Tensor]) -> bool:
    """Whether no gradient has an infinity or a NaN."""
    return all(bool(torch.isfinite(gradient).all()) for gradient in gradients)
