"""What each constant of the model of times means, its unit, and how a fit treats it.

``spread`` is how far (as a standard deviation of the logarithm) a constant may well be from its
start (``constants``), near which a fit stays where rows say nothing. ``few`` marks those that are
fitted where there are few rows; the others then stay at their start. ``models`` are how many models
rows must be of for a fit: rows of one do not tell a constant apart from others that differ from it
between models alone.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """One number that is fitted."""

    name: str
    unit: str
    meaning: str
    spread: float
    few: bool = False
    models: int = 1


# name, unit, spread, whether few rows tell it, meaning
_TABLE = (
    ("matmul", "TFLOP/s", 0.15, True, "rate of large matrix products"),
    ("fp8", "1", 0.1, True, "rate of products in 8 bits over that in 16"),
    ("grouped", "1", 0.15, False, "rate of experts' products over that of others"),
    (
        "operands",
        "passes",
        0.3,
        False,
        "over a product's operands in memory, beside its arithmetic",
    ),
    ("attention", "TFLOP/s", 0.2, True, "rate of a fused attention, and of a plain one's products"),
    ("memory", "GB/s", 0.15, True, "memory bandwidth that kernels reach"),
    ("stream", "passes", 0.4, False, "over a layer's residual stream, forward and backward"),
    (
        "scores",
        "passes",
        0.4,
        False,
        "over the attention's scores in memory, forward and backward, where they are kept",
    ),
    ("logits", "bytes", 0.5, False, "that cross-entropy moves for each logit, both ways"),
    ("kernels", "ms", 1.0, True, "between the kernels of a layer, however small its tensors are"),
    ("launch", "ms", 0.5, True, "for which the host is busy with a layer, forward and backward"),
    ("dispatch", "ms", 0.3, True, "the same of a layer with experts"),
    ("blocking", "ms", 0.3, False, "of a layer and microbatch, where every launch blocks"),
    ("wait", "ms", 1.0, True, "that the cards of a tensor group wait for each other in a layer"),
    ("group", "GB/s", 0.6, True, "that each card of a tensor group moves each way"),
    ("group_2", "1", 0.4, False, "part of that which a tensor group of 2 reaches"),
    ("group_4", "1", 0.4, False, "part of that which a tensor group of 3 or 4 reaches"),
    ("collective", "us", 0.5, True, "of a collective for each doubling of its group"),
    ("network_group", "GB/s", 0.2, False, "of a node, in a tensor group that spans nodes"),
    ("message", "GB/s", 0.5, False, "of a card, from a stage to the next"),
    ("gradient", "GB/s", 0.3, True, "that each card moves among replicas and experts of a node"),
    ("network_gradient", "GB/s", 0.2, False, "of a node, among replicas between nodes"),
    ("card_network", "GB/s", 0.2, False, "of a card, in a ring of keys and values between nodes"),
    ("exchange", "GB/s", 0.2, False, "of a card, to experts in other nodes"),
    ("odd", "1", 0.4, False, "part of the rate of the head where a side is no multiple of 8"),
    ("head", "ms", 0.7, False, "that head and loss take beside their products, both ways"),
    ("iteration", "ms", 0.7, True, "of an iteration beside all that"),
    (
        "exposed_tensor",
        "1",
        0.4,
        True,
        "part of a tensor group's collectives that is waited for, where software overlaps them",
    ),
    ("exposed_context", "1", 0.4, False, "the same of what context parallelism sends"),
    ("exposed_gradient", "1", 0.4, True, "the same of gradients and weights at an iteration's end"),
    ("exposed_shard", "1", 0.4, False, "the same of weights and gradients in each microbatch"),
    ("exposed_expert", "1", 0.2, False, "part of what experts are sent that is waited for"),
    ("exposed_message", "1", 0.4, False, "part of messages between stages, as above"),
    ("factor", "1", 0.08, False, "on all that a card does, by software"),
    ("straggler", "1", 0.5, False, "longer for each doubling of nodes"),
)
CONSTANTS = tuple(
    Constant(
        name=name,
        unit=unit,
        spread=spread,
        few=few,
        meaning=meaning,
        models=2 if name == "attention" else 1,
    )
    for name, unit, spread, few, meaning in _TABLE
)
