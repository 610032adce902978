"""A formula of one's own against a family of one's own, decided over a domain.

A statement is text: a measure, a relation and a formula, ``"idle_ratio == (p-1)/(m+p-1)"``. The
measures are those of ``theory.model.measures``; of one that has a number for each rank the largest
counts, unless a rank is named, ``peak_activations[0]``. The formula is exact (``papers.formula``)
and may name the domain's parameters and ``abs ceil floor max min``. Every case of the domain is
measured, smallest first, up to one that refutes it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from bubbleproof.facts import Fact, FactSource, verdict
from bubbleproof.papers.claims.claim import stated
from bubbleproof.papers.claims.decision import Counterexample, decide
from bubbleproof.papers.claims.domain import Domain, Params, domain, spelled
from bubbleproof.papers.formula import FUNCTIONS
from bubbleproof.suggestions import did_you_mean
from bubbleproof.theory.model.measures import Measures

QUANTITIES = tuple(Measures.__dataclass_fields__)
_STATEMENT = re.compile(
    r"\s*(?P<quantity>\w+)\s*(?:\[(?P<rank>\d+)\])?\s*"
    r"(?P<relation>==|<=|>=)\s*(?P<formula>[^=<>].*)"
)
_ALLOWED = (
    ast.Expression,
    ast.BinOp,
    ast.UnaryOp,
    ast.Call,
    ast.Name,
    ast.Constant,
    ast.Load,
    ast.operator,
    ast.unaryop,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FormulaVerdict(FactSource):
    """What became of a formula: whether it ``holds`` in all ``checked`` cases of its domain.

    ``counterexample`` is the smallest case that refutes it, None where it holds; ``is_tight``
    whether a formula off by the least amount would be refuted by some case.
    """

    statement: str
    holds: bool
    checked: int
    counterexample: Counterexample | None
    is_tight: bool

    def facts(self) -> Iterator[Fact]:
        """Whether it holds, in how many cases, and what refutes it."""
        against = self.counterexample
        state = verdict(self.holds)
        yield Fact(key="statement", label="formula", value=self.statement, verdict=state)
        yield Fact(key="holds", value=self.holds)
        yield Fact(key="checked", label="cases", value=self.checked)
        yield Fact(key="is_tight", label="attained", value=self.is_tight)
        told = None
        if against is not None:
            told = {
                "params": dict(against.params),
                "claimed": against.predicted,
                "measured": against.measured,
            }
        label = "" if against is None else "refuted by"
        yield Fact(key="counterexample", label=label, value=told, told=str(against or ""))

    def __repr__(self) -> str:
        if self.counterexample is not None:
            return f"<FormulaVerdict: refuted by {self.counterexample}>"
        loose = "" if self.is_tight else ", never attained"
        return f"<FormulaVerdict: holds in all {self.checked} cases{loose}>"


def decided(
    statement: str,
    measured: Callable[[Params], Measures],
    columns: Mapping[str, Iterable[int]],
    where: str | None,
) -> FormulaVerdict:
    """Decide a statement on every case of the columns that ``where`` accepts.

    Raises ``ValueError`` for text that is no statement, for names that the domain has not, and for
    a domain without a case.
    """
    found = _STATEMENT.fullmatch(statement)
    if found is None:
        expected = "MEASURE ==, <= or >= FORMULA, such as 'makespan == (m+p-1)*(tF+tB)'"
        raise ValueError(f"claim: expected {expected}, got {statement!r}")
    quantity, rank = found["quantity"], found["rank"]
    if quantity not in QUANTITIES:
        hint = did_you_mean(quantity, QUANTITIES)
        raise ValueError(
            f"claim: no measure {quantity!r}{hint}; the measures are {' '.join(QUANTITIES)}"
        )
    for text in (found["formula"], *([] if where is None else [where])):
        _require_formula(text, tuple(columns), is_condition=text is where)
    values = {name: tuple(column) for name, column in columns.items()}
    (finding,) = decide(
        stated(
            "own.formula",
            "a formula of the user's",
            statement,
            quantity,
            lambda at: _number(measured(at), quantity, rank),
            found["relation"],
            found["formula"],
            _domain(values, where),
        )
    ).findings
    return FormulaVerdict(
        statement=statement,
        holds=finding.holds,
        checked=finding.checked,
        counterexample=finding.counterexample,
        is_tight=not finding.surviving,
    )


def _domain(values: Mapping[str, tuple[int, ...]], where: str | None) -> Domain:
    text = "; ".join(f"{name} in {spelled(column)}" for name, column in values.items())
    if where is None:
        return domain(text, dict(values))
    return domain(f"{text}; {where}", dict(values), where=where)


def _number(measures: Measures, quantity: str, rank: str | None) -> int | Fraction:
    """The value of a measure; of one per rank that of the rank, else the largest."""
    value: int | Fraction | tuple[int, ...] = getattr(measures, quantity)
    if not isinstance(value, tuple):
        if rank is not None:
            raise ValueError(f"claim: {quantity} is one number for all ranks; leave out [{rank}]")
        return value
    if rank is None:
        return max(value)
    if int(rank) >= len(value):
        raise ValueError(f"claim: rank {rank} of {quantity} is none of {len(value)} ranks")
    return value[int(rank)]


def _require_formula(text: str, names: tuple[str, ...], *, is_condition: bool) -> None:
    """Raise ``ValueError`` for what is no formula over these names: nothing else is evaluated."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError):
        raise ValueError(f"claim: expected a formula, got {text!r}") from None
    allowed = (*_ALLOWED, ast.Compare, ast.BoolOp, ast.cmpop, ast.boolop)
    known = {*names, *FUNCTIONS}
    for node in ast.walk(tree):
        is_call_of_other = isinstance(node, ast.Call) and not isinstance(node.func, ast.Name)
        if is_call_of_other or not isinstance(node, allowed if is_condition else _ALLOWED):
            raise ValueError(f"claim: expected a formula of numbers and names, got {text!r}")
        if isinstance(node, ast.Name) and node.id not in known:
            hint = did_you_mean(node.id, names)
            raise ValueError(
                f"claim: {text!r} names {node.id}{hint}; the domain has {' '.join(names)}"
            )
