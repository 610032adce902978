"""How claims are written down, one call per statement of the paper; first those of two papers."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from bubbleproof.papers.claims.claim import Claim, Domain, Params, Relation, Value
from bubbleproof.papers.claims.scope import Cases, small, wide

Number = Callable[[Params], int | Fraction]
TITLES = {"tpipe": "T-Pipe", "pipemesh": "PipeMesh", "mepipe": "MEPipe"}


def stated(
    name: str,
    source: str,
    statement: str,
    quantity: str,
    predicted: Number,
    relation: str,
    measured: Number,
    cases: Cases,
    corrected: str | None = None,
    slack: str | None = None,
) -> Claim:
    """A claim of ``name`` = paper.id; ``corrected`` is the id within the same paper.

    ``relation`` is a sign of ``Relation``; ``~2`` is about, at two decimals.
    """
    paper = name.partition(".")[0]
    return Claim(
        id=name,
        paper=paper,
        source=f"{TITLES[paper]} {source}",
        statement=statement,
        quantity=quantity,
        relation=Relation(relation.rstrip("0123456789")),
        domain=small(cases),
        wide=wide(cases),
        predicted=_exact(predicted),
        measured=_exact(measured),
        corrected=None if corrected is None else f"{paper}.{corrected}",
        places=int(relation.lstrip("=<>~") or 0),
        slack=slack,
    )


def printed(text: str) -> Number:
    """The number that the paper prints, whatever the case."""
    return lambda _: Fraction(text)


def missing(name: str, source: str, statement: str, what: str) -> Claim:
    """A claim that cannot be measured; ``what`` names the input that the paper does not give."""
    paper = name.partition(".")[0]
    return Claim(
        id=name,
        paper=paper,
        source=f"{TITLES[paper]} {source}",
        statement=statement,
        quantity="measured on hardware",
        relation=Relation.EQUAL,
        domain=Domain(text="the authors' cluster", points=()),
        missing=what,
    )


def _exact(number: Number) -> Value:
    return lambda at: Fraction(number(at))
