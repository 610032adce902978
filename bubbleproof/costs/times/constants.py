"""The constants of the model of times: which there are, and where a fit of each starts.

A fit starts from the data sheet of the card; where nothing was measured the start is what holds.
What each constant means, and how far a fit may go, is told in ``fitted_constants``.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping

from bubbleproof.costs.times.cards import Card


def _of_ring(part: float) -> Callable[[Card], float]:
    return lambda card: 1.0 if card.switch_reduces else part


def _is(value: float) -> Callable[[Card], float]:
    return lambda _: value


# Of the rates' ratio on the data sheet: H100 reaches 1290 TFLOP/s in products of 8192 x 8192 x 8192
# (Azure ND H100 v5 benchmark results, cuBLASLt), ``reached`` of 989 are 692: 1.86 of 2.
FP8 = 0.93

# A card of A100's kind was driven by slower software: what the host needs is told by the rows.
STARTS: dict[str, Callable[[Card], float]] = {
    "matmul": lambda card: card.reached * card.half_tflops,
    "half_side": _is(100.0),
    "memory": lambda card: 0.7 * card.memory_gbs,
    "kernels": _is(0.5),
    "launch": _is(2.0),
    "wait": _is(0.4),
    "group": lambda card: 0.67 * card.link_gbs,
    "group_2": _of_ring(0.6),
    "group_4": _of_ring(0.75),
    "collective": _is(45.0),
    "network_group": lambda card: 0.9 * card.network_gbs,
    "message": lambda card: card.network_gbs / 8,
    "gradient": lambda card: 0.67 * card.link_gbs,
    "network_gradient": lambda card: 0.9 * card.network_gbs,
    "odd": _is(0.4),
    "scores": _is(14.0),
    "stream": _is(30.0),
    "logits": _is(20.0),
    "head": _is(2.0),
    "iteration": _is(1.0),
    "attention": _is(1.0),
    "fp8": lambda card: round(max(1.0, FP8 * card.tflops.get("fp8", 0.0) / card.half_tflops), 4),
    "exposed_tensor": _is(0.4),
    "exposed_context": _is(0.4),
    "exposed_gradient": _is(0.4),
}
NAMES = tuple(STARTS)


def starts(card: Card) -> dict[str, float]:
    """Every constant where its fit starts."""
    return {name: start(card) for name, start in STARTS.items()}


def require_constants(values: Mapping[str, float]) -> None:
    """Raise ``ValueError`` for a constant that is missing, unknown, or not above 0.

    Parameters
    ----------
    values
        A value for each constant, by name, in the units that ``constants`` tells.
    """
    for name in NAMES:
        if name not in values:
            raise ValueError(f"the constant {name} is missing")
    for name, value in values.items():
        if name not in NAMES:
            near = difflib.get_close_matches(name, NAMES, n=3, cutoff=0) or NAMES
            raise ValueError(f"no constant {name[:40]!r}; the nearest are {', '.join(near)}")
        if not 0 < value < float("inf"):
            raise ValueError(f"the constant {name} must be above 0, got {value}")
