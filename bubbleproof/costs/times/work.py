"""What a card computes and moves: for one microbatch in a layer, at the ends, and in a step.

All is counted from the model's shape and the cut, nothing is fitted. FLOPs are those of ``flops``;
beside each sum stands the same sum with every product divided by its smallest side (``thin``), from
which the loss of small products follows. Query, key and value are one product, so are up and gate.
With ``tensor`` t each pass of a layer has two all-reduces of the residual stream (with sequence
parallelism as many pairs of a gather and a scatter, which move the same, and the backward gathers
the inputs of two linears again: ``gathers``, half an all-reduce each). A message to the next
stage is scattered where it may leave a node (Narayanan et al., SC 2021, section 4.1) or where
software always scatters it (``saved_bytes.message_bytes``).

A fused attention's scores do not leave the chip: neither of its two products moves more than half
of what a product of its sides would, so its smallest side counts twice.

What is sent all to all and copied is told by ``exchanges``. An expert's products have T e k / E
rows, with e expert ranks. ``pieces``: the operations of a layer over those of a layer without
experts and latent attention; ``launches``: the same with a softmax of several operations, which on
the card are as long as their bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.flops import operation_flops
from bubbleproof.costs.operations import LayerOperation, layer_operations
from bubbleproof.costs.saved_bytes import message_bytes
from bubbleproof.costs.times.exchanges import APART, copied, exchanged, plain, softmax_bytes
from bubbleproof.costs.times.software import Software
from bubbleproof.costs.transformer import Transformer
from bubbleproof.costs.weights import Weights, share

Floats = NDArray[np.float64]
ALIGNED = 8  # numbers: tensor cores take sides that are multiples of it
NOT_DIVIDED = 0.6  # of the passes over the stream: norms, dropouts and residual additions
SCORE = STREAM = 2  # bytes of a number
SCAN = 64.0  # tokens of a chunk, by which kernels go over a recurrent state
CAST = 2 + 1 + 1  # bytes of a number cast to 8 bits: read, written, written transposed


@dataclass(frozen=True, slots=True, kw_only=True)
class MicrobatchWork:
    """One microbatch on one card, as numbers or as columns of many; FLOPs, bytes and counts.

    Of a layer: ``forward``, ``input_backward``, ``weight_backward`` and what is computed ``again``,
    each with its ``thin`` sum; ``again_all`` is 1 where a layer is recomputed whole. Of the head:
    one of its three products; ``is_odd`` where a side of it is no multiple of 8. ``hidden`` are
    bytes of the stream, ``stream`` those of it that a pass reads on one card. ``exchanged`` are the
    bytes that a card sends all to all in each of a layer's passes, forward and I, ``exchanged_out``
    those that its node sends to others, ``doublings`` the sum of log2 (cards) over these exchanges;
    ``copied`` are the bytes that a pass copies, ``softmax`` and ``softmax_back`` those that a
    softmax of several operations moves more than one kernel, ``softmax_again`` what of it is
    repeated where the attention alone is recomputed. Of experts' products: FLOPs of a pass as
    above, bytes of their weights in 16 bits, and those that W reads and writes adding to gradients.

    ``fused`` and ``fused_back`` are those FLOPs of ``forward`` and ``input_backward`` that are a
    fused attention's. ``fp8_...`` are those of the three passes that are computed in 8 bits,
    ``cast`` and ``cast_back`` the bytes that their inputs and the gradients of their outputs are
    cast with: 2 read of a number, and 1 written twice, as it is and transposed. ``overlaps`` is 1
    where collectives run beside computation, ``overlaps_exchange`` where what is sent all to all
    does (of context parallelism; what experts are sent must be there first).
    """

    forward: Floats
    forward_thin: Floats
    input_backward: Floats
    input_thin: Floats
    weight_backward: Floats
    weight_thin: Floats
    again: Floats
    again_thin: Floats
    again_all: Floats
    scores: Floats
    scores_again: Floats
    hidden: Floats
    stream: Floats
    tensor: Floats
    spans_nodes: Floats
    gathers: Floats
    exchanged: Floats
    exchanged_out: Floats
    doublings: Floats
    copied: Floats
    softmax: Floats
    softmax_back: Floats
    softmax_again: Floats
    pieces: Floats
    launches: Floats
    expert: Floats
    expert_thin: Floats
    expert_weights: Floats
    expert_gradients: Floats
    head: Floats
    head_thin: Floats
    is_odd: Floats
    logits: Floats
    message: Floats
    fused: Floats
    fused_back: Floats
    fp8_forward: Floats
    fp8_input: Floats
    fp8_weight: Floats
    cast: Floats
    cast_back: Floats
    overlaps: Floats
    overlaps_exchange: Floats


@lru_cache(maxsize=4096)
def work(model: Transformer, at: Deployment, runs: Software, cards_per_node: int) -> MicrobatchWork:
    """What one microbatch is on one card.

    Parameters
    ----------
    cards_per_node
        Cards that share a node's links.
    """
    sums = _products(model, at, runs)
    tokens = at.micro_batch * at.sequence / at.context
    hidden = _stream_bytes(model, at)
    divided = 1 / at.tensor
    kept = NOT_DIVIDED * (divided if at.sequence_parallel else 1) + (1 - NOT_DIVIDED) * divided
    scores = 0.0
    if not at.rules.fused_attention:
        scores = float(tokens * at.sequence * model.heads * divided * SCORE)
    softmax, softmax_back = softmax_bytes(model, at)
    pieces, plain_pieces = (len(layer_operations(each)) for each in (model, plain(model)))
    words = runs.words(model.vocabulary, at.tensor)
    head = 2 * tokens * model.hidden * words
    return _columns(
        **sums,
        again_all=float(at.scope == "full"),
        scores=scores,
        scores_again=scores if at.scope == "attention" else 0.0,
        hidden=hidden,
        stream=hidden * kept,
        tensor=float(at.tensor),
        spans_nodes=float(at.tensor > cards_per_node),
        gathers=2.0 if at.sequence_parallel else 0.0,
        **exchanged(model, at, cards_per_node),
        copied=copied(model, at),
        softmax=softmax,
        softmax_back=softmax_back,
        softmax_again=softmax if at.scope == "attention" else 0.0,
        pieces=pieces / plain_pieces,
        launches=(pieces + (APART if softmax else 0)) / plain_pieces,
        head=head,
        head_thin=head / min(model.hidden, words),
        is_odd=float(words % ALIGNED != 0),
        logits=float(tokens * words),
        message=float(
            message_bytes(model, at, is_scattered=is_scattered(at, runs, cards_per_node))
        ),
        overlaps=float(runs.overlaps),
        overlaps_exchange=float(runs.overlaps and not model.experts),
    )


def _columns(**numbers: float) -> MicrobatchWork:
    return MicrobatchWork(
        **{name: np.asarray(value, dtype=np.float64) for name, value in numbers.items()}
    )


def _products(model: Transformer, at: Deployment, runs: Software) -> dict[str, float]:
    """FLOPs of a layer's products, and the same over the smallest side of each."""
    names = ("forward", "input", "weight", "again", "expert")
    sums = dict.fromkeys((*names, *(f"{name}_thin" for name in names)), 0.0)
    sums |= dict.fromkeys(
        ("fused", "fused_back", "fp8_forward", "fp8_input", "fp8_weight", "cast", "cast_back"), 0.0
    )
    experts = 0.0
    for operation in layer_operations(model):
        found = operation_flops(operation, model, at)
        part = float(runs.causal) if operation.scores else 1.0
        side = smallest_side(operation, model, at)
        again = found.again if at.scope == "attention" else 0
        is_expert = operation.copies > 1
        own = found.forward if is_expert else 0
        passes = (found.forward, found.input_backward, found.weight_backward, again, own)
        if is_expert:
            experts += float(operation.parameters * share(operation, model, at) / at.expert)
        if operation.scores and at.rules.fused_attention:
            sums["fused"] += part * float(found.forward)
            sums["fused_back"] += part * float(found.input_backward)
        if runs.products == "fp8" and operation.weights and operation.name != "router":
            for name, flops in zip(("forward", "input", "weight"), passes, strict=False):
                sums[f"fp8_{name}"] += float(flops)
            for name, bytes_ in zip(
                ("cast", "cast_back"), cast_bytes(operation, model, at), strict=True
            ):
                sums[name] += bytes_
        for name, flops in zip(names, passes, strict=True):
            sums[name] += part * float(flops)
            sums[f"{name}_thin"] += part * float(flops) / side
    sums["input_backward"] = sums.pop("input")
    sums["weight_backward"] = sums.pop("weight")
    sums["expert_weights"] = experts * STREAM
    sums["expert_gradients"] = experts * 2 * at.bytes_of.gradient
    return sums


JOINED = (("query", "key", "value"), ("up", "gate"), ("shared up", "shared gate"))


def joined(name: str) -> tuple[str, ...]:
    """The linears that one product computes with this one.

    Parameters
    ----------
    name
        A linear of a layer, such as ``query``.
    """
    return next((names for names in JOINED if name in names), (name,))


def cast_bytes(
    operation: LayerOperation, model: Transformer, at: Deployment
) -> tuple[float, float]:
    """Bytes that casting to 8 bits moves: a linear's input, and the gradient of its output.

    Linears that one product computes (``joined``) read one input, which the first of them counts.
    """
    inner, outer = operation.weights or (0, 0)
    part = share(operation, model, at)
    by_rows = operation.name.endswith(("output", "down"))
    tokens = at.micro_batch * at.sequence / at.context * operation.passes
    read = inner * (part if by_rows else 1) if joined(operation.name)[0] == operation.name else 0
    made = outer * (1 if by_rows else part)
    return float(CAST * tokens * read), float(CAST * tokens * made)


def smallest_side(operation: LayerOperation, model: Transformer, at: Deployment) -> float:
    """The smallest of the three sides of an operation's product on one card, in numbers."""
    if operation.scores:
        side = min(model.head_width, at.sequence)
        return float(2 * side if at.rules.fused_attention else side)
    if operation.weights is None:
        return SCAN if operation.products else 1.0
    tokens = at.micro_batch * at.sequence / at.context
    if operation.copies > 1:
        tokens *= at.expert * operation.passes / operation.copies
    inner, outer = operation.weights
    if operation.name.endswith(("output", "down")):  # split by rows
        return float(min(tokens, inner * share(operation, model, at), outer))
    mates = joined(operation.name)
    width = sum(
        each.weights[1] * share(each, model, at)
        for each in layer_operations(model)
        if each.name in mates and each.weights
    )
    return float(min(tokens, inner, width))


def moved_around(weights: Weights, at: Deployment) -> float:
    """Of these weights, one byte each, what a card moves in a ring over those that hold the same:
    (n - 1) / n with n of them."""
    return sum((n - 1) / n * number for number, n in _held_by(weights, at))


def updated(weights: Weights, at: Deployment, runs: Software) -> float:
    """Bytes that a card reads and writes for gradients and optimizer once an iteration."""
    return sum(
        number * (runs.gradients + runs.optimizer / (n if at.zero else 1))
        for number, n in _held_by(weights, at)
    )


def _held_by(weights: Weights, at: Deployment) -> list[tuple[float, float]]:
    """Weights of a card, and how many cards hold the same: experts are spread over some."""
    copies = max(1.0, at.replicas / at.expert)
    return [(float(weights.dense), at.replicas), (float(weights.experts), copies)]


def rings_that_leave(at: Deployment, cards_per_node: int) -> int:
    """How many rings over replicas share a node's network; 0 where none leaves its node. Cards are
    numbered along the tensor group first and then along the replicas.

    Parameters
    ----------
    cards_per_node
        Cards that share a node's links.
    """
    leaves = at.tensor * at.replicas > cards_per_node
    return min(at.tensor, cards_per_node) if leaves else 0


def is_scattered(at: Deployment, runs: Software, cards_per_node: int) -> bool:
    """Whether each tensor-parallel card sends its part of a message; see the module's text.

    Parameters
    ----------
    cards_per_node
        Cards that share a node's links.
    """
    leaves = at.tensor * at.replicas * at.pipeline > cards_per_node
    return runs.scatters or leaves


def _stream_bytes(model: Transformer, at: Deployment) -> float:
    return float(at.micro_batch * at.sequence / at.context * model.hidden * STREAM)
