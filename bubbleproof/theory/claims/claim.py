"""Claims: what a paper says, as data, and what becomes of it when every case is measured.

A claim says: at every point of its domain the measured value stands in ``relation`` to the
predicted one. ``predicted`` is the paper's formula; ``measured`` builds the schedule and measures
it with ``theory.measures``, so that the two share nothing. ``decide`` is the only place a verdict
comes from.

The smallest counterexample is the one with the least sum of parameters; ties are broken by the
parameters' values in the order in which the domain names them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from itertools import product

Params = Mapping[str, int]
Value = Callable[[Params], Fraction]


class Relation(Enum):
    """How the measured value stands to the predicted one; the values are the signs."""

    EQUAL = "=="
    AT_MOST = "<="
    AT_LEAST = ">="
    ABOUT = "~"  # equal when rounded to the decimals the paper prints


class Standing(Enum):
    """What became of a claim; the values are the sentences shown to the reader."""

    HOLDS = "holds in every case of its domain"
    REFUTED = "refuted by a counterexample"
    NOT_REPRODUCIBLE = "not reproducible: an input is missing"
    PROVED = "proved for all parameters"


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """The cases of a claim: ``text`` for people, ``points`` for the machine, smallest first."""

    text: str
    points: tuple[Params, ...]


def grid(
    text: str, *, where: Callable[[Params], bool] | None = None, **ranges: Iterable[int]
) -> Domain:
    """Every combination of the ranges that ``where`` accepts, ordered by (sum, values)."""
    combined = [
        dict(zip(ranges, values, strict=True))
        for values in product(*(tuple(column) for column in ranges.values()))
    ]
    chosen = [point for point in combined if where is None or where(point)]
    return Domain(text=text, points=tuple(sorted(chosen, key=size)))


def size(params: Params) -> tuple[int, tuple[int, ...]]:
    """The order of counterexamples: sum first, then the values as named."""
    return sum(params.values()), tuple(params.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One statement of a paper. ``measured`` ``relation`` ``predicted`` on the whole ``domain``.

    ``places`` is the number of decimals for ``~``. ``corrected`` is the id of the claim that should
    stand in its place. ``missing`` says which input a measurement would need; such a claim has no
    formula of its own and no cases. ``theorem`` is the id of a theorem that implies the claim on
    its whole domain. Raises ``ValueError`` where these do not fit together.
    """

    id: str
    paper: str
    source: str
    statement: str
    quantity: str
    relation: Relation
    domain: Domain
    predicted: Value | None = None
    measured: Value | None = None
    corrected: str | None = None
    missing: str | None = None
    places: int = 0
    theorem: str | None = None

    def __post_init__(self) -> None:
        has_values = self.predicted is not None and self.measured is not None
        if has_values == (self.missing is not None):
            raise ValueError(f"{self.id}: either both values or the missing input must be given")
        if has_values and not self.domain.points:
            raise ValueError(f"{self.id}: the domain ({self.domain.text}) has no case")

    def accepts(self, predicted: Fraction, measured: Fraction) -> bool:
        """Whether the two values stand in the claimed relation."""
        if self.relation is Relation.EQUAL:
            return measured == predicted
        if self.relation is Relation.AT_MOST:
            return measured <= predicted
        if self.relation is Relation.AT_LEAST:
            return measured >= predicted
        return abs(measured - predicted) <= Fraction(1, 2 * 10**self.places)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """A case in which a claim fails, with both values."""

    params: Params
    predicted: Fraction
    measured: Fraction

    def __str__(self) -> str:
        where = " ".join(f"{name}={value}" for name, value in self.params.items())
        return f"{where}: claimed {self.predicted}, measured {self.measured}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What became of a claim: ``checked`` of ``total`` cases, smallest first."""

    claim: Claim
    standing: Standing
    checked: int
    total: int
    counterexample: Counterexample | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the whole domain was looked at, or a counterexample made that needless."""
        return self.checked == self.total or self.counterexample is not None


def decide(claim: Claim, *, limit: int | None = None) -> Decision:
    """Measure the cases of a claim, at most ``limit``, smallest first, up to one that fails."""
    points = claim.domain.points
    if claim.predicted is None or claim.measured is None:
        return Decision(claim=claim, standing=Standing.NOT_REPRODUCIBLE, checked=0, total=0)
    checked = 0
    for params in points[:limit]:
        checked += 1
        predicted, measured = claim.predicted(params), claim.measured(params)
        if not claim.accepts(predicted, measured):
            found = Counterexample(params=params, predicted=predicted, measured=measured)
            return Decision(
                claim=claim,
                standing=Standing.REFUTED,
                checked=checked,
                total=len(points),
                counterexample=found,
            )
    return Decision(claim=claim, standing=Standing.HOLDS, checked=checked, total=len(points))
