"""Sliced samples: the keys and values that later slices attend to, and what these send back.

Forward of slice k computes keys and values of its own and hands later slices *leaves* of the same
storages, cut off from its graph. Whatever later slices' backwards send back is summed up in the
leaves' gradients; the backward of slice k, which runs after theirs, continues with those sums into
its own graph. So slices of a sample go forth in order and back in reverse order.

The leaves stay on the rank from slice k's forward to its backward, also where its graph is dropped
or moved meanwhile. A forward that is run again computes them anew, to the same bits, and lets its
graph save the leaves' storages (``_InPlaceOf``), so that they are there once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch.autograd.function import FunctionCtx

from bubbleproof.reference_exec.broken import BrokenProgram

KeysAndValues = tuple[torch.Tensor, torch.Tensor]


class _InPlaceOf(torch.autograd.Function):
    """A computed tensor, its values in the storage of an equal one."""

    @staticmethod
    def forward(
        ctx: FunctionCtx, computed: torch.Tensor, equal: list[torch.Tensor]
    ) -> torch.Tensor:
        del ctx, computed
        there = equal[0]
        storage, offset = there.untyped_storage(), there.storage_offset()
        return there.new_empty(0).set_(storage, offset, there.size(), there.stride())

    @staticmethod
    def backward(ctx: FunctionCtx, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        del ctx
        return gradients[0], None


def _in_place_of(computed: torch.Tensor, leaf: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = _InPlaceOf.apply(computed, [leaf.detach()])  # type: ignore[no-untyped-call]  # torch's stub
    return result


class LayerPrefix:
    """The keys and values of the slices so far in one layer (an ``attention.Prefix``)."""

    def __init__(self) -> None:
        self._blocks: list[
            tuple[KeysAndValues | None, KeysAndValues]
        ] = []  # (in the graph, if any, and as leaves)

    @property
    def num_tokens(self) -> int:
        """The tokens of the slices that went forth and not yet back."""
        return self.tokens_before(len(self._blocks))

    def tokens_before(self, slice_: int) -> int:
        """The tokens of the slices before one."""
        return sum(key.shape[1] for _, (key, _) in self._blocks[:slice_])

    def extend(self, key: torch.Tensor, value: torch.Tensor) -> list[KeysAndValues]:
        """Take in those of the next slice; return the leaves before it, and them."""
        earlier = [leaves for _, leaves in self._blocks]
        leaves = (key.detach().requires_grad_(), value.detach().requires_grad_())
        self._blocks.append(((key, value), leaves))
        return [*earlier, (key, value)]

    def restore(self, slice_: int, key: torch.Tensor, value: torch.Tensor) -> list[KeysAndValues]:
        """Take in those of a slice that is run again; the result is that of ``extend``."""
        leaves = self._blocks[slice_][1]
        own = (_in_place_of(key, leaves[0]), _in_place_of(value, leaves[1]))
        self._blocks[slice_] = own, leaves
        return [*(leaves for _, leaves in self._blocks[:slice_]), own]

    def forget(self, slice_: int) -> None:
        """Keep no more of a slice than its leaves."""
        if self._blocks:  # a layer with attention
            self._blocks[slice_] = None, self._blocks[slice_][1]

    def leaves(self) -> Iterator[torch.Tensor]:
        """The keys and values that are here."""
        for _, leaves in self._blocks:
            yield from leaves

    def pop(self) -> list[KeysAndValues]:
        """The last slice's keys and values, each with the gradient that later slices sent it."""
        if not self._blocks:  # a layer without attention
            return []
        ends, leaves = self._blocks.pop()
        if ends is None:
            raise BrokenProgram("a backward of a slice whose graph was dropped")
        return [
            (end, leaf.grad)
            for end, leaf in zip(ends, leaves, strict=True)
            if leaf.grad is not None
        ]


@dataclass(frozen=True, slots=True)
class _Again:
    """The keys and values before a slice that is run again (an ``attention.Prefix``)."""

    prefix: LayerPrefix
    slice: int

    @property
    def num_tokens(self) -> int:
        return self.prefix.tokens_before(self.slice)

    def extend(self, key: torch.Tensor, value: torch.Tensor) -> list[KeysAndValues]:
        return self.prefix.restore(self.slice, key, value)


class SlicedSample:
    """One sample on one stage: how many slices went forth and not yet back, and their prefixes."""

    def __init__(self, num_layers: int) -> None:
        self.num_forwarded = 0
        self.prefixes = [LayerPrefix() for _ in range(num_layers)]

    def again(self, slice_: int) -> Sequence[_Again]:
        """The prefixes of a slice that is run again."""
        return [_Again(prefix, slice_) for prefix in self.prefixes]

    def forget(self, slice_: int) -> None:
        """Keep no more of a slice than its keys and values."""
        for prefix in self.prefixes:
            prefix.forget(slice_)

    def leaves(self) -> list[torch.Tensor]:
        """The keys and values of all slices that are here."""
        return [leaf for prefix in self.prefixes for leaf in prefix.leaves()]

    def sent_back(self) -> Iterator[torch.Tensor | None]:
        """The gradients of keys and values that wait for their own slice's backward."""
        yield from (leaf.grad for leaf in self.leaves())

    def pop(self) -> list[KeysAndValues]:
        """Take the last slice back: the tensors its backward starts from besides its output."""
        self.num_forwarded -= 1
        return [pair for prefix in self.prefixes for pair in prefix.pop()]
