"""Milliseconds of each pass, from what it computes and moves (``work``) and the constants.

A card runs a pass's kernels one after another. With R the rate of large products and B the memory
traffic that kernels reach:

products
    F / R + ``operands`` passes over their operands / B; in 8 bits F / (``fp8`` R), and casts;
    experts' at ``grouped`` R.
attention
    at ``attention``; a plain one makes ``scores`` passes over its scores, forward and backward.
elements
    ``stream`` passes over the stream, and those inside blocks, forward and backward, / B.
collectives
    of a tensor group: ``collective`` for each doubling of it and (t - 1) / t of the bytes at
    ``group`` (that of nodes at ``network_group``); of experts at ``gradient`` inside a node, at
    ``exchange`` (of a node) between nodes; of a ring of keys and values the same.
fixed
    ``kernels`` for the time between them.

Where software overlaps them, of a collective of t ms beside p ms there is left to wait for

    t - min((1 - exposed) t, p).

Meanwhile the host launches kernels, which takes ``launch``, of a mixture ``dispatch``. A pass takes
as long as the slower of the two, (card^k + host^k)^(1/k): k is 8 without experts, 2.5 with, since
a dispatch waits for the host once a layer. Where launches block, ``blocking`` comes on top.

A third of elements, kernels and launches are the forward's; as much each of I and W, elements all
in I. A full backward B is I and W as one pass. What is recomputed (``work.AGAIN``) is in I and B; a
whole layer without its last product, where software stops before that.

Cards of a tensor group wait for each other, since their hosts are not equally fast: ``wait`` for a
layer, half of it in the forward and half in I, in a pass never more than its launches. A card that
lags behind its host notices less: of a wait, min(1, host / card) is felt.

Every function takes constants as numbers, or as arrays that numpy combines with columns of work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bubbleproof.costs.times.work import Floats, MicrobatchWork

Constants = Mapping[str, float] | Mapping[str, Floats]
SHARP, SOFT = 8.0, 2.5
ENDS = 10  # passes over the stream at the embedding, and at the head
THIRD = 1 / 3
TERA, GIGA, US = 1e9, 1e6, 1e-3  # FLOPs and bytes a millisecond; milliseconds
AT_EMBEDDING = 0.2  # of ``head``


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTimes:
    """Milliseconds for one microbatch: of one layer by pass, of embedding and head, of a message.

    ``backward`` is I and W as one; it and ``input_backward`` include what is recomputed.
    """

    forward: Floats
    backward: Floats
    input_backward: Floats
    weight_backward: Floats
    embedding: Floats
    head: Floats
    message: Floats

    @property
    def embedding_each_way(self) -> Floats:
        """What the embedding adds to the first stage's forward, and to its backward."""
        return self.embedding / 2

    @property
    def head_each_pass(self) -> Floats:
        """What the head adds to the last stage's forward, and twice to its backward."""
        return self.head * THIRD


def kernel_times(work: MicrobatchWork, c: Constants) -> KernelTimes:
    """How long each pass takes; see the module's text."""
    host = THIRD * work.host * np.where(work.mixed > 0, c["dispatch"], c["launch"])
    wait = np.where(work.tensor > 1, c["wait"] / 2, 0.0)
    blocking = work.blocks * c["blocking"] * THIRD
    products, attention = _products(work, c), work.attention / (c["attention"] * TERA)
    elements = THIRD * (c["stream"] * work.stream + work.inner) / (c["memory"] * GIGA)
    kernels = c["kernels"] * THIRD
    sent = _sent(work, c)
    copied = (work.copied + work.cast) / (c["memory"] * GIGA)
    collectives = left(work.gathers * gather(work, c), products, work.overlaps, c, "exposed_tensor")
    scores = (work.scores * c["scores"] * THIRD + work.softmax) / (c["memory"] * GIGA)
    ring = _ring(work, c, attention)
    forward_card = products + attention + scores + elements + kernels + collectives + ring + sent
    forward_card = forward_card + copied
    back = left(work.gathers_back * gather(work, c), products, work.overlaps, c, "exposed_tensor")
    inner = work.attention_back / (c["attention"] * TERA)
    moved = work.scores * c["scores"] * 2 * THIRD + work.softmax_back + work.cast_back
    inputs = products + inner + (moved + 2 * work.copied) / (c["memory"] * GIGA)
    inputs = inputs + 2 * elements + kernels + back + _ring(work, c, inner, 2) + sent
    weights = products + kernels
    once = together(forward_card, host, wait, work)
    again = work.again_products * products + work.again_attention * (attention + scores)
    again = again + work.again_elements * elements
    whole = once + blocking - (1 - work.again_products) * products
    again = np.where(work.again_all > 0, whole, again)
    return KernelTimes(
        forward=once + blocking,
        backward=together(inputs + weights, 2 * host, wait, work) + again + 2 * blocking,
        input_backward=together(inputs, host, wait, work) + again + blocking,
        weight_backward=slower(weights, host, work) + blocking,
        embedding=_embedding(work, c),
        head=_head(work, c),
        message=message(work.message, work.overlaps, c),
    )


def message(sent: float | Floats, overlaps: float | Floats, c: Constants) -> Floats:
    """Milliseconds that a stage waits for a message of so many bytes to the next.

    Parameters
    ----------
    sent
        Bytes of one card.
    overlaps
        Above 0 where the software overlaps messages.
    """
    felt = np.where(np.asarray(overlaps) > 0, c["exposed_message"], 0.9)
    return np.asarray(felt * (sent / (c["message"] * GIGA) + 60 * US))


def slower(card: Floats, host: Floats, work: MicrobatchWork) -> Floats:
    """The greater of the two, smoothly: never less than either.

    Parameters
    ----------
    card, host
        Durations in one unit, above 0, of shapes that broadcast.
    """
    power = np.where(work.mixed > 0, SOFT, SHARP)
    most, least = np.maximum(card, host), np.minimum(card, host)
    return np.asarray(most * (1 + (least / most) ** power) ** (1 / power))


def gather(work: MicrobatchWork, c: Constants) -> Floats:
    """One gather or scatter of the stream in the tensor group; 0 where there is none."""
    t = work.tensor
    part = np.where(t <= 1, 1.0, np.where(t <= 2, c["group_2"], 1.0))
    part = np.where((t > 2) & (t <= 4), c["group_4"], part)
    rate = np.where(work.spans_nodes > 0, c["network_group"], c["group"] * part)
    moved = (t - 1) / t * work.hidden
    start = work.starts * np.log2(t) * c["collective"] * US
    return np.asarray(start + moved / (rate * GIGA))


def together(card: Floats, host: Floats, wait: Floats, work: MicrobatchWork) -> Floats:
    """A pass of a card that waits for others of its group as far as it keeps up with its host.

    Parameters
    ----------
    card, host, wait
        Durations in one unit, of shapes that broadcast: of the card's own work, of the host that
        launches it, and of what the card waits for.
    """
    return slower(card + np.minimum(wait, host) * np.minimum(1.0, host / card), host, work)


def left(
    collective: Floats, beside: Floats, overlaps: float | Floats, c: Constants, share: str
) -> Floats:
    """What of a collective is waited for; at most as much is hidden as runs beside it.

    Parameters
    ----------
    collective
        Milliseconds of the collective alone.
    beside
        Milliseconds of what runs beside it.
    overlaps
        Above 0 where the software overlaps the two.
    share
        The name of the constant that says what part stays exposed.

    Returns
    -------
    Floats
        Milliseconds that are waited for.
    """
    hidden = np.where(np.asarray(overlaps) > 0, 1 - np.minimum(c[share], 1.0), 0.0)
    return np.asarray(collective - np.minimum(hidden * collective, beside))


def _products(work: MicrobatchWork, c: Constants) -> Floats:
    bits = work.half + work.eighth / c["fp8"]
    grouped = (work.expert_half + work.expert_eighth / c["fp8"]) / c["grouped"]
    operands = c["operands"] * (work.operands + work.expert_operands)
    return np.asarray((bits + grouped) / (c["matmul"] * TERA) + operands / (c["memory"] * GIGA))


def _ring(work: MicrobatchWork, c: Constants, attention: Floats, times: float = 1) -> Floats:
    sent = work.ring / (c["gradient"] * GIGA) + work.ring_out / (c["card_network"] * GIGA)
    sent = times * sent + work.ring_steps * c["collective"] * US
    return left(sent, attention, 1.0, c, "exposed_context")


def _sent(work: MicrobatchWork, c: Constants) -> Floats:
    """Copies of tokens there and back, in one pass."""
    sent = work.sent / (c["gradient"] * GIGA) + work.sent_out / (c["exchange"] * GIGA)
    sent = 2 * (sent + work.sent_steps * c["collective"] * US)
    return np.asarray(c["exposed_expert"] * sent)


def _embedding(work: MicrobatchWork, c: Constants) -> Floats:
    moved = ENDS * work.hidden / (c["memory"] * GIGA)
    return np.asarray(moved + AT_EMBEDDING * c["head"] + 2 * gather(work, c))


def _head(work: MicrobatchWork, c: Constants) -> Floats:
    rate = np.where(work.is_odd > 0, c["odd"], 1.0)
    memory = c["memory"] * GIGA
    products = work.head / (c["matmul"] * TERA) + c["operands"] * work.head_operands / memory
    moved = (work.logits * c["logits"] + ENDS * work.hidden) / memory
    return np.asarray(3 * products / rate + moved + 4 * gather(work, c) + c["head"])
