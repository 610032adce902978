"""Causal attention over heads, with the keys and values of a sample's earlier slices.

Heads may be *grouped*: h query heads share g heads of keys and values, h / g each. Shapes: queries
(batch x g, h / g x tokens, width), a group's heads one below the other; keys and values
(batch x g, tokens, width). With g = h this is plain multi-head attention.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Protocol

import torch


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
