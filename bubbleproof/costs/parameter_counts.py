"""The weights of a whole model, as they are published."""

from __future__ import annotations

from dataclasses import dataclass

from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.operations import Number
from bubbleproof.costs.transformer import Transformer
from bubbleproof.costs.weights import (
    embedding_weights,
    head_weights,
    layer_weights,
    layers_weights,
    whole,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterCounts:
    """A model's weights: of one layer, of what comes before all layers, and of what comes after.

    ``embedding`` are the words' and the positions', and a norm behind them; ``head`` the last norm,
    and the output's weights where they are not the embedding's. total = layers x layer + both, but
    for a mixture's dense layers: ``layer`` is then one that has experts.
    """

    layer: Number
    embedding: Number
    head: Number
    total: Number


def parameters(model: Transformer) -> ParameterCounts:
    """The weights of the whole model, as they are published.

    >>> from bubbleproof.costs.model_families import transformer
    >>> gpt2 = transformer("gpt", layers=12, hidden=768, heads=12, vocabulary=50257, positions=1024)
    >>> parameters(gpt2).total
    124439808
    """
    one = Deployment()
    layer = layer_weights(model, one).total
    before, after = embedding_weights(model, one).total, head_weights(model, one).total
    layers = layers_weights(model, one, model.layers, is_first=True).total
    total = whole(layers + before + after)
    return ParameterCounts(layer=layer, embedding=before, head=after, total=total)
