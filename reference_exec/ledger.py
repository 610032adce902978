"""Live bytes: every storage that a rank really holds between actions, counted once.

A ``Ledger`` follows the storages of one rank themselves, not the tensors that show them: a storage
counts for as long as it lives, whoever keeps it. It comes to know of one in two ways:

- something *needs* it: a ``Hold`` of one tensor (the weight-gradient store, a transfer, a buffer),
  or the graph of a forward with its input and output (``saved``). That names what the bytes of a
  model are made of;
- it was *found*, as a tensor that an action made and that lives on after it (``births``). That is
  what a graph does not tell of: what is kept aside, on a context, in a list, by a hook.

Not counted are parameters and a model's constants (``exclude``), at the size that they had then;
results (``set_apart``); and, for as long as its owner has it, what the rank keeps ``elsewhere``:
gradients, messages, optimizer state. Of these two a tensor stands for the bytes that it shows: what
its storage has beyond them counts. An old tensor may grow, or show another storage than it did: the
tensors that it is told to ``follow`` are looked at again at each reading. An excluded storage that
takes what an action has made counts whole (``take``).

The ledger is *read at action boundaries*: what an action allocates and frees within itself is not
seen, as it is not in the model of a schedule. Every storage has the bytes that it has then, not
those with which it became known.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Protocol

import torch
from torch.multiprocessing.reductions import StorageWeakRef

Keys = Iterable[int]
Tensors = Iterable[torch.Tensor | None]


class StorageHolder(Protocol):
    """What holds storages until it says that it does not."""

    def settle(self) -> bool:
        """Release what is not needed any more; False where nothing is left to release."""


class Hold:
    """One need of one tensor; its storage is needed for as long as this object lives."""

    __slots__ = ("_key", "_ledger", "tensor")

    def __init__(self, ledger: Ledger, tensor: torch.Tensor) -> None:
        self.tensor = tensor.detach()  # never the graph: a graph that owns itself is never freed
        self._ledger = ledger
        self._key = ledger.acquire(tensor.untyped_storage())

    def __del__(self) -> None:
        self._ledger.release(self._key)


class Ledger:
    """The storages held on one rank and their bytes together, ``live_bytes``.

    ``elsewhere`` are functions that give tensors that are counted elsewhere or not at all, cheap
    ones first, ``others`` those that give the keys of storages of which that is true whole.
    ``forgiven_bytes`` of what nothing needs do not count: a user's model may keep something of its
    last forward (``examined``).
    """

    def __init__(self) -> None:
        self.excluded: dict[int, torch.Tensor] = {}  # by id
        self._at_first: dict[int, tuple[StorageWeakRef, int]] = {}  # what is excluded, its bytes
        self._grown: set[int] = set()  # of these
        self._followed: list[weakref.ref[torch.Tensor]] = []
        self.elsewhere: list[Callable[[], Tensors]] = []
        self.others: list[Callable[[], Keys]] = []
        self.forgiven_bytes = 0
        self._needs: dict[int, int] = {}
        self._refs: dict[int, StorageWeakRef] = {}  # while one is kept its key is nobody else's
        self._loose: set[int] = set()  # known, not needed, not seen dead yet
        self._graphs: list[StorageHolder] = []
        self._collected: set[int] = set()  # loose, and no garbage when it was looked at
        self._has_garbage = True  # until a look finds none

    @property
    def live_bytes(self) -> int:
        """The bytes of all storages that the rank holds now."""
        unneeded = self.unneeded_bytes()
        return self.needed_bytes + max(unneeded - self.forgiven_bytes, 0)

    @property
    def needed_bytes(self) -> int:
        """The bytes of what something needs."""
        self._graphs = [graph for graph in self._graphs if graph.settle()]
        refs = self._refs
        return sum_of_bytes([refs[key] for key in self._needs])

    def unneeded_bytes(self) -> int:
        """The bytes of what lives though nothing that the ledger was told of needs it."""
        self._graphs = [graph for graph in self._graphs if graph.settle()]
        self.find(t.untyped_storage() for ref in self._followed if (t := ref()) is not None)
        if not (left := self._unneeded()):
            return self._growth()
        if self._has_garbage:  # a circle of references is no owner, and dies when it is found
            gc.collect()
            before, left = left, self._unneeded()
            self._has_garbage = not before.keys() <= left.keys()
        elif not left.keys() <= self._collected:
            gc.collect(1)  # takes less long
            left = self._unneeded()
        self._collected |= left.keys()
        return sum(left.values()) + self._growth()

    def needed_keys(self) -> Keys:
        """The keys of the storages that something needs."""
        return self._needs.keys()

    def bytes_of(self, keys: Keys) -> int:
        """The bytes of those of the storages that something needs."""
        refs, needs = self._refs, self._needs
        return sum_of_bytes([refs[key] for key in keys if key in needs])

    def exclude(self, parameters: Iterable[torch.Tensor]) -> None:
        """Do not count the storages of ``parameters``, nor move them with what they saved."""
        given = {id(parameter): parameter for parameter in parameters}
        self.excluded |= given
        self.exclude_storages(parameter.untyped_storage() for parameter in given.values())

    def exclude_storages(self, storages: Iterable[torch.UntypedStorage]) -> None:
        """Do not count these either, but what they grow; not what has their places once dead."""
        for storage in storages:
            ref = StorageWeakRef(storage)  # type: ignore[no-untyped-call]  # torch's stub
            self._at_first[storage._cdata] = ref, storage.nbytes()

    def exclude_refs(self, refs: Iterable[StorageWeakRef]) -> None:
        """The same of those that live of the storages that are meant."""
        sizes = ((ref, bytes_of(ref)) for ref in refs)
        self._at_first |= {ref.cdata: (ref, size) for ref, size in sizes if size}

    def set_apart(self, tensor: torch.Tensor) -> None:
        """Do not count what a tensor shows, but what its storage has beyond that.

        A storage that the ledger knows goes on counting.
        """
        storage = tensor.untyped_storage()
        if storage._cdata not in self._refs:
            ref = StorageWeakRef(storage)  # type: ignore[no-untyped-call]  # torch's stub
            self._at_first[storage._cdata] = ref, tensor.nbytes
            self.find([storage])

    def take(self, storage: torch.UntypedStorage) -> None:
        """Count the whole of a storage, which was excluded until an action wrote into it."""
        key: int = storage._cdata
        if key in self._at_first:
            self._at_first[key] = self._at_first[key][0], 0
        self.find([storage])

    def excludes(self, storage: torch.UntypedStorage) -> bool:
        """Whether the storage is a parameter's."""
        return storage._cdata in self._at_first

    def follow(self, tensors: Iterable[torch.Tensor]) -> None:
        """Find, at each reading, what these show then; they may die."""
        self._followed += map(weakref.ref, tensors)

    def watch(self, graph: StorageHolder) -> None:
        """Ask a graph, whenever the ledger is read, what it needs no more."""
        if graph not in self._graphs:
            self._graphs.append(graph)

    def find(self, storages: Iterable[torch.UntypedStorage]) -> None:
        """Follow storages that live, whether or not something is known to need them."""
        for storage in storages:
            key: int = storage._cdata
            if (first := self._at_first.get(key)) is not None:
                if storage.nbytes() > first[1]:
                    self._grown.add(key)
            elif key not in self._refs:
                self._refs[key] = StorageWeakRef(storage)  # type: ignore[no-untyped-call]  # torch's stub
                self._loose.add(key)

    def acquire(self, storage: torch.UntypedStorage) -> int:
        """Count one more need of a storage; returns the storage's key."""
        key: int = storage._cdata
        if key in self._at_first:
            return key
        needs = self._needs
        if key in needs:
            needs[key] += 1
            return key
        needs[key] = 1
        if key in self._loose:
            self._loose.remove(key)
        else:
            self._refs[key] = StorageWeakRef(storage)  # type: ignore[no-untyped-call]  # torch's stub
        return key

    def release(self, key: int) -> None:
        """End one need of the storage with this key."""
        if key in self._at_first:
            return
        needs = self._needs
        if needs[key] > 1:
            needs[key] -= 1
        else:
            del needs[key]
            self._loose.add(key)

    def _growth(self) -> int:
        """The bytes by which what is excluded is larger now than it was at first."""
        found = (self._at_first[key] for key in self._grown)
        return sum(max(bytes_of(ref) - size, 0) for ref, size in found)

    def _unneeded(self) -> dict[int, int]:
        """By key the bytes of what lives, is not needed and is not elsewhere."""
        refs = self._refs
        for key in [key for key in self._loose if refs[key].expired()]:  # type: ignore[no-untyped-call]  # torch's stub
            del refs[key]
            self._loose.remove(key)
            self._collected.discard(key)
        left = set(self._loose)
        for keys in self.others:
            left.difference_update(keys())
        beyond = self._beyond(left)
        sizes = {key: bytes_of(refs[key]) for key in left}
        return {key: size for key, size in (sizes | beyond).items() if size}

    def _beyond(self, left: set[int]) -> dict[int, int]:
        """What storages have beyond the tensors elsewhere that show them; these ``left`` loses."""
        beyond: dict[int, int] = {}
        for tensor in chain.from_iterable(tensors() for tensors in self.elsewhere):
            if not left and not beyond:
                break
            if tensor is None:
                continue
            storage = tensor.untyped_storage()
            key: int = storage._cdata
            if key in left:
                left.remove(key)
                if (more := storage.nbytes() - tensor.nbytes) > 0:
                    beyond[key] = more
            elif key in beyond:
                beyond[key] -= tensor.nbytes
                if beyond[key] <= 0:
                    del beyond[key]
        return beyond


def storage_key(tensor: torch.Tensor) -> int:
    """A number of the tensor's storage, its own for as long as it lives, whatever its size."""
    key: int = tensor.untyped_storage()._cdata
    return key


def keys_of(tensors: Tensors) -> Keys:
    """The storage keys of those tensors that are there."""
    return [storage_key(tensor) for tensor in tensors if tensor is not None]


def sum_of_bytes(refs: Iterable[StorageWeakRef]) -> int:
    """The bytes that storages have now, together; in one loop, since it is read at each action."""
    storage_of, total = torch.UntypedStorage._new_with_weak_ptr, 0
    for ref in refs:
        if (storage := storage_of(ref.cdata)) is not None:
            total += storage.nbytes()
    return total


def bytes_of(ref: StorageWeakRef) -> int:
    """The bytes that a storage has now."""
    storage = torch.UntypedStorage._new_with_weak_ptr(ref.cdata)
    return 0 if storage is None else storage.nbytes()
