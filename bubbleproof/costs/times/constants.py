"""The constants of the model of times: what each means, its unit, and where a fit starts.

A fit starts from the data sheet of the card and stays near it where rows say nothing: ``spread`` is
how far (as a standard deviation of the logarithm) a constant may well be from its start. ``few``
marks those that are fitted where there are few rows; the others then stay at their start.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bubbleproof.costs.times.cards import Card


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """One number that is fitted; ``start`` gives it for a card."""

    name: str
    unit: str
    meaning: str
    spread: float
    start: Callable[[Card], float]
    few: bool = False


def _of_ring(part: float) -> Callable[[Card], float]:
    return lambda card: 1.0 if card.switch_reduces else part


def _is(value: float) -> Callable[[Card], float]:
    return lambda _: value


# A card of A100's kind was driven by slower software: what the host needs is told by the rows.
CONSTANTS = (
    Constant(
        name="matmul",
        unit="TFLOP/s",
        spread=0.15,
        few=True,
        meaning="rate of large matrix products",
        start=lambda card: card.reached * card.half_tflops,
    ),
    Constant(
        name="half_side",
        unit="numbers",
        spread=0.8,
        meaning="a matrix product whose smallest side is this long runs at half the rate",
        start=_is(100.0),
    ),
    Constant(
        name="memory",
        unit="GB/s",
        spread=0.15,
        few=True,
        meaning="memory bandwidth that kernels reach",
        start=lambda card: 0.7 * card.memory_gbs,
    ),
    Constant(
        name="kernels",
        unit="ms",
        spread=0.7,
        few=True,
        meaning="of a layer's forward and backward, on the card however small the tensors are",
        start=_is(0.5),
    ),
    Constant(
        name="launch",
        unit="ms",
        spread=0.5,
        few=True,
        meaning="for which the host is busy with a layer's forward and backward: never faster",
        start=_is(2.0),
    ),
    Constant(
        name="wait",
        unit="ms",
        spread=1.0,
        few=True,
        meaning="that the cards of a tensor group wait for each other in a layer, there and back",
        start=_is(0.4),
    ),
    Constant(
        name="group",
        unit="GB/s",
        spread=0.4,
        few=True,
        meaning="that each card of a tensor group of 5 or more moves in an all-reduce",
        start=lambda card: 0.67 * card.link_gbs,
    ),
    *(
        Constant(
            name=f"group_{group}",
            unit="1",
            spread=0.4,
            meaning=f"part of that which a tensor group of {cards} reaches",
            start=_of_ring(part),
        )
        for group, cards, part in ((2, "2", 0.6), (4, "3 or 4", 0.75))
    ),
    Constant(
        name="collective",
        unit="us",
        spread=0.7,
        few=True,
        meaning="of a collective for each doubling of its group, however small it is",
        start=_is(45.0),
    ),
    Constant(
        name="network_group",
        unit="GB/s",
        spread=0.2,
        meaning="of a node, in an all-reduce of a tensor group that spans nodes",
        start=lambda card: 0.9 * card.network_gbs,
    ),
    Constant(
        name="message",
        unit="GB/s",
        spread=0.7,
        meaning="from a stage to the next",
        start=lambda card: card.network_gbs / 8,
    ),
    Constant(
        name="gradient",
        unit="GB/s",
        spread=0.3,
        few=True,
        meaning="that each card moves in the gradients' all-reduce within a node",
        start=lambda card: 0.67 * card.link_gbs,
    ),
    Constant(
        name="network_gradient",
        unit="GB/s",
        spread=0.2,
        meaning="of a node, in the gradients' all-reduce between nodes",
        start=lambda card: 0.9 * card.network_gbs,
    ),
    Constant(
        name="odd",
        unit="1",
        spread=0.4,
        meaning="part of the rate of a product with a side that is no multiple of 8",
        start=_is(0.4),
    ),
    Constant(
        name="scores",
        unit="passes",
        spread=0.4,
        meaning="over the attention's scores in memory, forward and backward, where they are kept",
        start=_is(14.0),
    ),
    Constant(
        name="stream",
        unit="passes",
        spread=0.4,
        meaning="over a layer's residual stream in memory, forward and backward",
        start=_is(30.0),
    ),
    Constant(
        name="logits",
        unit="bytes",
        spread=0.7,
        meaning="that cross-entropy moves for each logit, forward and backward",
        start=_is(20.0),
    ),
    Constant(
        name="head",
        unit="ms",
        spread=0.7,
        meaning="that head and loss take beside their products, forward and backward",
        start=_is(2.0),
    ),
    Constant(
        name="iteration",
        unit="ms",
        spread=1.0,
        few=True,
        meaning="of an iteration beside all that",
        start=_is(1.0),
    ),
)
NAMES = tuple(constant.name for constant in CONSTANTS)


def starts(card: Card) -> dict[str, float]:
    """Every constant where its fit starts."""
    return {constant.name: constant.start(card) for constant in CONSTANTS}


def require_constants(values: Mapping[str, float]) -> None:
    """Raise ``ValueError`` for a constant that is missing, unknown, or not above 0."""
    for name in NAMES:
        if name not in values:
            raise ValueError(f"the constant {name} is missing")
    for name, value in values.items():
        if name not in NAMES:
            near = difflib.get_close_matches(name, NAMES, n=3, cutoff=0) or NAMES
            raise ValueError(f"no constant {name[:40]!r}; the nearest are {', '.join(near)}")
        if not 0 < value < float("inf"):
            raise ValueError(f"the constant {name} must be above 0, got {value}")
