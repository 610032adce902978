"""The layers of the ``mlp`` and of the GPT-style ``transformer``: pre-norm, residual.

``AttentionLayer`` is what the transformer's layer shares with Llama's (``llama``).
A layer is called with a ``WeightGradStore`` (see ``linear``) or, for plain torch, with ``None``.
The gradients of norms and biases are computed in B or I; W computes those of the linears alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import nn

from bubbleproof.reference_exec.models.attention import (
    Prefix,
    attend,
    future_mask,
    heads_first,
    heads_last,
)
from bubbleproof.reference_exec.models.linear import DeferredLinear, WeightGradStore
from bubbleproof.reference_exec.models.model_spec import ModelSpec

DTYPES = {"float64": torch.float64, "float32": torch.float32}


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
