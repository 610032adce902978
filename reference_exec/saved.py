"""What autograd saves in one forward, as a need of a ``ledger``.

The graph owns an alias of each tensor that it saved, which is how a transfer finds them. What a
graph saved, with that forward's input and output, is needed while the output lives; after that a
storage counts as long as something keeps it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, Self

import torch
from torch.autograd.graph import saved_tensors_hooks

from bubbleproof.reference_exec.ledger import Ledger, storage_key


class Source(Protocol):
    """Where a backward finds what its forward saved."""

    @property
    def tensor(self) -> torch.Tensor: ...


Lender = Callable[[torch.Tensor], Source | None]


class SavedTensors:
    """What autograd saves in this context, one forward, and what that forward begins and ends with.

    What ``lent`` knows is not held: the graph keeps where to find it again.
    """

    def __init__(self, ledger: Ledger, lent: Lender | None = None) -> None:
        self._ledger = ledger
        self._aliases: list[weakref.ref[torch.Tensor]] = []
        self._output: weakref.ref[torch.Tensor] | None = None
        self._needed: set[int] = set()  # the keys of what is needed for this
        self._packed: list[torch.Tensor] = []
        self._hooks = _hooks(self._packed, ledger.excluded, lent)

    def __enter__(self) -> Self:
        self._hooks.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._hooks.__exit__(*error)
        for alias in self._packed:
            storage = alias.untyped_storage()
            if not self._ledger.excludes(storage):
                self._aliases.append(weakref.ref(alias))
                self._need(storage)
        self._packed.clear()
        self._ledger.watch(self)

    def end_with(self, output: torch.Tensor, given: torch.Tensor) -> None:
        """Say what the graph's output and input are; all is needed while the output lives.

        The owner of the output must not run the graph's backward and keep the output.
        """
        self._output = weakref.ref(output)
        self._need(output.untyped_storage())
        self._need(given.untyped_storage())
        self._ledger.watch(self)

    @property
    def num_bytes(self) -> int:
        """The bytes that this forward needs now, those that others need too included."""
        return self._ledger.bytes_of(self._needed)

    def tensors(self) -> list[torch.Tensor]:
        """The aliases that the graph still owns, in the order in which it saved them."""
        return [tensor for alias in self._aliases if (tensor := alias()) is not None]

    def settle(self) -> bool:
        """Release everything once the output is gone; False where nothing is left to release."""
        if self._output is None or self._output() is None:
            for key in self._needed:
                self._ledger.release(key)
            self._needed.clear()
        return bool(self._needed)

    def _need(self, storage: torch.UntypedStorage) -> None:
        if storage._cdata not in self._needed:
            self._needed.add(self._ledger.acquire(storage))


def _hooks(
    packed: list[torch.Tensor], excluded: Mapping[int, torch.Tensor], lent: Lender | None
) -> saved_tensors_hooks:
    """Hooks that put an alias of everything autograd saves into ``packed``, and the graph."""
    append = packed.append

    def pack(tensor: torch.Tensor) -> torch.Tensor | Source:
        base = tensor._base
        if id(tensor if base is None else base) in excluded:  # so is the weight that linear saves
            return tensor
        if lent is not None and (source := lent(tensor)) is not None:
            return source
        alias = tensor.detach()  # not the graph's own tensor: it would own itself
        append(alias)
        return alias

    return saved_tensors_hooks(pack, _unpack)


def _unpack(packed: Source | torch.Tensor) -> torch.Tensor:
    return packed if isinstance(packed, torch.Tensor) else packed.tensor


class SampleStorages:
    """The emptied storages of one sample, in the order in which autograd saved them."""

    def __init__(
        self, ledger: Ledger, tensors: Sequence[torch.Tensor], stays: Sequence[torch.Tensor] = ()
    ) -> None:
        unique = {storage_key(tensor): tensor for tensor in tensors}
        for tensor in stays:
            unique.pop(storage_key(tensor), None)
        self._tensors = [t for t in unique.values() if not ledger.excludes(t.untyped_storage())]
        self._sizes = [tensor.untyped_storage().nbytes() for tensor in self._tensors]

    @property
    def num_bytes(self) -> int:
        return sum(self._sizes)

    def copy_to(self, buffer: torch.Tensor) -> torch.Tensor:
        """Copy all bytes into a buffer of shape (num_bytes,); returns the buffer."""
        for part, tensor in zip(torch.split(buffer, self._sizes), self._tensors, strict=True):
            part.copy_(_bytes_of(tensor), non_blocking=True)
        return buffer

    def free(self) -> None:
        """Give the storages' memory back."""
        self._resize([0] * len(self._sizes))

    def allocate(self) -> None:
        """Allocate the storages again, their bytes not set yet."""
        self._resize(self._sizes)

    def fill(self, buffer: torch.Tensor) -> None:
        """Set all bytes to those that ``copy_to`` copied."""
        for part, tensor in zip(torch.split(buffer, self._sizes), self._tensors, strict=True):
            _bytes_of(tensor).copy_(part, non_blocking=True)

    def _resize(self, sizes: list[int]) -> None:
        for size, tensor in zip(sizes, self._tensors, strict=True):
            tensor.untyped_storage().resize_(size)


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """The whole storage of a tensor as bytes, without a copy."""
    empty = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    return empty.set_(tensor.untyped_storage())
