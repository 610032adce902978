"""The constants of the model of times: which there are, and where a fit of each starts.

They stand in ``costs/constants.toml``. A start follows from the card's data sheet (``start`` times
each field that it is ``of``, divided by the one that it is ``per``; ``switched``, where switches
reduce) and the software's profile (``software``), near a source of its own, and from a few factors
that were fitted once to published rows, of all of them or of a card or a software:
``calibrated/published.csv``, as ``benchmarks/published_times.py`` writes it.

``spread`` is how far (as a standard deviation of the logarithm) a constant may well be from its
start, near which a fit stays where rows say nothing. ``few`` marks those that are fitted where
there are few rows; the others then stay at their start. ``models`` are how many models rows must be
of for a fit: rows of one do not tell a constant apart from others that differ from it between
models alone.
"""

from __future__ import annotations

import csv
import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from pathlib import Path

from bubbleproof.costs.times.cards import Card
from bubbleproof.costs.times.software import Software

FILE = Path(__file__).parent.parent / "constants.toml"
PUBLISHED = FILE.parent / "calibrated" / "published.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """One number that is fitted."""

    name: str
    unit: str
    meaning: str
    spread: float
    start: float
    of: tuple[str, ...] = ()
    per: str = ""
    switched: float | None = None
    few: bool = False
    models: int = 1

    def starts(self, card: Card) -> float:
        """Where its fit starts by the data sheet of a card."""
        if card.switch_reduces and self.switched is not None:
            return self.switched
        found = prod((_field(card, name) for name in self.of), start=self.start)
        return found / getattr(card, self.per) if self.per else found


def _field(card: Card, name: str) -> float:
    """A field; ``fp8_gain``: how much faster products are in 8 bits, 1 where there is no rate."""
    if name == "fp8_gain":
        return max(1.0, card.tflops.get("fp8", 0.0) / card.half_tflops)
    return float(getattr(card, name))


def _constants() -> tuple[Constant, ...]:
    with FILE.open("rb") as file:
        rows = tomllib.load(file)
    return tuple(
        Constant(name=name, **{**row, "of": tuple(row.get("of", ()))}) for name, row in rows.items()
    )


CONSTANTS = _constants()
NAMES = tuple(each.name for each in CONSTANTS)


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
    found = {each.name: each.starts(card) for each in CONSTANTS}
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
