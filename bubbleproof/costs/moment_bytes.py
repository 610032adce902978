"""Bytes of a card beside state and saved activations: counted, nothing in it is fitted.

For its software a stage holds placeholders and workspaces, all the time. On top comes the greatest
of what it needs for a moment, at its fullest:

- the loss (last stage): logits in 16 bits, and again in 32 unless it is fused;
- the head's backward (last stage): the gradient of the logits, the placeholder of the head's
  gradient, and the head's input and its gradient, gathered from the tensor group;
- the feed-forward block's backward: gradients of what the activation put out and of what went in,
  less the former's values, which are then free; as well the gathered input of a linear. A mixture's
  has the gradient of its k outputs a token as well, as it came and sorted by expert.

With T tokens, h hidden, f the block's width, t tensor, V rows of the vocabulary: 6 or 2 T V / t;
2 T V / t + 2 V h / t + 4 T h; and 2 T (1 + gates) f / t, of a mixture
2 T k ((1 + gates) f + 2 h) / t.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from bubbleproof.costs.deployment import HIGHEST_ZERO, Deployment
from bubbleproof.costs.operations import Number, layer_operations
from bubbleproof.costs.saved_bytes import head_saved
from bubbleproof.costs.times.software import Software
from bubbleproof.costs.times.work import joined
from bubbleproof.costs.transformer import Transformer
from bubbleproof.costs.weights import (
    embedding_weights,
    head_weights,
    layer_weights,
    share,
    words,
)

HALF, FULL = 2, 4  # bytes of a number
Layered = Sequence[tuple[Transformer, int]]


def needed_beside(
    model: Transformer, kinds: Layered, at: Deployment, runs: Software, *, has_head: bool
) -> tuple[int, int]:
    """What a stage of these layers holds for its software, and for a moment at its fullest.

    Parameters
    ----------
    kinds
        Models of one kind of layer, with how many of it the stage has.
    has_head
        Whether the head is behind them.
    """
    blocks = [_block(kind, at.seen_by(kind)) for kind in dict(kinds)]
    block = max(blocks, default=0) + gathered_weights(model, at)
    software = int(placeholders(kinds, at) * runs.placeholders) + runs.workspace
    return software, int(max(block, _head(model, at, runs) if has_head else 0))


def gathered_weights(model: Transformer, at: Deployment) -> Number:
    """Bytes of weights that ZeRO 3 has gathered: those of two layers, or of one and an end."""
    if at.zero < HIGHEST_ZERO:
        return 0
    layer = max(layer_weights(kind, at).total for kind, _ in model.layer_runs)
    ends = embedding_weights(model, at).total, head_weights(model, at, is_copied=True).total
    return at.bytes_of.weight * (layer + max(layer, *ends))


def placeholders(kinds: Layered, at: Deployment) -> Number:
    """Bytes of one gradient of 16 bits for each shape of the layers' linears on a card; of experts
    one stands for all. A router adds to its gradient as other software does."""
    sizes: set[tuple[Number, Fraction]] = set()
    for model in dict(kinds):
        outer: dict[tuple[str, ...], Fraction] = {}
        inner: dict[tuple[str, ...], Number] = {}
        for operation in layer_operations(model):
            if operation.weights and operation.name != "router":
                group = joined(operation.name)
                part = share(operation, model, at)
                inner[group] = operation.weights[0]
                outer[group] = outer.get(group, Fraction(0)) + operation.weights[1] * part
        sizes |= {(inner[group], outer[group]) for group in outer}
    return HALF * sum((inner * outer for inner, outer in sizes), Fraction(0))


def _tokens(at: Deployment) -> Fraction:
    return Fraction(at.micro_batch * at.sequence, at.context)


def _block(model: Transformer, at: Deployment) -> Number:
    copies = 2 * model.hidden if model.experts else 0
    each = (1 + model.gated) * model.feed_forward + copies
    return HALF * _tokens(at) * model.active * each / at.tensor


def _head(model: Transformer, at: Deployment, runs: Software) -> Number:
    logits = _tokens(at) * words(model, at)
    kept = head_saved(model, at) - FULL * logits  # the last norm's output
    gathered = 2 * HALF * _tokens(at) * model.hidden if at.tensor > 1 else 0
    weights = HALF * words(model, at) * model.hidden if runs.placeholders else 0
    norm_input = HALF * _tokens(at) * model.hidden / at.tensor
    loss = HALF if runs.fused_loss else HALF + FULL
    return kept + norm_input + max(loss * logits, HALF * logits + weights + gathered)
