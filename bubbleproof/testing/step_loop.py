"""The step without a pipeline: what each microbatch adds to each gradient, losses, live bytes.

Live bytes are the storages that autograd saved and still holds, each once, parameters left out.
Loaded only with torch.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch.autograd.graph import saved_tensors_hooks

Gradients = dict[str, torch.Tensor]
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
Microbatch = tuple[torch.Tensor, torch.Tensor]  # input and target


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopStep:
    """``parts[j]`` are the gradients of microbatch j alone, ``losses[j]`` its loss."""

    parts: tuple[Gradients, ...]
    losses: tuple[float, ...]
    peak: int

    def total(self, scale: float) -> Gradients:
        """The sum of all microbatches, times ``scale``; in their order, as a loop adds them."""
        found: Gradients = {}
        for part in self.parts:
            for name, gradient in part.items():
                found[name] = found[name] + gradient if name in found else gradient.clone()
        return {name: gradient * scale for name, gradient in found.items()}


@dataclass(slots=True, kw_only=True)
class LiveBytes:
    """What autograd holds now and held at most, while ``hooks`` are entered."""

    excluded: frozenset[int]
    now: int = 0
    peak: int = 0
    _users: Counter[int] = field(default_factory=Counter)

    def hooks(self) -> saved_tensors_hooks:
        """Counts what is saved in its context, for as long as it lives."""
        return saved_tensors_hooks(self._pack, lambda held: held.tensor)

    def _pack(self, tensor: torch.Tensor) -> _HeldTensor:
        held = _HeldTensor(tensor)
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key not in self.excluded:
            if not self._users[key]:
                self.now += size
                self.peak = max(self.peak, self.now)
            self._users[key] += 1
            weakref.finalize(held, self._release, key, size)
        return held

    def _release(self, key: int, size: int) -> None:
        self._users[key] -= 1
        if not self._users[key]:
            self.now -= size


class _HeldTensor:
    """A saved tensor, for as long as autograd needs it."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor


def live_bytes(model: torch.nn.Module) -> LiveBytes:
    """Counts what is saved beside the model's own parameters."""
    own = frozenset(each.untyped_storage()._cdata for each in model.parameters())
    return LiveBytes(excluded=own)


def loop_step(model: torch.nn.Module, batch: Sequence[Microbatch], loss: Loss) -> LoopStep:
    """Forward and backward of each microbatch by itself; the model's gradients end as None."""
    counted, parts, losses = live_bytes(model), [], []
    for given, target in batch:
        model.zero_grad(set_to_none=True)
        with counted.hooks():
            value = loss(model(given), target)
        value.backward()  # type: ignore[no-untyped-call]  # torch's
        losses.append(float(value.detach()))
        parts.append({n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None})
    model.zero_grad(set_to_none=True)
    return LoopStep(parts=tuple(parts), losses=tuple(losses), peak=counted.peak)
