"""The cards that we know by name: one file each, ``costs/cards/*.toml``."""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import fields
from functools import lru_cache
from pathlib import Path

from bubbleproof.costs.times.cards import Card

FOLDER = Path(__file__).parent.parent / "cards"


@lru_cache(maxsize=1)
def cards() -> dict[str, Card]:
    """All cards by name."""
    return {file.stem: card_of(file.stem, file) for file in sorted(FOLDER.glob("*.toml"))}


def card_of(name: str, file: Path) -> Card:
    """The card that a file describes.

    Parameters
    ----------
    name
        What the card is to be called.

    Raises
    ------
    ValueError
        For what it lacks or has too much.
    """
    with file.open("rb") as stream:
        content = tomllib.load(stream)
    known = {field.name for field in fields(Card)} - {"name"}
    if wrong := sorted(known ^ set(content)):
        raise ValueError(f"{file}: a card has {', '.join(sorted(known))}; differs in {wrong[0]}")
    return Card(name=name, **content)


def card(name: str) -> Card:
    """The card of a name, whatever its case.

    Parameters
    ----------
    name
        A listed name, whatever its case.

    Raises
    ------
    ValueError
        With the nearest names.
    """
    found = cards().get(name.lower())
    if found is None:
        near = ", ".join(nearest_cards(name))
        raise ValueError(f"no card {name[:60]!r}; the nearest are {near}")
    return found


def nearest_cards(name: str) -> tuple[str, ...]:
    """The names that begin like this one, else those most like it, else all of them.

    Parameters
    ----------
    name
        Any text.
    """
    word = name.lower()[:60]
    near = [each for each in cards() if word and each.startswith(word)]
    near = near or difflib.get_close_matches(word, cards(), n=3, cutoff=0.3)
    return tuple(near or cards())
