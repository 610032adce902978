"""Claims: what a paper says, as data, and what becomes of it when every case is measured.

A claim says: at every point of its domain the measured value stands in ``relation`` to the
predicted one. ``predicted`` is the paper's formula; ``measured`` builds the schedule and measures
it with ``theory.model.measures``, so that the two share nothing. ``decide`` is the only place a
verdict comes from. Beside the verdict a decision has a standing (``papers.claims.standing``):
whether ``measured`` built a schedule at all, or both sides are arithmetic.

A claim that holds has *mutants*: the same claim with its prediction moved one step beyond the
relation. A step is the last printed decimal for ``~`` and else one unit in the case's own
granularity, the least difference of two numbers with the denominators of both values (one tick, one
activation, one idle tick of a ratio). ``==`` and ``~`` have a mutant on either side, ``<=`` one
below and ``>=`` one above. A mutant that no case refutes survives: a bound that is never attained,
which the decision says, and the claim why (``slack``).

A claim has a ``domain`` that is decided in seconds and may have a ``wide`` one, which an audit
decides (``papers.audit`` cuts it up for many workers). The smallest counterexample is the one with
the least sum of parameters; ties are broken by the parameters' values in the order in which the
domain names them (``papers.claims.domain``).

Every claim of a paper is written with ``stated``, which reads as the claim does (measured,
relation, predicted, domain), or, where an input is missing, with ``missing``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from math import lcm
from typing import cast

from bubbleproof.costs import pipemesh_formulas, tpipe_formulas
from bubbleproof.papers.claims.domain import Domain, Params, domain
from bubbleproof.papers.claims.standing import Standing, watched
from bubbleproof.papers.formula import Formula

Number = int | Fraction
Value = Callable[[Params], Number]
Exact = Callable[[Params], Fraction]  # a value that goes on into a quotient
_FORMULAS = {"pipemesh": vars(pipemesh_formulas), "tpipe": vars(tpipe_formulas)}
TITLES = {"bpipe": "BPipe", "mepipe": "MEPipe", "pipemesh": "PipeMesh", "tpipe": "T-Pipe"}


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


class ClaimVerdict(Enum):
    """What became of a claim; the values are the sentences shown to the reader."""

    HOLDS = "holds in every case of its domain"
    REFUTED = "refuted by a counterexample"
    NOT_REPRODUCIBLE = "not reproducible: an input is missing"
    PROVED = "proved for all parameters"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One statement of a paper. ``measured`` ``relation`` ``predicted`` on the whole ``domain``.

    ``places`` is the number of decimals for ``~``. ``corrected`` is the id of the claim that should
    stand in its place, on as wide a domain. ``missing`` says which input a measurement would need;
    such a claim has no formula of its own and no cases. ``slack`` says why a bound is never
    attained, where it is not. ``theorem`` is the id of a theorem that implies the claim on its
    whole domain, the wide one included. Raises
    ``ValueError`` where these do not fit together.
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
    slack: str | None = None

    def __post_init__(self) -> None:
        has_values = self.predicted is not None and self.measured is not None
        if has_values == (self.missing is not None):
            raise ValueError(f"{self.id}: either both values or the missing input must be given")
        if self.slack is not None and self.relation in (Relation.EQUAL, Relation.ABOUT):
            raise ValueError(f"{self.id}: only <= and >= can have slack, not {self.relation.value}")

    @property
    def wide(self) -> Domain | None:
        """The domain of an audit, where there is one."""
        return self.domain.wide

    def domain_for(self, *, is_wide: bool) -> Domain:
        """The wide domain where it is asked for and there is one, else the small one."""
        return self.wide if is_wide and self.wide is not None else self.domain

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
        """The mutants that fail in a case in which the claim holds."""
        if self.relation is Relation.ABOUT:
            step = Fraction(1, 10**self.places)
        else:
            step = Fraction(1, lcm(predicted.denominator, measured.denominator))
        return frozenset(
            sign for sign in self.mutants if not self.accepts(predicted + sign * step, measured)
        )

    def values(self, params: Params) -> tuple[Fraction, Fraction]:
        """What is predicted and what is measured in a case; the claim must have both values."""
        assert self.predicted is not None
        assert self.measured is not None
        return Fraction(self.predicted(params)), Fraction(self.measured(params))


def stated(
    name: str,
    source: str,
    statement: str,
    quantity: str,
    measured: Value | str,
    relation: str,
    predicted: Value | Number | str,
    cases: Domain,
    corrected: str | None = None,
    slack: str | None = None,
) -> Claim:
    """The claim ``name``, which begins with its paper.

    ``source`` is the place in the paper; one that begins with "ours", and any of the field's, is
    the whole source. ``relation`` is a sign of ``Relation``; ``~2`` is about, at two decimals.
    Either value may be a number or a formula of the cases' parameters; the formulas of T-Pipe's and
    PipeMesh's claims may call the functions of ``costs.tpipe_formulas`` and
    ``costs.pipemesh_formulas``. ``corrected`` is an id within the same paper. Raises
    ``ValueError`` for a formula with other names.
    """
    paper = name.partition(".")[0]
    return Claim(
        id=name,
        paper=paper,
        source=_source(paper, source),
        statement=statement,
        quantity=quantity,
        relation=Relation(relation.rstrip("0123456789")),
        domain=cases,
        predicted=_value(name, predicted, cases),
        measured=_value(name, measured, cases),
        corrected=None if corrected is None else f"{paper}.{corrected}",
        places=int(relation.lstrip("=<>~") or 0),
        slack=slack,
    )


def missing(
    name: str, source: str, statement: str, what: str, where: str = "the authors' cluster"
) -> Claim:
    """A claim that cannot be measured; ``what`` names the input that the paper does not give."""
    paper = name.partition(".")[0]
    return Claim(
        id=name,
        paper=paper,
        source=_source(paper, source),
        statement=statement,
        quantity="measured on hardware",
        relation=Relation.EQUAL,
        domain=domain(where, case=()),
        missing=what,
    )


def _value(name: str, given: Value | Number | str, cases: Domain) -> Value:
    if callable(given):
        return given
    formula = Formula(str(given), _FORMULAS.get(name.partition(".")[0]))
    if unknown := formula.parameters.difference(cases.names):
        raise ValueError(f"{name}: {formula.text} names {', '.join(sorted(unknown))}, no parameter")
    return cast("Value", formula)


def _source(paper: str, place: str) -> str:
    title = TITLES.get(paper)
    return place if title is None or place.startswith("ours") else f"{title} {place}"


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
    """What became of a claim: ``checked`` of ``total`` cases of ``domain``, smallest first.

    ``surviving`` holds the mutants of a claim that holds which no checked case refutes.
    """

    claim: Claim
    domain: Domain
    verdict: ClaimVerdict
    checked: int
    total: int
    standing: Standing | None = None
    counterexample: Counterexample | None = None
    surviving: frozenset[int] = frozenset()

    @property
    def is_complete(self) -> bool:
        """Whether the whole domain was looked at, or a counterexample made that needless."""
        return self.checked == self.total or self.counterexample is not None


def decide(claim: Claim, *, limit: int | None = None, is_wide: bool = False) -> Decision:
    """Measure the cases of a claim, at most ``limit``, smallest first, up to one that fails.

    Raises ``ValueError`` when the domain of a claim that can be measured has no case.
    """
    domain = claim.domain_for(is_wide=is_wide)
    if claim.measured is None:
        return undecidable(claim, domain)
    points = domain.points
    if not len(points):
        raise ValueError(f"{claim.id}: the domain ({domain.text}) has no case")
    standing = watched(claim.measured, points[0])
    checked, found, surviving = 0, None, claim.mutants
    for params in points[:limit]:
        checked += 1
        predicted, measured = claim.values(params)
        if not claim.accepts(predicted, measured):
            found = Counterexample(params=params, predicted=predicted, measured=measured)
            break
        surviving -= claim.refuted_mutants(predicted, measured)
    return Decision(
        claim=claim,
        domain=domain,
        verdict=ClaimVerdict.HOLDS if found is None else ClaimVerdict.REFUTED,
        checked=checked,
        total=len(points),
        standing=standing,
        counterexample=found,
        surviving=surviving if found is None else frozenset(),
    )


def undecidable(claim: Claim, domain: Domain) -> Decision:
    """What becomes of a claim without an input that a measurement would need."""
    verdict = ClaimVerdict.NOT_REPRODUCIBLE
    return Decision(claim=claim, domain=domain, verdict=verdict, checked=0, total=0)
