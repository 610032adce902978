"""What a card computes and moves for one microbatch: in a layer, and at the ends.

All is counted from the model's shape and the cut, nothing is fitted. Of T tokens on a card, h
hidden, t tensor ranks, c context ranks, e expert ranks, k blocks that a token goes through:

products
    FLOPs of a pass, and the bytes of its operands, 2 (M N + N K + M K) of each product: what small
    sides lose is a roofline. Query, key and value are one product, so are up and gate. In 8 bits
    are a layer's linears and experts, not router, attention, head. An expert's product has
    T k cut / (t n) rows, of n experts on a card, each cut over ``cut`` ranks.
attention
    fused: half the square where it is causal; backward 2.6 times the forward, 0.86 of the rate for
    latent heads, 0.84 in a ring (of software that overlaps it). Plain: the whole square, and passes
    over its scores; both at half the rate where the width of a head is no multiple of 8.
elements
    bytes of norms, residual sums, activations: a number of passes over the stream, which
    is 1 / t of it with sequence parallelism alone, and 2 T (7 k f + 4 (q + k + v)) / t.
collectives of a tensor group
    4 gathers or scatters of the stream in a forward, 6 in a backward; without sequence parallelism
    4, in pairs: an all-reduce is both, and starts once. Those of a mixture's block only where
    experts are cut or one is shared.
context
    keys and values go round a ring, (c - 1) times; in a backward twice as much.
experts
    k copies of a token are sent all to all and back, in each pass: inside a node each, to other
    nodes one for each of min(k, nodes); 13 passes over copies permute them.

A message to the next stage is scattered where it may leave a node (Narayanan et al., SC 2021,
section 4.1) or where software always scatters it (``saved_bytes.message_bytes``).
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from functools import lru_cache
from math import log2

import numpy as np
from numpy.typing import NDArray

from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.flops import operation_flops
from bubbleproof.costs.operations import LayerOperation, layer_operations
from bubbleproof.costs.recompute_scopes import made_again
from bubbleproof.costs.saved_bytes import message_bytes
from bubbleproof.costs.times.software import Software
from bubbleproof.costs.transformer import Transformer
from bubbleproof.costs.weights import share

Floats = NDArray[np.float64]
ALIGNED = 8  # numbers: tensor cores take sides that are multiples of it
ELEMENT = 2  # bytes of a number
CAST = 2 + 1 + 1  # bytes of a number cast to 8 bits: read, written, written transposed
BACKWARD = 2.6 / 2.5  # of a fused attention, over that of its five products
LATENT, RING = 0.86, 0.84  # of the attention's rate
NOT_DIVIDED = 0.6  # of the passes over the stream, without sequence parallelism
SLOW_HEADS = 0.57 / 0.28  # how much longer heads take whose width is no multiple of 8
OF_BLOCK, OF_HEADS = 7, 4  # passes over what a block and the heads make
PERMUTED = 13  # passes over copies, forward and backward
PER_EXPERT, IN_EIGHT = 0.18 / 7, 1.3  # more of the host's time for each expert, and in 8 bits
HEADS, SEQUENCE = 4, 4096  # of the softmax's kernel: heads in a block, and most tokens
APART = 4  # operations more where the softmax is five
SOFTMAX = (37 - 4, 41 - 6)  # bytes of a score more without it, forward and backward
# What of a forward's products, attention and elements a backward makes again.
AGAIN = {
    "none": (0.0, 0.0, 0.0),
    "norm+act": (0.0, 0.0, 0.5),
    "attention": (0.0, 1.0, 0.0),
    "op": (0.5, 0.0, 1.0),
    "full": (1.0, 1.0, 1.0),
}
HIDDEN = 0.5  # of what is waited for of experts' exchange, where another microbatch runs beside it


@dataclass(frozen=True, slots=True, kw_only=True)
class MicrobatchWork:
    """One microbatch on one card, as numbers or as columns of many; FLOPs, bytes and counts.

    Of a pass of a layer: ``half`` and ``eighth`` are FLOPs of linears in 16 and in 8 bits,
    ``operands`` bytes; ``expert_...`` the same of experts; ``attention`` and ``attention_back``
    FLOPs; ``scores`` bytes of plain attention's scores, ``softmax`` what a softmax of several
    kernels moves more. ``stream`` bytes of one pass over the residual stream, ``inner`` those of
    all passes over what is inside a layer's blocks. ``again_...`` as in ``AGAIN``.
    ``gathers`` of ``hidden`` bytes in a forward, and more in a backward (``gathers_back``); so
    many collectives each of them ``starts``.
    ``ring`` bytes of keys and values, ``ring_out`` those that leave a node; ``sent``
    and ``sent_out`` those of a token's copies one way. ``copied`` bytes in a forward.
    ``host``: its time over that of a layer without experts, where ``mixed``.
    """

    half: Floats
    eighth: Floats
    operands: Floats
    expert_half: Floats
    expert_eighth: Floats
    expert_operands: Floats
    attention: Floats
    attention_back: Floats
    scores: Floats
    softmax: Floats
    softmax_back: Floats
    stream: Floats
    inner: Floats
    again_products: Floats
    again_attention: Floats
    again_elements: Floats
    again_all: Floats
    hidden: Floats
    tensor: Floats
    spans_nodes: Floats
    gathers: Floats
    gathers_back: Floats
    starts: Floats
    ring: Floats
    ring_out: Floats
    ring_steps: Floats
    sent: Floats
    sent_out: Floats
    sent_steps: Floats
    copied: Floats
    cast: Floats
    cast_back: Floats
    mixed: Floats
    host: Floats
    blocks: Floats
    head: Floats
    head_operands: Floats
    is_odd: Floats
    logits: Floats
    message: Floats
    overlaps: Floats


@lru_cache(maxsize=4096)
def work(model: Transformer, at: Deployment, runs: Software, cards_per_node: int) -> MicrobatchWork:
    """What one microbatch is on one card, of a model whose layers are all alike.

    Parameters
    ----------
    cards_per_node
        Cards that share a node's links.
    """
    tokens = at.micro_batch * at.sequence / at.context
    hidden = float(tokens * model.hidden * ELEMENT)
    whole = 0.0 if at.sequence_parallel else NOT_DIVIDED
    divided = whole + (1 - whole) / at.tensor
    blocks = model.active * model.feed_forward + model.shared_feed_forward
    heads = model.query_width + model.kv_width + model.value_width
    inner = ELEMENT * tokens * (OF_BLOCK * blocks + OF_HEADS * heads) / at.tensor
    again = AGAIN.get(at.scope) or _again(model, at, made_again(model, at.scope))
    # In 8 bits a product keeps its input after it ran, so that the last one runs again.
    if at.scope == "full" and runs.stops_early and not runs.is_eighth:
        again = _again(model, at, {each.name for each in layer_operations(model)[:-1]})
    words = runs.words(model.vocabulary, at.tensor)
    scattered = is_scattered(at, runs, cards_per_node)
    return MicrobatchWork(
        **_columns(
            **_of_any_scope(model, at.with_changes(scope="none"), runs, cards_per_node),
            stream=hidden * divided,
            inner=float(inner),
            again_products=again[0],
            again_attention=again[1],
            again_elements=again[2],
            again_all=float(at.scope == "full"),
            hidden=hidden,
            tensor=float(at.tensor),
            spans_nodes=float(at.tensor > cards_per_node),
            mixed=float(model.experts > 0),
            host=_host(model, at, runs),
            blocks=float(runs.blocks),
            head=2.0 * tokens * model.hidden * words,
            head_operands=_operands(tokens, model.hidden, words),
            is_odd=float(words % ALIGNED != 0),
            logits=float(tokens * words),
            message=float(message_bytes(model, at, is_scattered=scattered)),
            overlaps=float(runs.overlaps),
        )
    )


@lru_cache(maxsize=1024)
def _of_any_scope(
    model: Transformer, at: Deployment, runs: Software, cards_per_node: int
) -> dict[str, float]:
    """What is computed and sent whatever is recomputed."""
    products, attention = _products(model, at, runs), _attention(model, at, runs)
    return {**products, **attention, **_sent(model, at, runs, cards_per_node)}


def _again(model: Transformer, at: Deployment, names: Container[str]) -> tuple[float, ...]:
    """The same of operations: of products by FLOPs, of elements by the numbers that are made."""
    others = [o for o in layer_operations(model) if not o.scores]
    products = {o.name: operation_flops(o, model, at).forward for o in others if o.weights}
    elements = {o.name: o.kept for o in others if not o.weights}
    shares = [
        float(sum(size for name, size in each.items() if name in names))
        / float(sum(each.values()) or 1)
        for each in (products, elements)
    ]
    return shares[0], float("attention" in names), shares[1]


def _columns(**numbers: float) -> dict[str, Floats]:
    return {name: np.asarray(value, dtype=np.float64) for name, value in numbers.items()}


def _operands(rows: float, inner: float, outer: float) -> float:
    return float(ELEMENT * (rows * outer + outer * inner + rows * inner))


def _host(model: Transformer, at: Deployment, runs: Software) -> float:
    if not model.experts:
        pieces = len(layer_operations(model))
        return 1.0 if has_softmax(model, at) else (pieces + APART) / pieces
    return (1 + PER_EXPERT * model.experts / at.expert) * (IN_EIGHT if runs.is_eighth else 1)


def _products(model: Transformer, at: Deployment, runs: Software) -> dict[str, float]:
    """Products and casts of one pass of a layer."""
    names = ("half", "eighth", "operands")
    sums = dict.fromkeys((*names, *(f"expert_{name}" for name in names), "cast", "cast_back"), 0.0)
    for operation in layer_operations(model):
        if operation.weights is None:
            continue
        kind = "expert_" if operation.copies > 1 else ""
        is_eighth = runs.is_eighth and operation.name != "router"
        flops = float(operation_flops(operation, model, at).forward)
        sums[kind + ("eighth" if is_eighth else "half")] += flops
        if joined(operation.name)[0] == operation.name:
            sums[f"{kind}operands"] += operand_bytes(operation, model, at)
        if is_eighth:
            forward, back = cast_bytes(operation, model, at)
            sums["cast"] += forward
            sums["cast_back"] += back
    return sums


def operand_bytes(operation: LayerOperation, model: Transformer, at: Deployment) -> float:
    """Bytes of a product's operands on one card, of all its experts together; that of linears which
    one product computes counts them all."""
    inner = float((operation.weights or (0, 0))[0])
    mates = [o for o in layer_operations(model) if o.name in joined(operation.name) and o.weights]
    part = float(share(operation, model, at))
    is_by_rows = operation.name.endswith(("output", "down"))
    outer = float(
        sum(o.weights[1] * (1 if is_by_rows else share(o, model, at)) for o in mates if o.weights)
    )
    inner *= part if is_by_rows else 1
    tokens = at.micro_batch * at.sequence / at.context
    if operation.copies == 1:
        return _operands(tokens, inner, outer)
    held = operation.copies / at.expert
    rows = tokens * operation.passes * at.expert_cut / at.tensor / held
    return held * _operands(rows, inner, outer)


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
    part = float(share(operation, model, at))
    by_rows = operation.name.endswith(("output", "down"))
    tokens = at.micro_batch * at.sequence / at.context * operation.passes
    tokens *= at.expert_cut / at.tensor if operation.copies > 1 else 1
    read = inner * (part if by_rows else 1) if joined(operation.name)[0] == operation.name else 0
    made = outer * (1 if by_rows else part)
    return float(CAST * tokens * read), float(CAST * tokens * made)


def has_softmax(model: Transformer, at: Deployment) -> bool:
    """Whether the attention's softmax is one kernel: in a fused attention, and in Megatron-LM's
    plain one where the heads of a microbatch are a multiple of four and the sequence is not too
    long (``fused_softmax.py``). Else five operations take its place, in 32 bits."""
    heads = at.micro_batch * model.heads // at.tensor
    return at.rules.fused_attention or (heads % HEADS == 0 and at.sequence <= SEQUENCE)


def _attention(model: Transformer, at: Deployment, runs: Software) -> dict[str, float]:
    fused = at.rules.fused_attention
    tokens = at.micro_batch * at.sequence / at.context
    rate = (LATENT if model.kv_rank else 1.0) * (RING if at.context > 1 and runs.overlaps else 1.0)
    slower = 1.0
    if not fused:
        rate, slower = 1.0, SLOW_HEADS if model.head_width % ALIGNED else 1.0
    causal = float(runs.causal) if fused else 1.0
    forward = back = 0.0
    for operation in layer_operations(model):
        if operation.scores or operation.products:
            found = operation_flops(operation, model, at)
            forward += causal * slower / rate * float(found.forward)
            back += causal * slower / rate * float(found.input_backward)
    scores = tokens * at.sequence * model.heads / at.tensor
    apart = 0.0 if has_softmax(model, at) else scores
    return {
        "attention": forward,
        "attention_back": back * (BACKWARD if fused else 1),
        "scores": 0.0 if fused else ELEMENT * scores * slower,
        "softmax": SOFTMAX[0] * apart,
        "softmax_back": SOFTMAX[1] * apart,
    }


def _sent(
    model: Transformer, at: Deployment, runs: Software, cards_per_node: int
) -> dict[str, float]:
    """What collectives and copies move in a forward of a layer."""
    tokens = at.micro_batch * at.sequence / at.context
    own = tokens / at.tensor * at.expert_cut  # of a card, that it sends to experts
    ring = (at.context - 1) * ELEMENT * tokens * (model.kv_width + model.value_width) / at.tensor
    leaves = at.tensor * at.context > cards_per_node
    stride = at.tensor if at.expert_cut > 1 else 1
    within = min(at.expert, max(1, cards_per_node // stride))
    nodes = at.expert / within
    copies = ELEMENT * own * model.hidden
    felt = copies * (HIDDEN if runs.hides_experts else 1)
    latent = model.query_width + model.kv_width + model.value_width if model.kv_rank else 0
    permuted = PERMUTED / 3 * copies * model.active if model.experts else 0.0
    is_whole = model.experts > 0 and at.expert_cut == 1 and not model.shared_feed_forward
    gathers = 2.0 if is_whole else 4.0
    return {
        "ring": float(0 if leaves else ring),
        "ring_out": float(ring if leaves else 0),
        "ring_steps": float(at.context - 1),
        "sent": felt * model.active * (within - 1) / within if model.experts else 0.0,
        "sent_out": felt * min(model.active, nodes) * (nodes - 1) / nodes,
        "sent_steps": log2(at.expert),
        "copied": float(permuted + 2 * ELEMENT * tokens / at.tensor * latent),
        "gathers": gathers,
        "gathers_back": gathers * (1.5 if at.sequence_parallel else 1),
        "starts": 1.0 if at.sequence_parallel else 0.5,
    }


def is_scattered(at: Deployment, runs: Software, cards_per_node: int) -> bool:
    """Whether each tensor-parallel card sends its part of a message; see the module's text.

    Parameters
    ----------
    cards_per_node
        Cards that share a node's links.
    """
    return runs.scatters or at.tensor * at.replicas * at.pipeline > cards_per_node
