"""Bytes that one microbatch leaves on one device between its forward and its backward.

Of each operation's output (``operations``) a device keeps its share: of heads and columns 1/t, of
what lies along the sequence 1/t with sequence parallelism and all without. All of it is of the
device's part of the sequence under context parallelism. The attention itself, unless fused, keeps
its weights after the softmax, a token's a s numbers: with dropout twice, and the mask.

What is computed again by recompute scope (``recompute_scopes``) is not kept; of the attention its
output is. Where linears are computed again, all or some, what the layer starts from stays. Of
frozen layers stays nothing, or where a gradient passes through, nothing that only weights need.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.operations import (
    LayerOperation,
    Number,
    Split,
    layer_operations,
    norm_statistics,
)
from bubbleproof.costs.recompute_scopes import made_again, words_of
from bubbleproof.costs.transformer import Transformer
from bubbleproof.costs.weights import share, whole, words

STATISTIC = 4  # bytes
WHOLE = ("full", "op")  # scopes of a whole layer
_INPUTS = ("product", "gelu", "sort")  # what goes into linears alone


@lru_cache(maxsize=4096)
def layer_saved(model: Transformer, at: Deployment, scope: str | None = None) -> Number:
    """Bytes of one layer under a recompute scope, the deployment's where none is told.

    Parameters
    ----------
    scope
        A scope (``recompute_scopes``); None for the deployment's own.

    Returns
    -------
    Number
        Bytes of one microbatch on one device.
    """
    if model.frozen == "all":
        return 0
    scope = scope or at.scope
    again, is_whole = made_again(model, scope), words_of(scope)[0] in WHOLE
    kept = Fraction(layer_input(model, at) if is_whole else 0)
    unused = {*_INPUTS, *made_again(model, "layernorm")} if model.frozen else set()
    for operation in layer_operations(model):
        is_again = operation.name in again
        if not is_again:
            kept += scores_saved(operation, model, at)
        if not is_again or (operation.scores and not is_whole):
            own = replace(operation, kept=0) if operation.name in unused else operation
            kept += operation_saved(own, model, at)
    return whole(kept)


def layer_input(model: Transformer, at: Deployment) -> Number:
    """What a layer starts from: all that stays of one that is recomputed whole."""
    split: Split = "sequence" if at.rules.split_checkpoint else "none"
    at = at.seen_by(model)
    return whole(_tokens(at) * at.rules.element * model.hidden * _part(split, at))


def operation_saved(operation: LayerOperation, model: Transformer, at: Deployment) -> Fraction:
    """Bytes that stay of an operation's output, but for the attention's weights."""
    rules, at = at.rules, at.seen_by(model)
    part = _part(operation.split, at)
    if operation.name in ("key", "value"):
        part = share(operation, model, at)
    if operation.fused and rules.fused_attention:
        return Fraction(0)
    if operation.name.endswith("silu") and rules.fused_activation:
        return Fraction(0)
    if operation.name == "down" and operation.copies > 1 and rules.weighed_inside:
        return Fraction(0)
    masks = operation.masks if rules.dropout is not False else 0
    statistics = STATISTIC * operation.statistics if rules.statistics else 0
    along = _part("sequence", at)  # norms and masks are computed where the sequence lies
    times = 2 if operation.scores and rules.exchanged_output and at.context > 1 else 1
    kept = times * rules.element * operation.kept * part + masks * along + statistics * along
    return _tokens(at) * kept


def scores_saved(operation: LayerOperation, model: Transformer, at: Deployment) -> Fraction:
    """Bytes that the attention keeps beside its output; a recomputed one computes them again."""
    if not operation.scores:
        return Fraction(0)
    at = at.seen_by(model)
    rules, heads = at.rules, Fraction(model.heads, at.tensor)
    if rules.fused_attention:
        return _tokens(at) * heads * STATISTIC if rules.statistics else Fraction(0)
    has_dropout = model.dropout if rules.dropout is None else rules.dropout
    each = 2 * rules.element + 1 if has_dropout else rules.element
    return _tokens(at) * heads * at.sequence * each


def embedding_saved(model: Transformer, at: Deployment) -> Number:
    """Bytes of the first stage before its layers: what the first one starts from, and a mask."""
    masks = model.hidden if model.dropout and at.rules.dropout is not False else 0
    kept = at.rules.element * model.hidden + masks
    return whole(_tokens(at) * kept * _part("sequence", at))


def head_saved(model: Transformer, at: Deployment) -> Number:
    """Bytes of the last stage behind its layers: the norm's output, and the logits in 32 bits."""
    norm = at.rules.element * model.hidden * _part("input", at)
    statistics = STATISTIC * norm_statistics(model) if at.rules.statistics else 0
    logits = STATISTIC * words(model, at)
    return whole(_tokens(at) * (norm + statistics * _part("sequence", at) + logits))


def message_bytes(model: Transformer, at: Deployment, *, is_scattered: bool = False) -> Number:
    """Bytes that one device sends to the next stage for one microbatch.

    With sequence parallelism it is the device's part of the residual stream; without, each of the
    tensor-parallel devices holds the whole stream and sends it, or, where it ``is_scattered``, a
    part each (Narayanan et al., SC 2021, section 4.1).

    Parameters
    ----------
    is_scattered
        Whether each tensor-parallel device sends its part alone.
    """
    part = Fraction(1, at.tensor) if is_scattered else _part("sequence", at)
    return whole(_tokens(at) * at.rules.element * model.hidden * part)


def _tokens(at: Deployment) -> Fraction:
    """Tokens of a microbatch on one device."""
    return Fraction(at.micro_batch * at.sequence, at.context)


def _part(split: Split, at: Deployment) -> Fraction:
    if split == "none" or (split == "input" and not at.rules.split_inputs):
        return Fraction(1)
    if split in ("sequence", "input") and not at.sequence_parallel:
        return Fraction(1)
    return Fraction(1, at.tensor)
