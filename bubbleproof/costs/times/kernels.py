"""Milliseconds of each pass, from what it computes and moves (``work``) and the constants.

A fused attention's products run at ``attention`` of others' rate. What products in 8 bits read is
cast first (``work.cast_bytes``). They run ``fp8`` times as fast as in 16; what small ones lose
(``half_side``) they lose in the same time.

Where software overlaps them, of all-reduces of t ms beside products of p ms there is left

    t - min((1 - exposed) t, p)

to wait for: ``exposed_tensor`` of them, of what context parallelism sends ``exposed_context``.
Nothing is hidden beyond the products that it can run beside.

A card runs a pass's kernels one after another: matrix products at the rate ``matmul``, each slowed
by 1 + half_side / (its smallest side), memory traffic at ``memory``, all-reduces, and a time that
does not depend on the tensors (``kernels``). Meanwhile the host launches them, which takes
``launch``. A pass takes as long as the slower of the two:

    t = (card^k + host^k)^(1/k),   k = 8: the maximum, smooth where both are alike.

A third of kernels and launches are the forward's, and as much each of I and W; a third of the
traffic is the forward's and the rest I's. A full backward B is I and W as one pass. Where a layer
is recomputed whole, B has one more forward before it.

An all-reduce in a tensor group of t cards takes log2(t) ``collective`` and 2 (t - 1) / t of its
bytes at the rate of such a group; the group that spans nodes goes at the network's. What is sent
all to all moves as gradients do.

Cards of a group wait for each other, since their hosts are not equally fast: ``wait`` for a layer,
half of it in the forward and half in I, in a pass never more than its launches. A card that lags
behind its host notices less: of a wait, min(1, host / card) is felt.

Every function takes constants as numbers, or as arrays that numpy combines with columns of work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bubbleproof.costs.times.work import Floats, MicrobatchWork

Constants = Mapping[str, float] | Mapping[str, Floats]
SHARPNESS = 8
OVERLAP = 1.5
ENDS = 10  # passes over the stream at the embedding, and at the head
THIRD = 1 / 3
PER_MS = {"TFLOP/s": 1e9, "GB/s": 1e6}  # FLOPs and bytes a millisecond
US = 1e-3
ALL_REDUCES = 2  # of a layer's forward, and of its backward
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
    latency: Floats

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
    forward = _forward_card(work, c)
    traffic = (work.scores * c["scores"] + work.stream * c["stream"]) / bytes_in_ms(c["memory"])
    kernels = c["kernels"] * THIRD * work.pieces
    launch = np.asarray(c["launch"] * THIRD * work.launches)
    reduces = (ALL_REDUCES + work.gathers / 2) * all_reduce(work, c)
    wait = np.where(work.tensor > 1, c["wait"] / 2, 0.0)
    products = _matmul(work.input_backward, work.input_thin, c, work.fp8_input)
    products = products + _fused(work.fused_back, c)
    inputs = products + 2 * THIRD * traffic + kernels + left(reduces, products, work.overlaps, c)
    inputs = inputs + exchange(work, c, products) + grouped(work, work.expert_weights, c)
    inputs = inputs + (work.softmax_back + work.cast_back) / bytes_in_ms(c["memory"])
    weights = _matmul(work.weight_backward, work.weight_thin, c, work.fp8_weight) + kernels
    weights = weights + grouped(work, work.expert_gradients, c)
    once = together(forward, launch, wait)
    again = once * work.again_all + _partly_again(work, c)
    return KernelTimes(
        forward=once,
        backward=together(inputs + weights, 2 * launch, wait) + again,
        input_backward=together(inputs, launch, wait) + again,
        weight_backward=slower(weights, launch),
        embedding=_embedding(work, c),
        head=_head(work, c),
        message=np.asarray(work.message / bytes_in_ms(c["message"])),
        latency=np.asarray(c["collective"] * US),
    )


def slower(card: Floats, host: Floats) -> Floats:
    """The greater of the two, smoothly: never less than either, at most a tenth above both.

    Parameters
    ----------
    card, host
        Durations in one unit, above 0, of shapes that broadcast.
    """
    most, least = np.maximum(card, host), np.minimum(card, host)
    return np.asarray(most * (1 + (least / most) ** SHARPNESS) ** (1 / SHARPNESS))


def all_reduce(work: MicrobatchWork, c: Constants) -> Floats:
    """Of one all-reduce of the stream in the tensor group; 0 where there is none."""
    t = work.tensor
    part = np.where(t <= 1, 1.0, np.where(t <= 2, c["group_2"], 1.0))
    part = np.where((t > 2) & (t <= 4), c["group_4"], part)
    rate = np.where(work.spans_nodes > 0, c["network_group"], c["group"] * part)
    moved = 2 * (t - 1) / t * work.hidden
    return np.asarray(np.log2(t) * c["collective"] * US + moved / bytes_in_ms(rate))


def together(card: Floats, host: Floats, wait: Floats) -> Floats:
    """A pass of a card that waits for others of its group as far as it keeps up with its host.

    Parameters
    ----------
    card, host, wait
        Durations in one unit, of shapes that broadcast: of the card's own work, of the host that
        launches it, and of what the card waits for.
    """
    return slower(card + np.minimum(wait, host) * np.minimum(1.0, host / card), host)


def _forward_card(work: MicrobatchWork, c: Constants) -> Floats:
    traffic = (work.scores * c["scores"] + work.stream * c["stream"]) / bytes_in_ms(c["memory"])
    products = _matmul(work.forward, work.forward_thin, c, work.fp8_forward)
    products = products + _fused(work.fused, c)
    return np.asarray(
        products
        + THIRD * (traffic + c["kernels"] * work.pieces)
        + left(ALL_REDUCES * all_reduce(work, c), products, work.overlaps, c)
        + exchange(work, c, products)
        + grouped(work, work.expert_weights, c)
        + (work.softmax + work.cast) / bytes_in_ms(c["memory"])
    )


def grouped(work: MicrobatchWork, moved: Floats, c: Constants) -> Floats:
    """How much longer experts' products take for moving so many bytes of weights or gradients.

    Products of few rows overlap only part of that with their arithmetic. (a^r + b^r)^(1/r), r 1.5,
    is 4 to 11 % below what was measured on B200 of 512 to 1232 rows that add to 32 bits (SimuMax,
    configs/system/b200_bf16_ceperm.json); the greater of both would be 30 to 40 % below.

    Parameters
    ----------
    moved
        Bytes of weights or gradients that the products move.

    Returns
    -------
    Floats
        Milliseconds.
    """
    products = _matmul(work.expert, work.expert_thin, c)
    bytes_ = moved / bytes_in_ms(c["memory"])
    return np.asarray((products**OVERLAP + bytes_**OVERLAP) ** (1 / OVERLAP) - products)


def exchange(work: MicrobatchWork, c: Constants, beside: Floats) -> Floats:
    """Of what a pass of a layer copies and sends all to all.

    Parameters
    ----------
    beside
        Milliseconds of what runs beside it.

    Returns
    -------
    Floats
        Milliseconds that it adds to the pass.
    """
    sent = work.exchanged / bytes_in_ms(c["gradient"])
    sent = sent + work.exchanged_out / bytes_in_ms(c["network_gradient"])
    sent = sent + work.doublings * c["collective"] * US
    waited = left(sent, beside, work.overlaps_exchange, c, "exposed_context")
    return np.asarray(waited + work.copied / bytes_in_ms(c["memory"]))


def left(
    collective: Floats,
    beside: Floats,
    overlaps: Floats,
    c: Constants,
    share: str = "exposed_tensor",
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
    hidden = np.where(overlaps > 0, 1 - np.minimum(c[share], 1.0), 0.0)
    return np.asarray(collective - np.minimum(hidden * collective, beside))


def _partly_again(work: MicrobatchWork, c: Constants) -> Floats:
    """The attention, where that alone is recomputed."""
    traffic = THIRD * work.scores_again * c["scores"] + work.softmax_again
    traffic = traffic / bytes_in_ms(c["memory"])
    return np.asarray(_matmul(work.again, work.again_thin, c) + traffic)


def _embedding(work: MicrobatchWork, c: Constants) -> Floats:
    moved = ENDS * work.hidden / bytes_in_ms(c["memory"])
    return np.asarray(moved + AT_EMBEDDING * c["head"] + all_reduce(work, c))


def _head(work: MicrobatchWork, c: Constants) -> Floats:
    rate = np.where(work.is_odd > 0, c["odd"], 1.0)
    products = 3 * _matmul(work.head, work.head_thin, c) / rate
    moved = (work.logits * c["logits"] + ENDS * work.hidden) / bytes_in_ms(c["memory"])
    return np.asarray(products + moved + 2 * all_reduce(work, c) + c["head"])


def _fused(flops: Floats, c: Constants) -> Floats:
    """How much longer a fused attention takes than other products of as many FLOPs."""
    return np.asarray(flops * (1 / c["attention"] - 1) / (c["matmul"] * PER_MS["TFLOP/s"]))


def _matmul(flops: Floats, thin: Floats, c: Constants, in_fp8: float | Floats = 0.0) -> Floats:
    saved = in_fp8 * (1 - 1 / c["fp8"])
    return np.asarray((flops - saved + c["half_side"] * thin) / (c["matmul"] * PER_MS["TFLOP/s"]))


def bytes_in_ms(rate: float | Floats) -> float | Floats:
    """Bytes in a millisecond.

    Parameters
    ----------
    rate
        GB/s.
    """
    return rate * PER_MS["GB/s"]
