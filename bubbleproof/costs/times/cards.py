"""Cards: what the data sheet of a kind of accelerator says, ``costs/cards/*.toml``.

Rates are in GB/s (10^9 bytes) and TFLOP/s (10^12, dense), memory in GiB. ``link_gbs`` is what a
card sends to others of its node, ``network_gbs`` what a node sends to other nodes, each way.
``reached`` is no data sheet's: the part of the 16-bit rate that large products keep up, which falls
from card to card as power limits them; where a fit starts, and what holds where there is none.
``switch_reduces``: switches between the cards of a node add up what passes them (NVLink SHARP, from
the third generation of NVSwitch on), so that a small group moves as much as a large one.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "cards"
HALF = ("bf16", "fp16")


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A kind of accelerator; ``tflops`` by type of number."""

    name: str
    title: str
    memory_gib: float
    memory_gbs: float
    link_gbs: float
    network_gbs: float
    cards_per_node: int
    reached: float
    tflops: Mapping[str, float]
    switch_reduces: bool = False

    def __post_init__(self) -> None:
        numbers = [name for name, kind in self.__annotations__.items() if kind in ("int", "float")]
        named = {name: getattr(self, name) for name in numbers}
        named |= {f"tflops.{kind}": rate for kind, rate in self.tflops.items()}
        for name, value in named.items():
            if not value > 0:
                raise ValueError(f"card {self.name}: {name} must be above 0, got {value}")
        if not any(kind in self.tflops for kind in HALF):
            raise ValueError(f"card {self.name}: tflops needs bf16 or fp16")

    @property
    def half_tflops(self) -> float:
        """The dense rate of 16-bit products."""
        return max(self.tflops.get(kind, 0.0) for kind in HALF)

    @property
    def memory_bytes(self) -> int:
        """All of its memory."""
        return int(self.memory_gib * 2**30)


@lru_cache(maxsize=1)
def cards() -> dict[str, Card]:
    """All cards by name."""
    return {file.stem: card_of(file.stem, file) for file in sorted(FOLDER.glob("*.toml"))}


def card_of(name: str, file: Path) -> Card:
    """The card that a file describes. Raises ``ValueError`` for what it lacks or has too much."""
    with file.open("rb") as stream:
        content = tomllib.load(stream)
    known = {field.name for field in fields(Card)} - {"name"}
    if wrong := sorted(known ^ set(content)):
        raise ValueError(f"{file}: a card has {', '.join(sorted(known))}; differs in {wrong[0]}")
    return Card(name=name, **content)


def card(name: str) -> Card:
    """The card of a name, whatever its case. Raises ``ValueError`` with the nearest names."""
    found = cards().get(name.lower())
    if found is None:
        near = ", ".join(nearest_cards(name))
        raise ValueError(f"no card {name[:60]!r}; the nearest are {near}")
    return found


def nearest_cards(name: str) -> tuple[str, ...]:
    """The names that begin like this one, else those most like it, else all of them."""
    word = name.lower()[:60]
    near = [each for each in cards() if word and each.startswith(word)]
    near = near or difflib.get_close_matches(word, cards(), n=3, cutoff=0.3)
    return tuple(near or cards())
