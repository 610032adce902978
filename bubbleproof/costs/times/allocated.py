"""Bytes allocated on the fullest card of an iteration: counted, nothing in it is fitted.

What a stage g of p holds all the time: state (``costs.state``), the placeholders and workspaces of
its software. In steady state of 1F1B it holds what min(p - g, m) microbatches saved in its layers;
of interleaved 1F1B with v chunks a rank, what min((v - 1) p + 2 (p - g - 1) + 1, m v) passes saved
in the layers of a chunk (``theory.families.interleaved``).
On top comes the greatest of what it needs for a moment, at its fullest:

- the loss (last stage): logits in 16 bits, and again in 32 unless it is fused;
- the head's backward (last stage): the gradient of the logits, the placeholder of the head's
  gradient, and the head's input and its gradient, gathered from the tensor group;
- the feed-forward block's backward: gradients of what the activation put out and of what went in,
  less the former's values, which are then free; as well the gathered input of a linear. A mixture's
  has the gradient of its k outputs a token as well, as it came and sorted by expert.

With T tokens, h hidden, f the block's width, t tensor, V rows of the vocabulary: 6 or 2 T V / t;
2 T V / t + 2 V h / t + 4 T h; and 2 T (1 + gates) f / t, of a mixture
2 T k ((1 + gates) f + 2 h) / t. A layer that is recomputed whole holds, besides, all that one
layer saves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from bubbleproof.costs.deployment import HIGHEST_ZERO, Deployment
from bubbleproof.costs.operations import Number, layer_operations
from bubbleproof.costs.saved_bytes import embedding_saved, head_saved, layer_saved
from bubbleproof.costs.state import state_bytes
from bubbleproof.costs.times.software import Software
from bubbleproof.costs.times.work import joined
from bubbleproof.costs.transformer import Transformer
from bubbleproof.costs.weights import (
    Weights,
    embedding_weights,
    head_weights,
    layer_weights,
    share,
    words,
)
from bubbleproof.theory.pipelines.shapes.layer_cuts import Cut

HALF, FULL = 2, 4  # bytes of a number
Layered = Sequence[tuple[Transformer, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageBytes:
    """What a stage holds on one card at its fullest."""

    state: int
    software: int
    saved: int
    moment: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.state + self.software + self.saved + self.moment


def allocated(
    model: Transformer,
    at: Deployment,
    runs: Software,
    microbatches: int,
    chunks: int = 1,
    cut: Cut = (),
) -> tuple[StageBytes, ...]:
    """Each rank at its fullest.

    Parameters
    ----------
    microbatches
        Those of one replica's step.
    chunks
        Stages of a rank, 1 or more.

    Returns
    -------
    tuple[StageBytes, ...]
        Bytes, one entry for each of the ``at.pipeline`` ranks.
    """
    cut = cut or usual_cut(model.layers, at.pipeline * chunks)
    before = [0, *accumulate(cut)]
    found = []
    for stage in range(at.pipeline):
        is_first, is_last = stage == 0, stage == at.pipeline - 1
        own = [model.between(before[n], cut[n]) for n in range(stage, len(cut), at.pipeline)]
        kinds = tuple(kind for each in own for kind in each)
        weights = sum((layer_weights(kind, at) * count for kind, count in kinds), Weights())
        weights += embedding_weights(model, at) if is_first else Weights()
        weights += head_weights(model, at, is_copied=not is_first) if is_last else Weights()
        in_flight = in_flight_passes(at.pipeline, stage, microbatches, chunks)
        each = Fraction(sum(count * layer_saved(kind, at) for kind, count in kinds), chunks)
        saved = in_flight * each
        if is_first and not runs.sequence_parallel:
            saved += min(in_flight, microbatches) * embedding_saved(model, at)
        whole = [layer_saved(kind, at, "none") for kind, _ in kinds]
        again = max(whole, default=0) if at.scope == "full" else 0
        software, moment = needed_beside(model, kinds, at, runs, has_head=is_last)
        found.append(
            StageBytes(
                state=state_bytes(weights, at),
                software=software,
                saved=int(saved + again),
                moment=moment,
            )
        )
    return tuple(found)


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


def usual_cut(layers: int, stages: int) -> Cut:
    """Layers of each stage: as many on each where that is possible, else with the embedding and
    the head counted as a layer each, and fewer on the last stages.

    Parameters
    ----------
    layers, stages
        How many there are; at most two stages more than layers.

    Raises
    ------
    ValueError
        For more stages.

    Examples
    --------
    >>> usual_cut(126, 8), usual_cut(6, 4)
    ((15, 16, 16, 16, 16, 16, 16, 15), (1, 2, 2, 1))
    """
    if layers % stages == 0:
        return (layers // stages,) * stages
    each, more = divmod(layers + 2, stages)
    found = [each + (stage < more) for stage in range(stages)]
    found[0] -= 1
    found[-1] -= 1
    if found[-1] < 0:
        raise ValueError(
            f"pipeline x chunks must be at most layers + 2 = {layers + 2}, got {stages}"
        )
    return tuple(found)


def gathered_weights(model: Transformer, at: Deployment) -> Number:
    """Bytes of weights that ZeRO 3 has gathered: those of two layers, or of one and an end."""
    if at.zero < HIGHEST_ZERO:
        return 0
    layer = max(layer_weights(kind, at).total for kind, _ in model.layer_runs)
    ends = embedding_weights(model, at).total, head_weights(model, at, is_copied=True).total
    return at.bytes_of.weight * (layer + max(layer, *ends))


def in_flight_passes(ranks: int, rank: int, microbatches: int, chunks: int = 1) -> int:
    """Forwards of a rank whose backwards have not ended, at most.

    Parameters
    ----------
    ranks
        p.
    rank
        From 0 to p - 1.
    microbatches
        m.
    chunks
        v; the order is 1F1B for 1, else interleaved 1F1B.
    """
    if chunks == 1:
        return min(ranks - rank, microbatches)
    return min((chunks - 1) * ranks + 2 * (ranks - rank - 1) + 1, microbatches * chunks)


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
