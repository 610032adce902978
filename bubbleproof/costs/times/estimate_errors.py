"""How far an estimate may be off: the errors of published rows that no constant had seen.

Each row of ``calibrated/left_out.csv`` was estimated by constants that were fitted without its
source, or is one that nothing was ever fitted to (``benchmarks/published_times.py``). Of an
estimate those rows are asked that are nearest to it in card, software, kind of model and size, at
most ``ALIKE`` of one source and model; its band is what nine of ten of them keep, never less than
``LEAST``, since two releases of one software differ by as much. They are so many, and of so many
sources, that of each source's rows nine of ten lie within the bands that the others give. An
estimate of what no row had (a card, a software, a mixture on it, ten times the cards) says so, and
its band is at least ``UNSEEN``: by leaving whole cards out, what a data sheet alone is worth.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import log2
from pathlib import Path

import numpy as np

from bubbleproof.costs.times.cards import Card
from bubbleproof.costs.times.software import Software
from bubbleproof.costs.transformer import Transformer

FILE = Path(__file__).parent.parent / "calibrated" / "left_out.csv"
LEAST, UNSEEN = 0.05, 0.25
ENOUGH, ALIKE = 16, 4  # rows that a band is taken from, and those of one source and model
PART = 0.9  # of these rows within it
APART = {"card": 6.0, "software": 8.0, "kind": 6.0, "products": 1.0}  # doublings of size
SAME = ("card", "software", "kind")
FAR = 3.3  # doublings of cards beyond any row's


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateError:
    """The band of an estimate: nine of ten lie within ``band`` of it, either way. ``cards`` are
    those of the rows it is taken from; ``beyond`` tells what of the estimate no row had, in words;
    none: nothing."""

    band: float
    cards: tuple[str, ...]
    beyond: tuple[str, ...] = ()

    @property
    def told(self) -> str:
        """In a few words."""
        of = " and ".join(name.upper() for name in self.cards)
        why = f"not measured: {', '.join(self.beyond)}" if self.beyond else f"{of}, rows left out"
        return f"± {100 * self.band:.0f} % ({why})"

    def is_even(self, value: float, best: float) -> bool:
        """Whether an estimate cannot be told from the best.

        Parameters
        ----------
        value, best
            The two, of one unit.
        """
        return value <= (1 + self.band) * best


@dataclass(frozen=True, slots=True, kw_only=True)
class _LeftOut:
    source: str
    model: str
    card: str
    software: str
    kind: str
    products: str
    cards: int
    parameters: float
    error: float


def error_of(
    model: Transformer, card: Card, runs: Software, cards: int, *, but: str = ""
) -> EstimateError:
    """The band of an estimate.

    Parameters
    ----------
    model
        What is trained.
    card, cards
        On what, and how many.
    runs
        The software.
    but
        A source whose rows are not asked: of an estimate of its own.
    """
    rows = [row for row in _left_out() if row.source != but]
    asked = _asked(model, card, runs, cards)
    near = _near(asked, rows)
    errors = [abs(row.error) for row in near]
    band = max(LEAST, float(np.quantile(errors, PART, method="higher")))
    beyond = _beyond(asked, rows)
    return EstimateError(
        band=round(max(band, UNSEEN) if beyond else band, 3),
        cards=tuple(dict.fromkeys(row.card for row in near)),
        beyond=beyond,
    )


def error_of_one(model: Transformer, card: Card, runs: Software, cards: int) -> tuple[float, int]:
    """How far other rows are off once one row is met by a factor, and of how many pairs that is.

    Nine of ten pairs are off by less from each other, of the rows that the band of an estimate is
    taken from, as far as they are of such a card, software and kind of model.

    Parameters
    ----------
    model
        What is trained.
    card, cards
        On what, and how many.
    runs
        The software.
    """
    asked = _asked(model, card, runs, cards)
    alike = [row for row in _left_out() if all(getattr(row, n) == getattr(asked, n) for n in SAME)]
    near = _near(asked, alike)
    pairs = [abs(one.error - other.error) for one, other in combinations(near, 2)]
    band = float(np.quantile(pairs, PART)) if len(pairs) >= ENOUGH else UNSEEN
    return round(band, 3), len(pairs)


def _asked(model: Transformer, card: Card, runs: Software, cards: int) -> _LeftOut:
    """An estimate as a row, whose error nobody knows."""
    return _LeftOut(
        source="",
        model="",
        card=card.name.partition("-")[0],
        software=runs.name,
        kind="mixture" if any(kind.experts for kind, _ in model.layer_runs) else "dense",
        products=runs.products,
        cards=cards,
        parameters=12.0 * model.layers * model.hidden**2,
        error=0.0,
    )


def _near(asked: _LeftOut, rows: Iterable[_LeftOut]) -> list[_LeftOut]:
    """The rows that a band is taken from, the nearest first."""
    near: list[_LeftOut] = []
    alike: Counter[tuple[str, str]] = Counter()
    for row in sorted(rows, key=lambda row: (_apart(asked, row), -abs(row.error))):
        alike[row.source, row.model] += 1
        if len(near) < ENOUGH and alike[row.source, row.model] <= ALIKE:
            near.append(row)
    return near


def _apart(one: _LeftOut, other: _LeftOut) -> float:
    """How unlike two rows are, in doublings of size."""
    names = float(sum(more for n, more in APART.items() if getattr(one, n) != getattr(other, n)))
    sizes = abs(log2(one.cards / other.cards)) / 2 + abs(log2(one.parameters / other.parameters))
    return names + sizes


def _beyond(asked: _LeftOut, rows: Sequence[_LeftOut]) -> tuple[str, ...]:
    found = []
    for name in ("card", "software"):
        value = getattr(asked, name)
        if all(getattr(row, name) != value for row in rows):
            found.append(f"{name} {value}")
    of_kind = [row for row in rows if row.kind == asked.kind]
    if not found and all(row.card != asked.card for row in of_kind):
        found.append(f"a {asked.kind} model on {asked.card}")
    if log2(asked.cards / max(row.cards for row in rows)) > FAR:
        found.append(f"so many cards as {asked.cards}")
    return tuple(found)


@lru_cache(maxsize=1)
def _left_out() -> tuple[_LeftOut, ...]:
    with FILE.open(newline="", encoding="utf-8") as file:
        return tuple(
            _LeftOut(
                source=row["source"],
                model=row["model"],
                card=row["card"],
                software=row["software"],
                kind=row["kind"],
                products=row["products"],
                cards=int(row["cards"]),
                parameters=float(row["parameters"]),
                error=float(row["error"]),
            )
            for row in csv.DictReader(file)
        )
