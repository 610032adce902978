"""Readings: one thing that a sentence of a paper can mean, precise enough to be measured.

A reading says: at every point of its domain the measured value stands in ``relation`` to the
predicted one. ``predicted`` is the paper's formula; ``measured`` builds the schedule and measures
it with ``theory.model.measures``, so that the two share nothing.

A sentence has *premises*: tF = tB, "up to", "for large p", "about". They are part of what is said,
so they are part of the reading. A premise limits the cases (tB = 2 tF) or the relation ("up to" is
no equality, "about" no exact one), and a reading that breaks one of its own is refused or, where
its cases break it, found by ``broken_premises``.

A reading that holds has *mutants*: the same with its prediction moved one step beyond the relation.
A step is the last printed decimal for ``~`` and else one unit in the case's own granularity, the
least difference of two numbers with the denominators of both values (one tick, one activation, one
idle tick of a ratio). ``==`` and ``~`` have a mutant on either side, ``<=`` one below and ``>=``
one above. A mutant that no case refutes survives: a bound that is never attained, which the
decision says, and the reading why (``slack``).

A reading has a ``domain`` that is decided in seconds and may have a ``wide`` one, which an audit
decides (``papers.audit`` cuts it up for many workers). The smallest counterexample is the one with
the least sum of parameters; ties are broken by the parameters' values in the order in which the
domain names them (``papers.claims.domain``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from math import lcm

from bubbleproof.papers.claims.domain import Domain, Params
from bubbleproof.papers.formula import Formula

Number = int | Fraction
NumberOf = Callable[[Params], Number]
Exact = Callable[[Params], Fraction]  # a value that goes on into a quotient


class Relation(Enum):
    """How the measured value stands to the predicted one; the values are the signs."""

    EQUAL = "=="
    AT_MOST = "<="
    AT_LEAST = ">="
    ABOUT = "~"  # equal when rounded to the decimals the paper prints


_MUTANTS = {
    Relation.EQUAL: frozenset({-1, 1}),
    Relation.AT_MOST: frozenset({-1}),
    Relation.AT_LEAST: frozenset({1}),
    Relation.ABOUT: frozenset({-1, 1}),
}
_ANY = frozenset(Relation)


@dataclass(frozen=True, slots=True, kw_only=True)
class Premise:
    """What a sentence presupposes, in words; the cases that meet it, and the relations it leaves.

    ``cases`` is a formula of a case's parameters, None where the premise is about the relation.
    """

    text: str
    cases: str | None = None
    relations: frozenset[Relation] = _ANY

    def __post_init__(self) -> None:
        if self.cases is None and self.relations == _ANY:
            raise ValueError(f"premise {self.text!r} limits neither the cases nor the relation")


EQUAL_TICKS = Premise(text="tF = tB", cases="tF == tB")
TWICE = Premise(text="tB = 2 tF", cases="tB == 2*tF")
UP_TO = Premise(text="up to", relations=frozenset({Relation.AT_MOST}))
AT_LEAST = Premise(text="at least", relations=frozenset({Relation.AT_LEAST}))
# Within the printed decimals, or no further off than is said (a distance, so at most).
ABOUT = Premise(text="about", relations=frozenset({Relation.ABOUT, Relation.AT_MOST}))
# A limit: the distance to it is at most what is said, which falls as 1/p.
LARGE = Premise(text="for large p", relations=frozenset({Relation.AT_MOST}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """``measured`` ``relation`` ``predicted`` on the whole ``domain``.

    ``support`` is the place of the paper that supports the reading, and what stands there in a few
    words of ours. ``places`` is the number of decimals for ``~``. ``slack`` says why a bound is
    never attained, where it is not. ``theorem`` is the id of a theorem that implies the reading on
    its whole domain, the wide one included. Raises ``ValueError`` where these do not fit together.
    """

    name: str
    support: str
    relation: Relation
    domain: Domain
    predicted: NumberOf
    measured: NumberOf
    premises: tuple[Premise, ...] = ()
    places: int = 0
    theorem: str | None = None
    slack: str | None = None

    def __post_init__(self) -> None:
        if self.slack is not None and self.relation in (Relation.EQUAL, Relation.ABOUT):
            raise ValueError(
                f"{self.name}: only <= and >= can have slack, not {self.relation.value}"
            )
        for premise in self.premises:
            if self.relation not in premise.relations:
                sign = self.relation.value
                raise ValueError(f"{self.name}: its premise {premise.text!r} is dropped by {sign}")

    @property
    def wide(self) -> Domain | None:
        """The domain of an audit, where there is one."""
        return self.domain.wide

    def domain_for(self, *, is_wide: bool) -> Domain:
        """The wide domain where it is asked for and there is one, else the small one."""
        return self.wide if is_wide and self.wide is not None else self.domain

    def broken_premises(self) -> Iterator[tuple[Premise, Params]]:
        """Each premise that a case of the domain, the wide one included, does not meet."""
        points = self.domain_for(is_wide=True).points
        for premise in self.premises:
            if premise.cases is not None:
                meets = Formula(premise.cases)
                yield from ((premise, at) for at in points if not meets(at))

    def accepts(self, predicted: Fraction, measured: Fraction) -> bool:
        """Whether the two values stand in the claimed relation."""
        if self.relation is Relation.EQUAL:
            return measured == predicted
        if self.relation is Relation.AT_MOST:
            return measured <= predicted
        if self.relation is Relation.AT_LEAST:
            return measured >= predicted
        return abs(measured - predicted) <= Fraction(1, 2 * 10**self.places)

    @property
    def mutants(self) -> frozenset[int]:
        """The directions, -1 and 1, in which the prediction leaves the relation."""
        return _MUTANTS[self.relation]

    def refuted_mutants(self, predicted: Fraction, measured: Fraction) -> frozenset[int]:
        """The mutants that fail in a case in which the reading holds."""
        if self.relation is Relation.ABOUT:
            step = Fraction(1, 10**self.places)
        else:
            step = Fraction(1, lcm(predicted.denominator, measured.denominator))
        return frozenset(
            sign for sign in self.mutants if not self.accepts(predicted + sign * step, measured)
        )

    def values(self, params: Params) -> tuple[Fraction, Fraction]:
        """What is predicted and what is measured in a case."""
        return Fraction(self.predicted(params)), Fraction(self.measured(params))
