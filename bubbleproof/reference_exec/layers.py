"""The layers of the ``mlp`` and of the GPT-style ``transformer``: pre-norm, residual.

A layer is called with a ``WeightGradStore`` (see ``linear``) or, for plain torch, with ``None``.
The gradients of norms and biases are computed in B or I; W computes those of the linears alone.
"""

from __future__ import annotations

import torch
from torch import nn

from bubbleproof.reference_exec.attention import (
    Prefix,
    attend,
    future_mask,
    heads_first,
    heads_last,
)
from bubbleproof.reference_exec.linear import DeferredLinear, WeightGradStore
from bubbleproof.reference_exec.spec import ModelSpec

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


class TransformerLayer(nn.Module):
    """x' = x + Wo attention(norm(x)); x' + W2 gelu(W1 norm(x'))."""

    mask: torch.Tensor

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        dtype, hidden = DTYPES[spec.dtype], spec.hidden
        self.heads = spec.heads
        self.norm1 = nn.LayerNorm(hidden, dtype=dtype)
        self.query = DeferredLinear(hidden, hidden, dtype)
        self.key = DeferredLinear(hidden, hidden, dtype)
        self.value = DeferredLinear(hidden, hidden, dtype)
        self.output = DeferredLinear(hidden, hidden, dtype)
        self.norm2 = nn.LayerNorm(hidden, dtype=dtype)
        self.up = DeferredLinear(hidden, spec.inner, dtype)
        self.down = DeferredLinear(spec.inner, hidden, dtype)
        self.register_buffer("mask", future_mask(spec.sequence, dtype), persistent=False)

    def _attention(
        self, x: torch.Tensor, store: WeightGradStore | None, prefix: Prefix | None = None
    ) -> torch.Tensor:
        query, key, value = (
            heads_first(linear(x, store), self.heads, self.heads)
            for linear in (self.query, self.key, self.value)
        )
        earlier = [] if prefix is None else prefix.extend(key, value)
        mixed = attend(query, key, value, self.mask, earlier)
        together = heads_last(mixed, len(x), self.heads, self.heads)
        result: torch.Tensor = self.output(together, store)
        return result

    def forward(
        self, x: torch.Tensor, store: WeightGradStore | None, prefix: Prefix | None = None
    ) -> torch.Tensor:
        x = x + self._attention(self.norm1(x), store, prefix)
        inner = nn.functional.gelu(self.up(self.norm2(x), store))
        result: torch.Tensor = x + self.down(inner, store)
        return result
