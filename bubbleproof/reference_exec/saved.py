"""Live activation bytes: every storage that something still needs, counted once.

A ``Ledger`` counts the storages of one rank. A need of storages is either

- a ``Hold`` of one tensor, owned by whoever needs it (the weight-gradient store, a transfer, a
  buffer), whose death is the release; or
- ``SavedTensors``: what the autograd graph of one forward saved, with that forward's input and
  output. The graph owns an alias of each tensor that it saved; a storage is released when its
  aliases have died, as the backward lets them go or with the graph.

So a storage counts exactly as long as its last owner lives. Parameters and a model's constants do
not count; neither do messages, which are buffers between an action and the next, nor gradients.

The ledger is *sampled at action boundaries*, after each action: what an action allocates and frees
within itself is not seen, as it is not in the model of a schedule. So the aliases of a graph need
not tell of their deaths one by one, which would cost each of them some microseconds: the ledger
looks for them when it is read.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Protocol, Self

import torch
from torch.autograd.graph import saved_tensors_hooks


class Source(Protocol):
    """Where a backward finds what its forward saved."""

    @property
    def tensor(self) -> torch.Tensor: ...


Lender = Callable[[torch.Tensor], Source | None]


class Hold:
    """One need of one tensor; the ledger counts its storage for as long as this object lives."""

    __slots__ = ("_key", "_ledger", "tensor")

    def __init__(self, ledger: Ledger, tensor: torch.Tensor) -> None:
        self.tensor = tensor.detach()  # never the graph: a graph that owns itself is never freed
        self._ledger = ledger
        self._key = ledger.acquire(tensor.untyped_storage())

    def __del__(self) -> None:
        self._ledger.release(self._key)


class SavedTensors:
    """What autograd saves in this context, one forward, and what that forward begins and ends with.

    What ``lent`` knows is not held: the graph keeps where to find it again.
    """

    def __init__(self, ledger: Ledger, lent: Lender | None = None) -> None:
        self._ledger = ledger
        self._aliases: list[tuple[weakref.ref[torch.Tensor], int]] = []  # with their storages' keys
        self._ends: set[int] = set()  # the keys of the output's storage and the input's
        self._output: weakref.ref[torch.Tensor] | None = None
        self._needed: set[int] = set()  # the keys counted for this
        self._packed: list[torch.Tensor] = []
        self._hooks = _hooks(self._packed, ledger.excluded, lent)

    def __enter__(self) -> Self:
        self._hooks.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._hooks.__exit__(kind, error, trace)
        excluded, aliases, needed = self._ledger.excluded_keys, self._aliases, self._needed
        for alias in self._packed:
            storage = alias.untyped_storage()
            key: int = storage._cdata
            if key not in excluded:
                aliases.append((weakref.ref(alias), key))
                if key not in needed:
                    needed.add(self._ledger.acquire(storage))
        self._packed.clear()
        self._ledger.watch(self)

    def end_with(self, output: torch.Tensor, given: torch.Tensor) -> None:
        """Say what the graph's output and input are, which are needed while the output lives.

        The owner of the output must not run the graph's backward and keep the output.
        """
        self._output = weakref.ref(output)
        for tensor in (output, given):
            storage = tensor.untyped_storage()
            self._ends.add(storage._cdata)
            if storage._cdata not in self._needed:
                self._needed.add(self._ledger.acquire(storage))
        self._ledger.watch(self)

    def tensors(self) -> list[torch.Tensor]:
        """The aliases that the graph still owns, in the order in which it saved them."""
        return [tensor for alias, _ in self._aliases if (tensor := alias()) is not None]

    def settle(self) -> bool:
        """Release what the graph has let go; False where nothing is left to release."""
        if self._output is None or self._output() is None:
            self._look()
        return bool(self._needed)

    def settle_storage(self, key: int) -> None:
        """Release the storage of a key if the graph has let it go."""
        if key in self._needed:
            self._look()

    def _look(self) -> None:
        self._aliases = [pair for pair in self._aliases if pair[0]() is not None]
        needed = {key for _, key in self._aliases}
        if self._output is not None and self._output() is not None:
            needed |= self._ends
        for key in self._needed - needed:
            self._ledger.release(key)
        self._needed = needed


class Ledger:
    """The storages held on one rank and their bytes together, ``live_bytes``."""

    def __init__(self) -> None:
        self.excluded: dict[int, torch.Tensor] = {}  # by id
        self.excluded_keys: set[int] = set()
        self._live_bytes = 0
        self._needs: dict[int, int] = {}
        self._bytes: dict[int, int] = {}
        self._watched: list[SavedTensors] = []

    @property
    def live_bytes(self) -> int:
        """The bytes of all storages that are needed now."""
        self._watched = [saved for saved in self._watched if saved.settle()]
        return self._live_bytes

    def exclude(self, parameters: Iterable[torch.Tensor]) -> None:
        """Do not count the storages of ``parameters``, nor move them with what they saved."""
        for parameter in parameters:
            self.excluded[id(parameter)] = parameter
            self.excluded_keys.add(storage_key(parameter))

    def excludes(self, storage: torch.UntypedStorage) -> bool:
        """Whether the storage is a parameter's."""
        return storage._cdata in self.excluded_keys

    def watch(self, saved: SavedTensors) -> None:
        """Look for what a graph lets go from now on."""
        if saved not in self._watched:
            self._watched.append(saved)

    def acquire(self, storage: torch.UntypedStorage) -> int:
        """Count one more need of a storage; returns the storage's key."""
        key: int = storage._cdata
        needs = self._needs
        if key in needs:  # by the same storage, or by one that died and had its place
            for saved in self._watched:
                saved.settle_storage(key)
        if key in needs:
            needs[key] += 1
            return key
        needs[key] = 1
        size = 0 if key in self.excluded_keys else storage.nbytes()
        self._bytes[key] = size
        self._live_bytes += size
        return key

    def release(self, key: int) -> None:
        """End one need of the storage with this key."""
        needs = self._needs
        if needs[key] > 1:
            needs[key] -= 1
        else:
            del needs[key]
            self._live_bytes -= self._bytes.pop(key)

    def resized(self, tensor: torch.Tensor) -> None:
        """Count the tensor's held storage anew, after its bytes were freed or allocated again."""
        key = storage_key(tensor)
        assert key in self._needs, "a storage that nobody holds was resized"
        if key not in self.excluded_keys:
            size = tensor.untyped_storage().nbytes()
            self._live_bytes += size - self._bytes[key]
            self._bytes[key] = size


def storage_key(tensor: torch.Tensor) -> int:
    """A number of the tensor's storage, its own for as long as it lives, whatever its size."""
    key: int = tensor.untyped_storage()._cdata
    return key


def _hooks(
    packed: list[torch.Tensor], excluded: Mapping[int, torch.Tensor], lent: Lender | None
) -> saved_tensors_hooks:
    """Hooks that put an alias of everything autograd saves into ``packed``, and the graph."""
    append = packed.append

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        base = tensor._base
        if id(tensor if base is None else base) in excluded:  # so is the weight that linear saves
            return tensor
        alias = tensor.detach()  # not the graph's own tensor: it would own itself
        append(alias)
        return alias

    if lent is None:
        return saved_tensors_hooks(pack, _itself)

    def lend(tensor: torch.Tensor) -> Source | torch.Tensor:
        source = lent(tensor)
        return pack(tensor) if source is None else source

    return saved_tensors_hooks(lend, _unpack)


def _itself(alias: torch.Tensor) -> torch.Tensor:
    return alias


def _unpack(packed: Source | torch.Tensor) -> torch.Tensor:
    return packed if isinstance(packed, torch.Tensor) else packed.tensor
