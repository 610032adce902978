"""Transfer buffers: the storages of one sample copied into one buffer, freed, and filled again.

``SampleStorages`` has every storage that a sample's autograd graph, its input and its output
need, what ``stays`` on the rank aside: ``copy_to`` copies their bytes into one
buffer, ``free`` frees them (the tensors stay, of size 0), ``allocate`` and ``fill`` bring them
back.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import torch

from bubbleproof.reference_exec.ledger import Ledger, storage_key


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
        for part, tensor in zip(self._parts(buffer), self._tensors, strict=True):
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
        for part, tensor in zip(self._parts(buffer), self._tensors, strict=True):
            _bytes_of(tensor).copy_(part, non_blocking=True)

    def _resize(self, sizes: list[int]) -> None:
        for size, tensor in zip(sizes, self._tensors, strict=True):
            tensor.untyped_storage().resize_(size)

    def _parts(self, buffer: torch.Tensor) -> list[torch.Tensor]:
        """The buffer cut into one part per storage."""
        ends = list(accumulate(self._sizes, initial=0))
        return [buffer[begin:end] for begin, end in pairwise(ends)]


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """The whole storage of a tensor as bytes, without a copy."""
    empty = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    return empty.set_(tensor.untyped_storage())
