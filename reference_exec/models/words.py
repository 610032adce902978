"""Words in and words out: the embedding of the first stage and the head of the last.

With a ``vocabulary`` of V words the first stage turns words, integers of shape (batch, tokens),
into vectors (V, hidden); the last turns vectors into scores of words, by a norm and a linear
(V, hidden), and its loss is the cross-entropy. The embedding's gradient is computed in B or I, as
are the norm's; the head is a linear, whose gradient W computes.

*Tied*, embedding and head are one matrix (Press and Wolf, 2017). The ranks of the first and the
last stage each hold it; each step needs the sum of the two gradients, the embedding's first.
"""

from __future__ import annotations

import torch
from torch import nn

from bubbleproof.reference_exec.models.layers import DTYPES
from bubbleproof.reference_exec.models.linear import DeferredLinear, WeightGradStore
from bubbleproof.reference_exec.models.llama import RMSNorm
from bubbleproof.reference_exec.models.model_spec import ModelSpec

EMBEDDING, HEAD = "embedding.weight", "head.linear.weight"


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
