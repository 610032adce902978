"""Products made linear: Z3 gets one fresh variable per monomial, and facts about signs.

Z3's nonlinear arithmetic does not decide these obligations in useful time. Here a product of
symbols is a variable of its own, so (p - i) * t is the linear ``[p*t] - [i*t]``: expansion is exact
because polynomials are kept expanded. What is lost is the sign of a product, and it is given back
where it can matter: whenever a symbol t multiplies an integer e in some comparison,

    t >= 0  =>  (e >= 1 => e*t >= t)  and  (e <= -1 => e*t <= -t)  and  (e = 0 => e*t = 0).

These hold for all integers e and reals t. So what is unsatisfiable here is unsatisfiable; a model,
however, may give a product a value that no factors have, and must be checked (``prover``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import z3  # type: ignore[import-untyped]  # z3 ships no annotations

from bubbleproof.theorems.polynomials import Monomial, Number, Polynomial, Symbol
from bubbleproof.theorems.terms import Comparison, Formula, Term

Factors = tuple[Polynomial, Polynomial]


@dataclass(slots=True)
class Linearisation:
    """Z3 variables for symbols and monomials; symbols in ``fixed`` are replaced by numbers.

    One object serves one query, so that equal monomials are one variable.
    """

    fixed: dict[Symbol, Number] = field(default_factory=dict)
    variables: dict[Monomial, z3.ArithRef] = field(default_factory=dict)

    def formula(self, formula: Formula) -> z3.BoolRef:
        """The formula over the fresh variables."""
        if isinstance(formula, Comparison):
            value = self.polynomial(formula.polynomial)
            if formula.relation == "==":
                return value == 0
            return value >= 0 if formula.relation == ">=" else value > 0
        parts = [self.formula(part) for part in formula.parts]
        if formula.how == "not":
            return z3.Not(parts[0])
        return z3.And(parts) if formula.how == "all" else z3.Or(parts)

    def polynomial(self, polynomial: Polynomial) -> z3.ArithRef:
        """The polynomial as a linear expression: an Int for an index, a Real for a time."""
        total = z3.RealVal(0) if polynomial.is_time else z3.IntVal(0)
        for monomial, coefficient in polynomial.parts:
            factor: Number = coefficient
            for symbol in monomial:
                factor *= self.fixed.get(symbol, 1)
            free = tuple(s for s in monomial if s not in self.fixed)
            number = z3.RealVal(str(factor)) if polynomial.is_time else z3.IntVal(int(factor))
            total = total + (number * self._variable(free, polynomial.is_time) if free else number)
        return total

    def symbol(self, symbol: Symbol) -> z3.ArithRef:
        """The variable of one symbol."""
        return self.polynomial(Polynomial.of({(symbol,): 1}))

    def _variable(self, monomial: Monomial, as_time: bool) -> z3.ArithRef:
        if monomial not in self.variables:
            name = "*".join(s.name for s in monomial)
            is_time = any(s.is_time for s in monomial)
            self.variables[monomial] = z3.Real(name) if is_time else z3.Int(name)
        variable = self.variables[monomial]
        return z3.ToReal(variable) if as_time and variable.is_int() else variable

    @property
    def is_exact(self) -> bool:
        """Whether no product is left, so that every model is a true one."""
        return all(len(monomial) == 1 for monomial in self.variables)

    def sign_lemmas(
        self, formulas: Iterable[Formula], hints: Iterable[tuple[Term, Term]]
    ) -> Iterator[z3.BoolRef]:
        """The lemmas for the products in the formulas and for the hints."""
        for e, t in dict.fromkeys([*found_products(formulas), *hinted_products(hints)]):
            factor, sign = self.polynomial(e), self.polynomial(t)
            product = self.polynomial(e.times(t))
            yield z3.Implies(
                sign >= 0,
                z3.And(
                    z3.Implies(factor >= 1, product >= sign),
                    z3.Implies(factor <= -1, product <= -sign),
                    z3.Implies(factor == 0, product == 0),
                ),
            )


def found_products(formulas: Iterable[Formula]) -> Iterator[Factors]:
    """Every (e, t) where symbol t multiplies the index e in a comparison, or in such an e."""
    todo = [atom.polynomial for formula in formulas for atom in formula.atoms()]
    seen: set[Polynomial] = set()
    while todo:
        polynomial = todo.pop()
        if polynomial in seen:
            continue
        seen.add(polynomial)
        for symbol in sorted({s for m, _ in polynomial.parts if len(m) > 1 for s in m}):
            e = polynomial.quotient(symbol)
            if symbol.is_time == polynomial.is_time and e.symbols:
                yield e, Polynomial.of({(symbol,): 1})
                todo.append(e)


def hinted_products(hints: Iterable[tuple[Term, Term]]) -> Iterator[Factors]:
    """The pairs of the hints' cases."""
    for left, right in hints:
        for _, e in left.cases:
            for _, t in right.cases:
                yield e, t
