"""The Llama-style layer: RMSNorm, SwiGLU, grouped-query attention, rotary positions.

    x' = x + Wo attention(norm(x));  x' + Wd (silu(Wg norm(x')) * Wu norm(x'))

Rotary positions turn the pair (x_i, x_{i + w/2}) of a head of width w at token t by the angle
t / 10000^(2 i / w) (Su et al., RoFormer, section 3.4.2, with Llama's pairing of halves). A slice's
first token stands after all tokens of the slices before it; keys are kept turned.

Everything but the linears is written in plain torch operations, so that what autograd saves is the
same in every version of torch. Norm weights get their gradients in B or I, linears theirs in W.
"""

from __future__ import annotations

import torch
from torch import nn

from bubbleproof.reference_exec.models.layers import DTYPES, AttentionLayer
from bubbleproof.reference_exec.models.linear import DeferredLinear, WeightGradStore
from bubbleproof.reference_exec.models.model_spec import ModelSpec

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
