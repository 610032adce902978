"""What a pass of a layer sends all to all, and copies, beside its products: context and experts.

With context parallelism c the attention's heads are exchanged for its tokens: each pass of a layer
sends (c - 1) / c of queries, keys and values and of what the attention puts out, all to all.

Of a mixture with e expert ranks each pass copies a token for each of its k experts, sends
(e - 1) / e of the copies and of their weights all to all, sorts them by expert, and brings back
what the experts make of them: ``COPIES`` passes over the copies' bytes.

Latent attention makes queries, keys and values anew where positions are turned into them: read and
written once a pass.

Attention of plain products has its softmax in one kernel only where the heads of a microbatch on a
card are a multiple of four and the sequence is not too long (Megatron-LM, ``fused_softmax.py``).
Else five operations take its place, in 32 bits: a score is cast, scaled, masked, weighed and cast
back, 37 bytes read and written instead of 4 in the forward, 41 instead of 6 in the backward.
"""

from __future__ import annotations

from math import log2

from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.transformer import NO_EXPERTS, Transformer

ELEMENT = 2  # bytes of a number
HEADS, SEQUENCE = 4, 4096  # of the softmax's kernel: heads in a block, and most tokens
APART = 4  # operations more where the softmax is five
SOFTMAX = (37 - 4, 41 - 6)  # bytes of a score more without it, forward and backward
COPIES = 7  # written; sorted and sorted back, read and written each; read, and summed


def exchanged(model: Transformer, at: Deployment, cards_per_node: int) -> dict[str, float]:
    """What a pass of a layer sends all to all.

    Parameters
    ----------
    cards_per_node
        Cards that share a node's links.
    """
    tokens = at.micro_batch * at.sequence / at.context / at.tensor
    heads = model.query_width + model.kv_width + model.value_width + model.output_width
    copies = 2 * model.active * model.hidden
    within = out = doublings = 0.0
    for group, numbers, times in (
        (at.context, heads, 4),  # queries, keys, values; outputs
        (at.expert, copies, 3),  # copies, their weights; outputs
    ):
        whole = tokens * numbers * ELEMENT
        leaving = _leaving(group, at.tensor, cards_per_node)
        within += whole * ((group - 1) / group - leaving)
        out += whole * leaving * cards_per_node
        doublings += times * log2(group)
    return {"exchanged": within, "exchanged_out": out, "doublings": doublings}


def copied(model: Transformer, at: Deployment) -> float:
    """Bytes that a pass of a layer copies beside its products and the stream."""
    tokens = at.micro_batch * at.sequence / at.context / at.tensor
    copies = COPIES * model.active * model.hidden if model.experts else 0
    heads = model.query_width + model.kv_width + model.value_width if model.kv_rank else 0
    return tokens * ELEMENT * (copies + 2 * heads)


def softmax_bytes(model: Transformer, at: Deployment) -> tuple[float, float]:
    """Bytes that a softmax of several operations moves more than one kernel, forward and back."""
    heads = at.micro_batch * model.heads // at.tensor
    if at.rules.fused_attention or (heads % HEADS == 0 and at.sequence <= SEQUENCE):
        return 0.0, 0.0
    scores = at.sequence / at.context * at.sequence * heads
    return SOFTMAX[0] * scores, SOFTMAX[1] * scores


def plain(model: Transformer) -> Transformer:
    """The model without experts and latent attention, of as many heads."""
    return model.with_changes(**NO_EXPERTS, kv_rank=0, query_rank=0, rope_width=0)


def _leaving(group: int, stride: int, cards_per_node: int) -> float:
    """The part of a group's cards, every ``stride``-th one, that is on other nodes than a card."""
    return max(0.0, 1 - max(1, cards_per_node // stride) / group)
