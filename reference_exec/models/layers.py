"""The layers of the ``mlp`` and of the GPT-style ``transformer``: pre-norm, residual; attention.

``AttentionLayer`` is what the transformer's layer shares with Llama's (``llama``): causal attention
over heads, with the keys and values of a sample's earlier slices. Heads may be *grouped*: h query
heads share g heads of keys and values, h / g each. Shapes: queries (batch x g, h / g x tokens,
width), a group's heads one below the other; keys and values (batch x g, tokens, width). With g = h
this is plain multi-head attention.

A layer is called with a ``WeightGradStore`` (see ``linear``) or, for plain torch, with ``None``.
The gradients of norms and biases are computed in B or I; W computes those of the linears alone.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Protocol

import torch
from torch import nn

from bubbleproof.reference_exec.models.linear import DeferredLinear, WeightGradStore
from bubbleproof.reference_exec.models.model_spec import ModelSpec


class Prefix(Protocol):
    """The keys and values of one sample's earlier slices in one layer."""

    @property
    def num_tokens(self) -> int:
        """The tokens of the slices so far."""

    def extend(
        self, key: torch.Tensor, value: torch.Tensor
    ) -> Sequence[tuple[torch.Tensor, torch.Tensor]]:
        """Take in those of the next slice; return all to attend to, in order, its own last."""


def future_mask(sequence: int, dtype: torch.dtype) -> torch.Tensor:
    """Minus infinity where a token would look at a later one, shape (sequence, sequence)."""
    return torch.full((sequence, sequence), -math.inf, dtype=dtype).triu(1)


def heads_first(x: torch.Tensor, heads: int, groups: int) -> torch.Tensor:
    """(batch, tokens, heads x width) as (batch x groups, heads / groups x tokens, width)."""
    batch, tokens, hidden = x.shape
    parts = x.view(batch, tokens, groups, heads // groups, hidden // heads)
    return parts.permute(0, 2, 3, 1, 4).reshape(batch * groups, -1, hidden // heads)


def heads_last(mixed: torch.Tensor, batch: int, heads: int, groups: int) -> torch.Tensor:
    """What ``heads_first`` makes, back as (batch, tokens, heads x width)."""
    per_group, width = heads // groups, mixed.shape[-1]
    parts = mixed.view(batch, groups, per_group, -1, width).permute(0, 3, 1, 2, 4)
    return parts.reshape(batch, -1, heads * width)


def attend(
    query: torch.Tensor, mask: torch.Tensor, blocks: Sequence[tuple[torch.Tensor, torch.Tensor]]
) -> torch.Tensor:
    """softmax(query keys^T / sqrt(width)) values, over blocks of keys and values, its own last."""
    *earlier, (key, value) = blocks
    scale = query.shape[-1] ** -0.5
    length = key.shape[1]
    own_mask = mask[:length, :length].repeat(query.shape[1] // length, 1)
    own = torch.baddbmm(own_mask, query, key.transpose(1, 2), alpha=scale)
    scores = [torch.bmm(query, k.transpose(1, 2)) * scale for k, _ in earlier]
    weights = torch.softmax(torch.cat([*scores, own], dim=-1) if scores else own, dim=-1)
    values = [*(v for _, v in earlier), value]
    ends = list(accumulate((v.shape[1] for v in values), initial=0))
    shares = [weights[..., begin:end] for begin, end in pairwise(ends)]
    mixed = torch.bmm(shares[0], values[0])
    for share, v in zip(shares[1:], values[1:], strict=True):
        mixed = mixed + torch.bmm(share, v)
    return mixed


DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


class MLPLayer(nn.Module):
    """x + W2 tanh(W1 norm(x) + b1) + b2."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        dtype = DTYPES[spec.dtype]
        self.norm = nn.LayerNorm(spec.hidden, dtype=dtype)
        self.up = DeferredLinear(spec.hidden, spec.inner, dtype)
        self.up_bias = nn.Parameter(torch.empty(spec.inner, dtype=dtype))
        self.down = DeferredLinear(spec.inner, spec.hidden, dtype)
        self.down_bias = nn.Parameter(torch.empty(spec.hidden, dtype=dtype))

    def forward(
        self, x: torch.Tensor, store: WeightGradStore | None, prefix: Prefix | None = None
    ) -> torch.Tensor:
        del prefix  # no token looks at another
        inner = torch.tanh(self.up(self.norm(x), store) + self.up_bias)
        result: torch.Tensor = x + (self.down(inner, store) + self.down_bias)
        return result


class AttentionLayer(nn.Module, ABC):
    """x' = x + Wo attention(norm1(x)); x' + feed_forward(norm2(x')).

    ``norm`` makes a norm from (hidden, dtype); ``groups`` heads of keys and values serve the
    ``spec.heads`` of queries. Layers add their own linears after these.
    """

    mask: torch.Tensor

    def __init__(self, spec: ModelSpec, norm: Callable[..., nn.Module], groups: int) -> None:
        super().__init__()
        dtype, hidden = DTYPES[spec.dtype], spec.hidden
        self.heads, self.groups = spec.heads, groups
        of_groups = groups * (hidden // spec.heads)
        self.norm1 = norm(hidden, dtype=dtype)
        self.query = DeferredLinear(hidden, hidden, dtype)
        self.key = DeferredLinear(hidden, of_groups, dtype)
        self.value = DeferredLinear(hidden, of_groups, dtype)
        self.output = DeferredLinear(hidden, hidden, dtype)
        self.norm2 = norm(hidden, dtype=dtype)
        self.register_buffer("mask", future_mask(spec.sequence, dtype), persistent=False)

    @abstractmethod
    def feed_forward(self, y: torch.Tensor, store: WeightGradStore | None) -> torch.Tensor:
        """What a token makes of itself, (batch, tokens, hidden) to the same shape."""

    def placed(self, x: torch.Tensor, heads: int, start: int) -> torch.Tensor:
        """Queries or keys (batch, tokens, heads x width) with the positions of their tokens.

        ``start`` is the first token's. Here they stay as they are.
        """
        del heads, start
        return x

    def _attention(
        self, x: torch.Tensor, store: WeightGradStore | None, prefix: Prefix | None = None
    ) -> torch.Tensor:
        start = 0 if prefix is None else prefix.num_tokens
        query = self.placed(self.query(x, store), self.heads, start)
        key = self.placed(self.key(x, store), self.groups, start)
        query = heads_first(query, self.heads, self.groups)
        key = heads_first(key, self.groups, self.groups)
        value = heads_first(self.value(x, store), self.groups, self.groups)
        blocks = [(key, value)] if prefix is None else prefix.extend(key, value)
        mixed = attend(query, self.mask, blocks)
        together = heads_last(mixed, len(x), self.heads, self.groups)
        result: torch.Tensor = self.output(together, store)
        return result

    def forward(
        self, x: torch.Tensor, store: WeightGradStore | None, prefix: Prefix | None = None
    ) -> torch.Tensor:
        x = x + self._attention(self.norm1(x), store, prefix)
        return x + self.feed_forward(self.norm2(x), store)


class TransformerLayer(AttentionLayer):
    """An attention layer with W2 gelu(W1 y) for its feed-forward; tokens know no positions."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec, nn.LayerNorm, spec.heads)
        self.up = DeferredLinear(spec.hidden, spec.inner, DTYPES[spec.dtype])
        self.down = DeferredLinear(spec.inner, spec.hidden, DTYPES[spec.dtype])

    def feed_forward(self, y: torch.Tensor, store: WeightGradStore | None) -> torch.Tensor:
        result: torch.Tensor = self.down(nn.functional.gelu(self.up(y, store)), store)
        return result
