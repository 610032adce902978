"""A walk over model state: the storages that a rank and its host hold as a pass ends.

Every storage counts once, with the bytes that it has then, whoever refers to it; it belongs to what
it is met as first: weights, gradients, optimizer. Nothing is taken from shapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch

from bubbleproof.reference_exec.ledger import storage_key
from bubbleproof.reference_exec.plans.state_bytes import StateBytes

Tensors = Iterable[torch.Tensor]


def walked(
    weights: Tensors, gradients: Tensors, optimizers: Iterable[torch.optim.Optimizer]
) -> StateBytes:
    """The bytes of the storages of all tensors given and of what the optimizers keep."""
    met: set[int] = set()
    return StateBytes(
        weights=_new_bytes(weights, met),
        gradients=_new_bytes(gradients, met),
        optimizer=_new_bytes(kept_by(optimizers), met),
    )


def kept_by(optimizers: Iterable[torch.optim.Optimizer]) -> Iterator[torch.Tensor]:
    """The tensors of the optimizers' states: moments, and counters of steps."""
    for optimizer in optimizers:
        for state in optimizer.state.values():
            yield from (value for value in state.values() if isinstance(value, torch.Tensor))


def _new_bytes(tensors: Tensors, met: set[int]) -> int:
    total = 0
    for tensor in tensors:
        key = storage_key(tensor)
        if key not in met:
            met.add(key)
            total += tensor.untyped_storage().nbytes()
    return total
