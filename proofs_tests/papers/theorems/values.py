"""Closed forms and obligations at numbers, without Z3."""

from __future__ import annotations

import random
from fractions import Fraction

from bubbleproof.papers.theorems.polynomials import Coefficient, Symbol
from bubbleproof.papers.theorems.theorem import Obligation


def numbers(counter_model: dict[str, str]) -> dict[str, Coefficient]:
    """A printed counter-model as numbers."""
    return {name: Fraction(text) for name, text in counter_model.items()}


def symbols(obligation: Obligation) -> list[Symbol]:
    """The symbols of an obligation, in the order of their names."""
    found = (a.polynomial.symbols for a in obligation.formula.atoms())
    return sorted(frozenset().union(*found))


def drawn(obligation: Obligation, seed: int) -> dict[str, Coefficient]:
    """Small numbers for an obligation's symbols: indices 0 to 6, times 1/2 to 12."""
    chance = random.Random(seed)
    return {
        s.name: Fraction(chance.randint(1, 24), 2) if s.is_time else chance.randint(0, 6)
        for s in symbols(obligation)
    }
