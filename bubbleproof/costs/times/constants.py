"""The constants of the model of times: which there are, and where a fit of each starts.

A start follows from the card's data sheet and the software's profile (``software``), near a source
of its own, and from a few factors that were fitted once to published rows, of all of them or of a
card or a software: ``calibrated/published.csv``, as ``benchmarks/published_times.py`` writes it.
What each constant means, and how far a fit of one's own rows may go, is told in
``fitted_constants``.
"""

from __future__ import annotations

import csv
import difflib
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

from bubbleproof.costs.times.cards import Card
from bubbleproof.costs.times.software import Software

PUBLISHED = Path(__file__).parent.parent / "calibrated" / "published.csv"


def _of_ring(part: float) -> Callable[[Card], float]:
    return lambda card: 1.0 if card.switch_reduces else part


def _is(value: float) -> Callable[[Card], float]:
    return lambda _: value


STARTS: dict[str, Callable[[Card], float]] = {
    "matmul": lambda card: card.reached * card.half_tflops,
    "fp8": lambda card: max(1.0, card.tflops.get("fp8", 0.0) / card.half_tflops),
    "grouped": _is(1.0),
    "operands": _is(0.72),
    "attention": lambda card: 0.57 * card.reached * card.half_tflops,
    "memory": lambda card: 0.72 * card.memory_gbs,
    "stream": _is(34.0),
    "scores": _is(20.0),
    "logits": _is(23.0),
    "kernels": _is(0.05),
    "launch": _is(1.2),
    "dispatch": _is(7.0),
    "blocking": _is(5.0),
    "wait": _is(0.05),
    "group": lambda card: 0.77 * card.link_gbs,
    "group_2": _of_ring(0.8),
    "group_4": _of_ring(0.9),
    "collective": _is(38.0),
    "network_group": lambda card: 0.9 * card.network_gbs,
    "message": lambda card: 0.3 * card.network_gbs / card.cards_per_node,
    "gradient": lambda card: 0.8 * card.link_gbs,
    "network_gradient": lambda card: 0.8 * card.network_gbs,
    "card_network": lambda card: 0.8 * card.network_gbs / card.cards_per_node,
    "exchange": lambda card: 1.0 * card.network_gbs / card.cards_per_node,
    "odd": _is(0.4),
    "head": _is(0.5),
    "iteration": _is(80.0),
    "exposed_tensor": _is(0.31),
    "exposed_context": _is(0.17),
    "exposed_gradient": _is(0.3),
    "exposed_shard": _is(0.14),
    "exposed_expert": _is(0.63),
    "exposed_message": _is(0.28),
    "factor": _is(1.0),
    "straggler": _is(0.005),
}
NAMES = tuple(STARTS)


def starts(card: Card, runs: Software | None = None) -> dict[str, float]:
    """Every constant where its fit starts, of a card and of the software that runs on it."""
    found = sheet_starts(card, runs)
    for name, _, factor in published_factors(card, runs):
        found[name] *= factor
    return found


def published_factors(card: Card, runs: Software | None = None) -> list[tuple[str, str, float]]:
    """What was fitted to published rows of a card and software: the constant, what its factor is
    of, and the factor."""
    of = {"all", card.name.partition("-")[0], *(() if runs is None else (runs.name, runs.like))}
    return [each for each in _published() if each[1] in of]


def sheet_starts(card: Card, runs: Software | None = None) -> dict[str, float]:
    """The same before anything was fitted."""
    found = {name: start(card) for name, start in STARTS.items()}
    if runs is None:
        return found
    most = dict(runs.attention_most).get(card.name, found["attention"])
    found["attention"] = min(found["attention"], most)
    of_software = dict(runs.constants)
    return {name: value * of_software.get(name, 1.0) for name, value in found.items()}


@lru_cache(maxsize=1)
def _published() -> tuple[tuple[str, str, float], ...]:
    """Constants, what they are of, and the factors that were fitted."""
    with PUBLISHED.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return tuple((row["constant"], row["of"], float(row["factor"])) for row in rows)


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
