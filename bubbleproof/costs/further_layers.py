"""Layers before and behind those of a decoder, and layers that are not trained.

A *module for a further token* (multi-token prediction; DeepSeek-V3, section 2.2) norms the stream
and the embedding of the next word, joins both by a linear of 2 h to h numbers, has a layer as the
model's last, a norm, and the model's head once more. Embedding and head are the model's: of their
weights a copy of the embedding is counted where there are several stages, none of the head, beside
which the module stands (Megatron-LM's ``--mtp-num-layers``). Its logits are kept in 32 bits.
"""

from __future__ import annotations

from math import ceil
from typing import Any, Literal

from bubbleproof.costs.layer_operation import LayerOperation, Split
from bubbleproof.costs.operations import norm_statistics, norm_weights
from bubbleproof.costs.transformer import Transformer

MODULE, PROJECTION = "further token", "projection"  # the names of such layers


def with_modules(model: Transformer, count: int) -> Transformer:
    """The model with so many modules for further tokens behind its last layer.

    Parameters
    ----------
    count
        How many, 1 or more.
    """
    layers = model.named_layers
    last, h, words = layers[-1][0], model.hidden, model.vocabulary
    statistics = norm_statistics(model)
    norm: dict[str, Any] = {"vectors": norm_weights(model), "kept": h, "statistics": statistics}
    made = (
        _of("next word", vectors=words * h, kept=h, shared=True),
        _of("word norm", **norm),
        _of("stream norm", **norm),
        _of("join", weights=(2 * h, h), kept=h),
        _of("module norm", **norm),
        _of("module head", weights=(h, words), kept=2 * words, shared=True, split="tensor"),
    )
    module = last.with_changes(extras=(*last.extras, *made))
    return model.layered([*layers, (module, count, MODULE)])


def _of(name: str, *, split: Split = "sequence", **others: Any) -> LayerOperation:
    return LayerOperation(name=name, block="feed-forward", split=split, **others)


def with_patches(model: Transformer, tokens: int) -> Transformer:
    """The model with so many tokens of a sample in its tower.

    Parameters
    ----------
    tokens
        Those of the tower's first layer; those of others follow.

    Raises
    ------
    ValueError
        Where it has no tower.
    """
    layers = model.named_layers
    before = layers[0][0].tokens
    if not before:
        raise ValueError("tower_tokens need a tower, layers with tokens of their own; it has none")
    return model.layered(
        [
            (kind.with_changes(tokens=ceil(kind.tokens * tokens / before)), count, name)
            for kind, count, name in layers
        ]
    )


def with_frozen(model: Transformer, what: int | Literal["tower"]) -> Transformer:
    """The model with layers that are not trained.

    Parameters
    ----------
    what
        ``"tower"``: all of a tower but what projects its output; a number: so many first layers and
        the embedding. A tied embedding is trained, as the head: a gradient passes through then.

    Raises
    ------
    ValueError
        For more layers than there are, and a tower that is not there.
    """
    layers, before = [], 0
    for kind, count, name in model.named_layers:
        is_tower = kind.tokens > 0 and name != PROJECTION
        here = (count if is_tower else 0) if what == "tower" else min(count, max(0, what - before))
        how = "weights" if model.tied and what != "tower" else "all"
        layers += [(kind.with_changes(frozen=how), here, name)] if here else []
        layers += [(kind, count - here, name)] if here < count else []
        before += count
    if what == "tower" and not any(kind.frozen for kind, _, _ in layers):
        raise ValueError('frozen "tower" needs a tower, layers with tokens of their own')
    if what != "tower" and what > before:
        raise ValueError(f"frozen must be at most layers {before}, got {what}")
    is_first = what != "tower" and what > 0 and not model.tied
    return (model.with_changes(frozen="all") if is_first else model).layered(layers)
