"""Layers before and behind those of a decoder, and layers that are not trained.

A *module for a further token* (multi-token prediction; DeepSeek-V3, section 2.2) norms the stream
and the embedding of the next word, joins both by a linear of 2 h to h numbers, has a layer as the
model's last, a norm, and the model's head once more. Embedding and head are the model's: of their
weights a copy of the embedding is counted where there are several stages, none of the head, beside
which the module stands (Megatron-LM's ``--mtp-num-layers``). Its logits are kept in 32 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from math import ceil
from typing import Any, Literal

from bubbleproof.costs.layer_operation import LayerOperation, Split
from bubbleproof.costs.operations import norm_statistics, norm_weights
from bubbleproof.costs.transformer import LayerRun, Transformer

MODULE, PROJECTION = "further token", "projection"  # the names of such layers
Named = Sequence[tuple[Transformer, int, str]]  # models of a kind of layer, how many, its name
OF_MODEL = {"layers", "vocabulary", "positions", "embedding_norm", "head_bias", "tied", "runs"}
OF_MODEL |= {"dense_layers", "dense_feed_forward", "name"}  # fields that no layer has


def layered(model: Transformer, layers: Named) -> Transformer:
    """The model with these layers instead.

    Parameters
    ----------
    layers
        Models of one kind of layer, with how many of it there are and its name.
    """
    plain = model.with_changes(runs=(), dense_layers=0, dense_feed_forward=0)
    names = [each.name for each in fields(model) if each.name not in OF_MODEL]
    runs = []
    for kind, count, name in layers:
        others = [(each, getattr(kind, each), getattr(plain, each)) for each in names]
        changes = tuple((each, own) for each, own, usual in others if own != usual)
        runs.append(LayerRun(count=count, kind=name, changes=changes))
    return plain.with_changes(runs=tuple(runs), layers=sum(run.count for run in runs))


def named_layers(model: Transformer) -> Named:
    """``layer_runs`` with the name of each kind, as ``layered`` takes them."""
    names = [run.kind for run in model.runs] or [kind_name(kind) for kind, _ in model.layer_runs]
    return tuple((*run, name) for run, name in zip(model.layer_runs, names, strict=True))


def kind_name(kind: Transformer) -> str:
    """A kind of layer in words: ``window 1,024``, ``recurrent, 16 experts``."""
    if kind.mixer is None:
        seen = f"window {kind.window:,}" if kind.window else "attention"
        words = [f"chunk {kind.chunk:,}" if kind.chunk else seen]
    else:
        words = ["recurrent"] if kind.mixer else []
    if kind.experts:
        words.append(f"{kind.experts} experts")
    elif kind.feed_forward:
        words.append("block")
    return ", ".join(words)


def with_modules(model: Transformer, count: int) -> Transformer:
    """The model with so many modules for further tokens behind its last layer.

    Parameters
    ----------
    count
        How many, 1 or more.
    """
    layers = named_layers(model)
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
    return layered(model, [*layers, (module, count, MODULE)])


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
    layers = named_layers(model)
    before = layers[0][0].tokens
    if not before:
        raise ValueError("tower_tokens need a tower, layers with tokens of their own; it has none")
    return layered(
        model,
        [
            (kind.with_changes(tokens=ceil(kind.tokens * tokens / before)), count, name)
            for kind, count, name in layers
        ],
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
    for kind, count, name in named_layers(model):
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
    return layered(model.with_changes(frozen="all") if is_first else model, layers)
