"""The layers of the ``mlp`` and of the GPT-style ``transformer``: pre-norm, residual; attention.

``AttentionLayer`` is what the transformer's layer shares with Llama's (``llama``): causal attention
over heads, with the keys and values of a sample's earlier slices. Heads may be *grouped*: h query
heads share g heads of keys and values, h / g each. Shapes: queries (batch x g, h / g x tokens,
width), a group's heads one below the other; keys and values (batch x g, tokens, width). With g = h
this is plain multi-head attention.

A layer is called with a ``WeightGradStore`` (see ``linear``) or, for plain torch, with ``None``.
The gradients of norms and biases are computed in B or I; W computes those of the linears alone.

What passes between two stages: a tensor row by row in a storage of its own, both ways.

A rank receives a message into such a buffer whatever the strides of the tensor that was sent, and
kernels may round otherwise on other strides. So oracles and the examination of a user's model give
each stage, and its backward, the same.

The Llama-style layer: RMSNorm, SwiGLU, grouped-query attention, rotary positions.

    x' = x + Wo attention(norm(x));  x' + Wd (silu(Wg norm(x')) * Wu norm(x'))

Rotary positions turn the pair (x_i, x_{i + w/2}) of a head of width w at token t by the angle
t / 10000^(2 i / w) (Su et al., RoFormer, section 3.4.2, with Llama's pairing of halves). A slice's
first token stands after all tokens of the slices before it; keys are kept turned.

Everything but the linears is written in plain torch operations, so that what autograd saves is the
same in every version of torch. Norm weights get their gradients in B or I, linears theirs in W.

Words in and words out: the embedding of the first stage and the head of the last.

With a ``vocabulary`` of V words the first stage turns words, integers of shape (batch, tokens),
into vectors (V, hidden); the last turns vectors into scores of words, by a norm and a linear
(V, hidden), and its loss is the cross-entropy. The embedding's gradient is computed in B or I, as
are the norm's; the head is a linear, whose gradient W computes.

*Tied*, embedding and head are one matrix (Press and Wolf, 2017). The ranks of the first and the
last stage each hold it; each step needs the sum of the two gradients, the embedding's first.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Protocol

import torch
from torch import nn
from torch.autograd.function import FunctionCtx

from bubbleproof.reference_exec.models.linear import DeferredLinear, WeightGradStore
from bubbleproof.reference_exec.models.model_spec import ModelSpec


class _Message(torch.autograd.Function):
    @staticmethod
    def forward(_: FunctionCtx, x: torch.Tensor) -> torch.Tensor:
        return x.clone(memory_format=torch.contiguous_format)

    @staticmethod
    def backward(_: FunctionCtx, *gradients: torch.Tensor) -> torch.Tensor:
        (gradient,) = gradients
        return gradient.contiguous()


def as_message(x: torch.Tensor) -> torch.Tensor:
    """The output of a stage as the next one is given it; its gradient comes back alike."""
    message: torch.Tensor = _Message.apply(x)  # type: ignore[no-untyped-call]  # torch's stub
    return message


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


EPSILON = 1e-5
ROTARY_BASE = 10000.0


class RMSNorm(nn.Module):
    """x / sqrt(mean(x^2) + EPSILON) * weight, over the last dimension."""

    def __init__(self, hidden: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(hidden, dtype=dtype))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + EPSILON)
        return (x * scale) * self.weight


def rotary_angles(sequence: int, width: int) -> torch.Tensor:
    """The angle of every token and pair, twice side by side, shape (sequence, width), float64."""
    exponents = torch.arange(0, width, 2, dtype=torch.float64) / width
    token = torch.arange(sequence, dtype=torch.float64)
    half = token[:, None] / ROTARY_BASE**exponents
    return torch.cat([half, half], dim=-1)


def turned(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    """Heads (batch, tokens, heads, width) turned by angles given as (tokens, width)."""
    first, second = x.chunk(2, dim=-1)
    crossed = torch.cat([-second, first], dim=-1)
    return x * cosine[:, None] + crossed * sine[:, None]


class LlamaLayer(AttentionLayer):
    """One Llama-style layer, see above."""

    cosine: torch.Tensor
    sine: torch.Tensor

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec, RMSNorm, spec.kv_heads)
        dtype, hidden = DTYPES[spec.dtype], spec.hidden
        self.gate = DeferredLinear(hidden, spec.inner, dtype)
        self.up = DeferredLinear(hidden, spec.inner, dtype)
        self.down = DeferredLinear(spec.inner, hidden, dtype)
        angles = rotary_angles(spec.sequence, hidden // spec.heads)
        self.register_buffer("cosine", angles.cos().to(dtype), persistent=False)
        self.register_buffer("sine", angles.sin().to(dtype), persistent=False)

    def placed(self, x: torch.Tensor, heads: int, start: int) -> torch.Tensor:
        """Every head turned by the angle of its token."""
        batch, tokens, hidden = x.shape
        rows = slice(start, start + tokens)
        parts = x.view(batch, tokens, heads, hidden // heads)
        return turned(parts, self.cosine[rows], self.sine[rows]).view(batch, tokens, hidden)

    def feed_forward(self, y: torch.Tensor, store: WeightGradStore | None) -> torch.Tensor:
        """Wd (silu(Wg y) * Wu y)."""
        inner = nn.functional.silu(self.gate(y, store)) * self.up(y, store)
        result: torch.Tensor = self.down(inner, store)
        return result


class Embedding(nn.Module):
    """Words to vectors."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        size = (spec.vocabulary, spec.hidden)
        self.weight = nn.Parameter(torch.empty(size, dtype=DTYPES[spec.dtype]))

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return nn.functional.embedding(words, self.weight)


class Head(nn.Module):
    """Vectors to scores: a norm of the model's kind and a linear."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        dtype = DTYPES[spec.dtype]
        is_llama = spec.kind == "llama"
        self.norm = (RMSNorm if is_llama else nn.LayerNorm)(spec.hidden, dtype=dtype)
        self.linear = DeferredLinear(spec.hidden, spec.vocabulary, dtype)

    def forward(self, x: torch.Tensor, store: WeightGradStore | None) -> torch.Tensor:
        scores: torch.Tensor = self.linear(self.norm(x), store)
        return scores
