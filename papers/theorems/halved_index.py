"""An index with its half: what depends on floor(i/2) or ceil(i/2), without a division.

A rank and its neighbours are of either parity. With i = 2h + o and o = 0 or 1, the next index is
2(h+o) + (1-o) and the one before 2(h-1+o) + (1-o); so what is said of i in h and o can be said of
its neighbours, and stays linear.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from bubbleproof.papers.theorems.terms import LogicFormula, Term


@dataclass(frozen=True, slots=True)
class HalvedIndex:
    """``number`` = 2 ``half`` + ``odd``; that it is so is a premise (``is_halved``)."""

    number: Term
    half: Term
    odd: Term

    @property
    def following(self) -> Self:
        """The index one larger."""
        return type(self)(self.number + 1, self.half + self.odd, 1 - self.odd)

    @property
    def preceding(self) -> Self:
        """The index one smaller."""
        return type(self)(self.number - 1, self.half - 1 + self.odd, 1 - self.odd)

    @property
    def ceiling(self) -> Term:
        """Half of it, rounded up."""
        return self.half + self.odd

    @property
    def is_halved(self) -> tuple[LogicFormula, ...]:
        """The parts are those of the number."""
        return self.number.equals(2 * self.half + self.odd), self.odd >= 0, self.odd <= 1
