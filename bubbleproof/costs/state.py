"""Bytes of weights, gradients and optimizer state on one device, under ZeRO 0 to 3.

Replicas share the optimizer state from level 1 on, gradients from 2, weights from 3: dense weights
among d c devices, those of experts among d c / e. A shard is the even share, a fraction of a byte
included, rounded up as a whole. What a step gathers for a while (a layer's weights under ZeRO 3) is
not state. Frozen weights have neither gradient nor optimizer state.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from bubbleproof.costs.accounting import Precision
from bubbleproof.costs.deployment import HIGHEST_ZERO, Deployment
from bubbleproof.costs.operations import Number
from bubbleproof.costs.transformer import Transformer
from bubbleproof.costs.weights import (
    Weights,
    embedding_weights,
    head_weights,
    layers_weights,
)


def bytes_per_parameter(precision: Precision, *, zero: int, replicas: Number) -> Fraction:
    """Bytes that a device holds for each weight of its part of the model.

    Parameters
    ----------
    zero
        The ZeRO level, 0 to 3.
    replicas
        How many devices share what the level shards.

    Examples
    --------
    >>> from bubbleproof.costs.accounting import PRECISIONS
    >>> bytes_per_parameter(PRECISIONS["bf16"], zero=1, replicas=4)
    Fraction(9, 1)
    """
    parts = ((precision.optimizer, 1), (precision.gradient, 2), (precision.weight, 3))
    return sum(
        (Fraction(size) / (replicas if zero >= level else 1) for size, level in parts), Fraction(0)
    )


def state_bytes(weights: Weights, at: Deployment) -> int:
    """Bytes of state of these weights on one device."""
    dense = bytes_per_parameter(at.bytes_of, zero=at.zero, replicas=at.sharers)
    experts = bytes_per_parameter(
        at.bytes_of, zero=at.zero, replicas=at.expert_replicas / (at.replicas // at.sharers)
    )
    frozen = Fraction(at.bytes_of.weight, at.sharers if at.zero == HIGHEST_ZERO else 1)
    return ceil(weights.dense * dense + weights.experts * experts + weights.frozen * frozen)


def stage_weights(
    model: Transformer,
    at: Deployment,
    *,
    layers: int,
    is_first: bool,
    is_last: bool,
    before: int | None = None,
) -> Weights:
    """The weights of a stage of so many layers on one device.

    Parameters
    ----------
    layers
        How many layers the stage has.
    is_first, is_last
        Whether the stage has the embedding, and the head.
    before
        The layers of the stages before it; None: none of the first, else all that are left.

    Returns
    -------
    Weights
        Numbers of parameters.
    """
    behind = 0 if is_first else model.layers - layers
    found = layers_weights(model, at, layers, behind if before is None else before)
    if is_first:
        found += embedding_weights(model, at)
    if is_last:
        found += head_weights(model, at, is_copied=not is_first)
    return found
