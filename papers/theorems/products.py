"""Products made linear: Z3 gets one fresh variable per monomial, and facts about signs.

Z3's nonlinear arithmetic does not decide these obligations in useful time. Here a product of
symbols is a variable of its own, so (p - i) * t is the linear ``[p*t] - [i*t]``: expansion is exact
because polynomials are kept expanded. What is lost is the sign of a product, and it is given back
where it can matter: whenever a symbol t multiplies an integer e in some comparison,

    t >= 0  =>  (e >= 1 => e*t >= t)  and  (e <= -1 => e*t <= -t)  and  (e = 0 => e*t = 0).

These hold for all integers e and reals t. So what is unsatisfiable here is unsatisfiable; a model,
however, may give a product a value that no factors have, and must be checked (``prover``).

A query is written as SMT-LIB text, which Z3 reads much faster than it is built call by call, and
which any other solver of linear arithmetic reads as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from bubbleproof.papers.theorems.polynomials import Coefficient, Monomial, Polynomial, Symbol
from bubbleproof.papers.theorems.terms import Comparison, LogicFormula, Term

Factors = tuple[Polynomial, Polynomial]


_WORDS = {"all": "and", "any": "or", "not": "not"}
_RELATIONS = {"==": "=", ">=": ">=", ">": ">"}


@dataclass(slots=True)
class Linearisation:
    """SMT-LIB names for symbols and monomials; symbols in ``fixed`` are replaced by numbers.

    One object serves one query, so that equal monomials are one variable. ``names`` are quoted.
    """

    fixed: dict[Symbol, Coefficient] = field(default_factory=dict)
    names: dict[Monomial, str] = field(default_factory=dict)

    def script(self, formula: LogicFormula, hints: Iterable[tuple[Term, Term]] = ()) -> str:
        """Declarations, the formula and the sign lemmas for its products, as assertions."""
        claims = [self.formula(formula), *self.sign_lemmas([formula], hints)]
        lines = [*self.declarations(), *(f"(assert {claim})" for claim in claims)]
        return "\n".join(lines)

    def declarations(self) -> Iterator[str]:
        """One line per name used so far."""
        for monomial, name in self.names.items():
            yield f"(declare-const {name} {'Real' if _is_time(monomial) else 'Int'})"

    def formula(self, formula: LogicFormula) -> str:
        """The formula over the names."""
        if isinstance(formula, Comparison):
            value = self.polynomial(formula.polynomial)
            zero = "0.0" if formula.polynomial.is_time else "0"
            return f"({_RELATIONS[formula.relation]} {value} {zero})"
        if not formula.parts:
            return "true" if formula.how == "all" else "false"
        return f"({_WORDS[formula.how]} {' '.join(self.formula(part) for part in formula.parts)})"

    def polynomial(self, polynomial: Polynomial) -> str:
        """The polynomial as a linear expression: an Int for an index, a Real for a time."""
        text, names = _linear(polynomial, tuple(self.fixed.items()))
        self.names.update(names)
        return text

    def sign_lemmas(
        self, formulas: Iterable[LogicFormula], hints: Iterable[tuple[Term, Term]]
    ) -> Iterator[str]:
        """The lemmas for the products in the formulas and for the hints."""
        hinted = ((e, t) for a, b in hints for _, e in a.cases for _, t in b.cases)
        for e, t in dict.fromkeys([*found_products(formulas), *hinted]):
            factor, sign = self.polynomial(e), self.polynomial(t)
            product = self.polynomial(e.times(t))
            one, zero = _numeral(1, as_real=e.is_time), _numeral(0, as_real=t.is_time)
            nought = _numeral(0, as_real=e.is_time)
            yield (
                f"(=> (>= {sign} {zero}) (and"
                f" (=> (>= {factor} {one}) (>= {product} {sign}))"
                f" (=> (<= {factor} (- {one})) (<= {product} (- {sign})))"
                f" (=> (= {factor} {nought}) (= {product} {zero}))))"
            )


# The obligations of a theorem are made of few polynomials, again and again.
@lru_cache(maxsize=1 << 16)
def _linear(
    polynomial: Polynomial, fixed: tuple[tuple[Symbol, Coefficient], ...]
) -> tuple[str, dict[Monomial, str]]:
    """The linear expression, and the names in it in their order."""
    as_real, value_of = polynomial.is_time, dict(fixed)
    summands, names = [], dict[Monomial, str]()
    for monomial, coefficient in polynomial.parts:
        factor: Coefficient = coefficient
        for symbol in monomial:
            factor *= value_of.get(symbol, 1)
        free = tuple(s for s in monomial if s not in value_of)
        number = _numeral(factor, as_real=as_real)
        if free:
            names[free] = name = f"|{'*'.join(s.name for s in free)}|"
            is_whole = as_real and not _is_time(free)
            number = f"(* {number} {f'(to_real {name})' if is_whole else name})"
        summands.append(number)
    if len(summands) < 2:
        return summands[0] if summands else _numeral(0, as_real=as_real), names
    return f"(+ {' '.join(summands)})", names


def _is_time(monomial: Monomial) -> bool:
    return any(symbol.is_time for symbol in monomial)


def _numeral(number: Coefficient, *, as_real: bool) -> str:
    """An exact SMT-LIB number."""
    if not as_real:
        if number != int(number):
            raise ValueError(f"an index is a whole number, got {number}")
        return str(int(number)) if number >= 0 else f"(- {-int(number)})"
    size = abs(Fraction(number))
    text = f"{size.numerator}.0"
    if size.denominator != 1:
        text = f"(/ {text} {size.denominator}.0)"
    return f"(- {text})" if number < 0 else text


def found_products(formulas: Iterable[LogicFormula]) -> Iterator[Factors]:
    """Every (e, t) where symbol t multiplies the index e in a comparison, or in such an e."""
    todo = [atom.polynomial for formula in formulas for atom in formula.atoms()]
    seen: set[Polynomial] = set()
    while todo:
        polynomial = todo.pop()
        if all(len(m) < 2 for m, _ in polynomial.parts) or polynomial in seen:
            continue
        seen.add(polynomial)
        for symbol in sorted({s for m, _ in polynomial.parts if len(m) > 1 for s in m}):
            e = polynomial.quotient(symbol)
            if symbol.is_time == polynomial.is_time and e.symbols:
                yield e, Polynomial.of({(symbol,): 1})
                todo.append(e)
