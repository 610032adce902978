"""Polynomials over named symbols, kept expanded, so that a product of symbols is one monomial.

An index symbol (p, m, i, j, ...) stands for an integer, a time symbol (tF, tB, a start, ...) for a
real number of ticks. A polynomial is either an index or a time: every monomial of a time has
exactly one time symbol.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

Coefficient = int | Fraction
Environment = Mapping[str, Coefficient]


class Symbol(NamedTuple):
    """A name, and whether it stands for a time (ticks, real) or for an index (integer)."""

    name: str
    is_time: bool


Monomial = tuple[Symbol, ...]


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A sum of integer coefficients times sorted monomials; no coefficient is 0.

    Raises ``ValueError`` where an index is added to a time or times are multiplied.
    """

    parts: tuple[tuple[Monomial, int], ...]

    def __post_init__(self) -> None:
        degrees = {sum([s.is_time for s in monomial]) for monomial, _ in self.parts}
        if len(degrees) > 1 or max(degrees, default=0) > 1:
            raise ValueError(f"a polynomial is an index or a time throughout, got {self.parts}")

    @classmethod
    def of(cls, parts: Mapping[Monomial, int]) -> Polynomial:
        """The polynomial of the given coefficients, those that are 0 left out."""
        return cls(tuple(sorted([(m, c) for m, c in parts.items() if c])))

    @property
    def symbols(self) -> frozenset[Symbol]:
        return frozenset(s for monomial, _ in self.parts for s in monomial)

    @property
    def is_time(self) -> bool:
        return any(s.is_time for monomial, _ in self.parts[:1] for s in monomial)

    def plus(self, other: Polynomial, factor: int) -> Polynomial:
        """self + factor * other."""
        return _sum(self, other, factor) if other.parts else self

    def times(self, other: Polynomial) -> Polynomial:
        """The product, expanded."""
        return _product(self, other)

    def quotient(self, symbol: Symbol) -> Polynomial:
        """What ``symbol`` is multiplied with: q in self = q * symbol + rest, rest without it."""
        parts = {}
        for monomial, coefficient in self.parts:
            if symbol in monomial:
                at = monomial.index(symbol)
                parts[monomial[:at] + monomial[at + 1 :]] = coefficient
        return Polynomial.of(parts)

    def value(self, environment: Environment) -> Coefficient:
        """The number at the given values of the symbols. Raises ``KeyError`` for a missing one."""
        total: Coefficient = 0
        for monomial, coefficient in self.parts:
            product: Coefficient = coefficient
            for symbol in monomial:
                product *= environment[symbol.name]
            total += product
        return total


# A theorem and its twins are made of few polynomials, again and again.
@lru_cache(maxsize=1 << 16)
def _sum(one: Polynomial, other: Polynomial, factor: int) -> Polynomial:
    parts = dict(one.parts)
    for monomial, coefficient in other.parts:
        parts[monomial] = parts.get(monomial, 0) + factor * coefficient
    return Polynomial.of(parts)


@lru_cache(maxsize=1 << 16)
def _product(one: Polynomial, other: Polynomial) -> Polynomial:
    parts: dict[Monomial, int] = {}
    for left, a in one.parts:
        for right, b in other.parts:
            monomial = tuple(sorted(left + right))
            parts[monomial] = parts.get(monomial, 0) + a * b
    return Polynomial.of(parts)
