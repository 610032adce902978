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


CONSTANTS = (
    Constant(
        name="matmul",
        unit="TFLOP/s",
        spread=0.15,
        few=True,
        meaning="rate of large matrix products",
    ),
    Constant(
        name="half_side",
        unit="numbers",
        spread=0.8,
        meaning="a matrix product whose smallest side is this long runs at half the rate",
    ),
    Constant(
        name="memory",
        unit="GB/s",
        spread=0.15,
        few=True,
        meaning="memory bandwidth that kernels reach",
    ),
    Constant(
        name="kernels",
        unit="ms",
        spread=0.7,
        few=True,
        meaning="of a layer's forward and backward, on the card however small the tensors are",
    ),
    Constant(
        name="launch",
        unit="ms",
        spread=0.5,
        few=True,
        meaning="for which the host is busy with a layer's forward and backward: never faster",
    ),
    Constant(
        name="wait",
        unit="ms",
        spread=1.0,
        few=True,
        meaning="that the cards of a tensor group wait for each other in a layer, there and back",
    ),
    Constant(
        name="group",
        unit="GB/s",
        spread=0.4,
        few=True,
        meaning="that each card of a tensor group of 5 or more moves in an all-reduce",
    ),
    *(
        Constant(
            name=f"group_{group}",
            unit="1",
            spread=0.4,
            meaning=f"part of that which a tensor group of {cards} reaches",
        )
        for group, cards in ((2, "2"), (4, "3 or 4"))
    ),
    Constant(
        name="collective",
        unit="us",
        spread=0.7,
        few=True,
        meaning="of a collective for each doubling of its group, however small it is",
    ),
    Constant(
        name="network_group",
        unit="GB/s",
        spread=0.2,
        meaning="of a node, in an all-reduce of a tensor group that spans nodes",
    ),
    Constant(
        name="message",
        unit="GB/s",
        spread=0.7,
        meaning="from a stage to the next",
    ),
    Constant(
        name="gradient",
        unit="GB/s",
        spread=0.3,
        few=True,
        meaning="that each card moves in the gradients' all-reduce within a node",
    ),
    Constant(
        name="network_gradient",
        unit="GB/s",
        spread=0.2,
        meaning="of a node, in the gradients' all-reduce between nodes",
    ),
    Constant(
        name="odd",
        unit="1",
        spread=0.4,
        meaning="part of the rate of a product with a side that is no multiple of 8",
    ),
    Constant(
        name="scores",
        unit="passes",
        spread=0.4,
        meaning="over the attention's scores in memory, forward and backward, where they are kept",
    ),
    Constant(
        name="stream",
        unit="passes",
        spread=0.4,
        meaning="over a layer's residual stream in memory, forward and backward",
    ),
    Constant(
        name="logits",
        unit="bytes",
        spread=0.7,
        meaning="that cross-entropy moves for each logit, forward and backward",
    ),
    Constant(
        name="head",
        unit="ms",
        spread=0.7,
        meaning="that head and loss take beside their products, forward and backward",
    ),
    Constant(
        name="iteration",
        unit="ms",
        spread=1.0,
        few=True,
        meaning="of an iteration beside all that",
    ),
    Constant(
        name="attention",
        unit="1",
        spread=0.3,
        few=True,
        models=2,
        meaning="rate of a fused attention's products over that of others",
    ),
    Constant(
        name="fp8",
        unit="1",
        spread=0.2,
        few=True,
        meaning="rate of products in 8 bits over that in 16",
    ),
    *(
        Constant(
            name=f"exposed_{kind}",
            unit="1",
            spread=0.7,
            few=True,
            meaning=f"part of {what} that is waited for, where software overlaps them",
        )
        for kind, what in (
            ("tensor", "a tensor group's collectives"),
            ("context", "what context parallelism sends"),
            ("gradient", "the gradients' and weights' exchange"),
        )
    ),
)
