"""Live activation bytes: every storage that something still needs, counted once.

A ``Ledger`` counts the storages of one rank. A ``Hold`` stands for one need of one tensor; it is
owned by whoever needs it (the autograd graph through saved-tensor hooks, the rank's root of the
graph, the weight-gradient store, a transfer) and its death is the release, so a storage counts
exactly as long as its last owner lives. Parameters and a model's constants do not count;
neither do messages, which are buffers between an action and the next, nor gradients.

The ledger is *sampled at action boundaries*, after each action: what an action allocates and frees
within itself is not seen, as it is not in the model of a schedule.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Protocol

import torch
from torch.autograd.graph import saved_tensors_hooks


class Source(Protocol):
    """Where a backward finds what its forward saved."""

    @property
    def tensor(self) -> torch.Tensor: ...


class Hold:
    """One need of one tensor; the ledger counts its storage for as long as this object lives."""

    __slots__ = ("__weakref__", "_key", "_ledger", "tensor")

    def __init__(self, ledger: Ledger, tensor: torch.Tensor) -> None:
        self.tensor = tensor.detach()  # never the graph: a graph that owns itself is never freed
        self._ledger = ledger
        self._key = ledger.acquire(tensor)

    def __del__(self) -> None:
        self._ledger.release(self._key)


class Ledger:
    """The storages held on one rank and their bytes together, ``live_bytes``."""

    def __init__(self) -> None:
        self.live_bytes = 0
        self._parameters: set[int] = set()
        self._holds: dict[int, int] = {}
        self._bytes: dict[int, int] = {}

    def exclude(self, parameters: Iterable[torch.Tensor]) -> None:
        """Do not count the storages of ``parameters``, nor move them with what they saved."""
        self._parameters.update(storage_key(p) for p in parameters)

    def acquire(self, tensor: torch.Tensor) -> int:
        """Count one more need of the tensor's storage; returns the storage's key."""
        storage = tensor.untyped_storage()
        key: int = storage._cdata
        holds = self._holds
        if key in holds:
            holds[key] += 1
            return key
        holds[key] = 1
        size = 0 if key in self._parameters else storage.nbytes()
        self._bytes[key] = size
        self.live_bytes += size
        return key

    def release(self, key: int) -> None:
        """End one need of the storage with this key."""
        holds = self._holds
        if holds[key] > 1:
            holds[key] -= 1
        else:
            del holds[key]
            self.live_bytes -= self._bytes.pop(key)

    def resized(self, tensor: torch.Tensor) -> None:
        """Count the tensor's held storage anew, after its bytes were freed or allocated again."""
        key = storage_key(tensor)
        assert key in self._holds, "a storage that nobody holds was resized"
        if key not in self._parameters:
            size = tensor.untyped_storage().nbytes()
            self.live_bytes += size - self._bytes[key]
            self._bytes[key] = size

    def is_parameter(self, tensor: torch.Tensor) -> bool:
        """Whether the tensor's storage is a parameter's."""
        return storage_key(tensor) in self._parameters

    def hooks(
        self,
        saved: list[weakref.ref[Hold]],
        lent: Callable[[torch.Tensor], Source | None] | None = None,
    ) -> saved_tensors_hooks:
        """A context in which everything autograd saves is held in this ledger by the graph.

        ``saved`` is told of each hold without owning it. Parameters need none: they do not count,
        and are not freed while the graph lives. What ``lent`` knows is not held either: the graph
        keeps where to find it again.
        """
        parameters = self._parameters

        def pack(tensor: torch.Tensor) -> Source | torch.Tensor:
            if tensor.untyped_storage()._cdata in parameters:
                return tensor
            if lent is not None and (source := lent(tensor)) is not None:
                return source
            hold = Hold(self, tensor)
            saved.append(weakref.ref(hold))
            return hold

        return saved_tensors_hooks(pack, _unpack)


def _unpack(packed: Source | torch.Tensor) -> torch.Tensor:
    return packed if isinstance(packed, torch.Tensor) else packed.tensor


def storage_key(tensor: torch.Tensor) -> int:
    """A number of the tensor's storage, its own for as long as it lives, whatever its size."""
    key: int = tensor.untyped_storage()._cdata
    return key
