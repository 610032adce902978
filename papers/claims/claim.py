"""Claims: what a paper says, as data, with the readings that its words admit.

A claim is one statement of a paper and a list of readings (``claims.reading``), the most natural
one first. What becomes of the claim is decided by measuring all of them (``claims.decision``): a
paper is refuted only where every reading fails.

How a claim is written: ``stated`` for a claim of one reading, which reads as the claim does
(measured, relation, predicted, domain); ``read_as`` for one of several, each a ``reading``;
``contradicting`` where two sentences of a paper should say the same and may not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import cast

from bubbleproof.papers.claims.domain import Domain
from bubbleproof.papers.claims.reading import Number, NumberOf, Premise, Reading, Relation
from bubbleproof.papers.formula import OFFERED, Formula

TITLES = {"bpipe": "BPipe", "mepipe": "MEPipe", "pipemesh": "PipeMesh", "tpipe": "T-Pipe"}
AS_STATED = "as stated"


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperClaim:
    """One statement of a paper, with its ``readings``.

    ``source`` is the place in the paper. ``against`` is the other place where two sentences are
    held against each other: then a reading's predicted value is what ``source`` gives and its
    measured one what ``against`` gives. ``corrected`` is the id of the claim that should stand in
    the place of a refuted one. Raises ``ValueError`` without a reading, and for two of one name.
    """

    id: str
    paper: str
    source: str
    statement: str
    quantity: str
    readings: tuple[Reading, ...]
    against: str | None = None
    corrected: str | None = None

    def __post_init__(self) -> None:
        if not self.readings:
            raise ValueError(f"{self.id}: a claim has a reading, got none")
        names = [each.name for each in self.readings]
        if len(set(names)) < len(names):
            raise ValueError(f"{self.id}: two readings share a name: {', '.join(names)}")

    def reading(self, name: str | None = None) -> Reading:
        """The reading of that name; without one, the only reading there is.

        Raises ``ValueError`` where there is none, or several.
        """
        found = [each for each in self.readings if name in (None, each.name)]
        if len(found) != 1:
            known = ", ".join(each.name for each in self.readings)
            raise ValueError(f"{self.id}: which reading is {name}? It has {known}")
        return found[0]


def reading(
    name: str,
    support: str,
    measured: NumberOf | Number | str,
    relation: str,
    predicted: NumberOf | Number | str,
    cases: Domain,
    premises: Iterable[Premise] = (),
    slack: str | None = None,
) -> Reading:
    """One reading of a claim: ``name`` in a few words, ``support`` the place and what it says.

    ``relation`` is a sign of ``Relation``; ``~2`` is about, at two decimals. Either value may be a
    number or a formula of the cases' parameters, which may call what papers offer (``offer``).
    Raises ``ValueError`` for a formula, or a premise, with other names.
    """
    premises = tuple(premises)
    for premise in premises:
        if premise.cases is not None:
            _value(name, premise.cases, cases)
    return Reading(
        name=name,
        support=support,
        relation=Relation(relation.rstrip("0123456789")),
        domain=cases,
        predicted=_value(name, predicted, cases),
        measured=_value(name, measured, cases),
        premises=premises,
        places=int(relation.lstrip("=<>~") or 0),
        slack=slack,
    )


def read_as(
    name: str,
    source: str,
    statement: str,
    quantity: str,
    readings: Iterable[Reading],
    corrected: str | None = None,
) -> PaperClaim:
    """The claim ``name``, which begins with its paper, in several readings.

    ``source`` is the place in the paper; one that begins with "ours", and any of the field's, is
    the whole source. ``corrected`` is an id within the same paper.
    """
    paper = name.partition(".")[0]
    return PaperClaim(
        id=name,
        paper=paper,
        source=_source(paper, source),
        statement=statement,
        quantity=quantity,
        readings=tuple(readings),
        corrected=None if corrected is None else f"{paper}.{corrected}",
    )


def stated(
    name: str,
    source: str,
    statement: str,
    quantity: str,
    measured: NumberOf | Number | str,
    relation: str,
    predicted: NumberOf | Number | str,
    cases: Domain,
    corrected: str | None = None,
    slack: str | None = None,
    premises: Iterable[Premise] = (),
) -> PaperClaim:
    """The claim ``name`` of one reading: what the sentence at its source says."""
    try:
        only = reading(AS_STATED, source, measured, relation, predicted, cases, premises, slack)
    except ValueError as error:
        raise ValueError(str(error).replace(AS_STATED, name, 1)) from None
    return read_as(name, source, statement, quantity, [only], corrected)


def contradicting(
    name: str,
    source: str,
    first: NumberOf | Number | str,
    against: str,
    second: NumberOf | Number | str,
    statement: str,
    quantity: str,
    cases: Domain,
    relation: str = "==",
    premises: Iterable[Premise] = (),
) -> PaperClaim:
    """The claim that two places of a paper agree: ``second`` ``relation`` ``first``.

    Both values are the paper's own: formulas of its printed numbers, which the cases hold.
    """
    agreeing = stated(
        name, source, statement, quantity, second, relation, first, cases, premises=premises
    )
    return replace(agreeing, against=_source(agreeing.paper, against))


def _value(name: str, given: NumberOf | Number | str, cases: Domain) -> NumberOf:
    if callable(given):
        return given
    formula = Formula(str(given), OFFERED)
    if unknown := formula.parameters.difference(cases.names):
        raise ValueError(f"{name}: {formula.text} names {', '.join(sorted(unknown))}, no parameter")
    return cast("NumberOf", formula)


def _source(paper: str, place: str) -> str:
    title = TITLES.get(paper)
    return place if title is None or place.startswith("ours") else f"{title} {place}"
