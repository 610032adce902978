"""Sliced samples: the keys and values that later slices attend to, and what these send back.

Forward of slice k computes keys and values of its own and hands later slices *leaves* of the same
storages, cut off from its graph. Whatever later slices' backwards send back is summed up in the
leaves' gradients; the backward of slice k, which runs after theirs, continues with those sums into
its own graph. So slices of a sample go forth in order and back in reverse order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

Pair = tuple[torch.Tensor, torch.Tensor]


class LayerPrefix:
    """The keys and values of the slices so far in one layer (an ``attention.Prefix``)."""

    def __init__(self) -> None:
        self._blocks: list[tuple[Pair, Pair]] = []  # (in the graph, as leaves)

    @property
    def num_tokens(self) -> int:
        """The tokens of the slices that went forth and not yet back."""
        return sum(key.shape[1] for (key, _), _ in self._blocks)

    def extend(self, key: torch.Tensor, value: torch.Tensor) -> Sequence[Pair]:
        """Take in those of the next slice; return the leaves of the slices before it."""
        earlier = [leaves for _, leaves in self._blocks]
        leaves = (key.detach().requires_grad_(), value.detach().requires_grad_())
        self._blocks.append(((key, value), leaves))
        return earlier

    def sent_back(self) -> Iterator[torch.Tensor | None]:
        """The gradients that later slices have sent so far."""
        for _, leaves in self._blocks:
            yield from (leaf.grad for leaf in leaves)

    def pop(self) -> list[Pair]:
        """The last slice's keys and values, each with the gradient that later slices sent it."""
        if not self._blocks:  # a layer without attention
            return []
        ends = self._blocks.pop()
        return [(end, leaf.grad) for end, leaf in zip(*ends, strict=True) if leaf.grad is not None]


class SlicedSample:
    """One sample on one stage: how many slices went forth and not yet back, and their prefixes."""

    def __init__(self, num_layers: int) -> None:
        self.num_forwarded = 0
        self.prefixes = [LayerPrefix() for _ in range(num_layers)]

    def sent_back(self) -> Iterator[torch.Tensor | None]:
        """The gradients of keys and values that wait for their own slice's backward."""
        for prefix in self.prefixes:
            yield from prefix.sent_back()

    def pop(self) -> list[Pair]:
        """Take the last slice back: the tensors its backward starts from besides its output."""
        self.num_forwarded -= 1
        return [pair for prefix in self.prefixes for pair in prefix.pop()]
