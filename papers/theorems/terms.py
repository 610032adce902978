"""Terms and formulas that people, Python and Z3 read alike.

A ``Term`` is a list of cases, each a guard and a polynomial with integer coefficients; exactly one
guard holds. A ``LogicFormula`` compares terms. Both can be evaluated at numbers, without Z3, and
``products`` gives them to Z3 without a product.

>>> p, i, t = index("p"), index("i"), time("t")
>>> ((p - i) * t).value({"p": 3, "i": 2, "t": 5})
5
>>> (p - i >= 1).holds({"p": 3, "i": 2})
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bubbleproof.papers.theorems.polynomials import Coefficient, Environment, Polynomial, Symbol


@dataclass(frozen=True, slots=True)
class Comparison:
    """An atom: ``polynomial`` is ``>=``, ``>`` or ``==`` 0."""

    polynomial: Polynomial
    relation: str

    def holds(self, environment: Environment) -> bool:
        value = self.polynomial.value(environment)
        if self.relation == "==":
            return value == 0
        return value >= 0 if self.relation == ">=" else value > 0

    def atoms(self) -> Iterator[Comparison]:
        yield self


@dataclass(frozen=True, slots=True)
class Compound:
    """``all`` or ``any`` of the parts, or ``not`` the only one."""

    how: str
    parts: tuple[LogicFormula, ...]

    def holds(self, environment: Environment) -> bool:
        if self.how == "not":
            return not self.parts[0].holds(environment)
        values = (part.holds(environment) for part in self.parts)
        return all(values) if self.how == "all" else any(values)

    def atoms(self) -> Iterator[Comparison]:
        """Every comparison inside."""
        for part in self.parts:
            yield from part.atoms()


LogicFormula = Comparison | Compound
Case = tuple[LogicFormula, Polynomial]


def all_of(*parts: LogicFormula) -> LogicFormula:
    """Every part holds; true for none."""
    return parts[0] if len(parts) == 1 else Compound("all", parts)


def any_of(*parts: LogicFormula) -> LogicFormula:
    """Some part holds; false for none."""
    return parts[0] if len(parts) == 1 else Compound("any", parts)


def negate(formula: LogicFormula) -> LogicFormula:
    """The formula does not hold."""
    return Compound("not", (formula,))


def implies(premise: LogicFormula, conclusion: LogicFormula) -> LogicFormula:
    """The conclusion holds wherever the premise does."""
    return any_of(negate(premise), conclusion)


TRUE = all_of()


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A polynomial by cases; exactly one of the guards holds."""

    cases: tuple[Case, ...]

    def _combine(
        self, other: Term | int, how: Callable[[Polynomial, Polynomial], Polynomial]
    ) -> Term:
        right = lift(other)
        return Term(
            tuple(
                (_both(g, h), how(left, value))
                for g, left in self.cases
                for h, value in right.cases
            )
        )

    def _compare(self, other: Term | int, relation: str) -> LogicFormula:
        difference = self - other
        atoms = [(guard, Comparison(value, relation)) for guard, value in difference.cases]
        return all_of(*(atom if g is TRUE else implies(g, atom) for g, atom in atoms))

    def __add__(self, other: Term | int) -> Term:
        return self._combine(other, lambda a, b: a.plus(b, 1))

    def __sub__(self, other: Term | int) -> Term:
        return self._combine(other, lambda a, b: a.plus(b, -1))

    def __mul__(self, other: Term | int) -> Term:
        return self._combine(other, Polynomial.times)

    def __radd__(self, other: int) -> Term:
        return self + other

    def __rsub__(self, other: int) -> Term:
        return lift(other) - self

    def __rmul__(self, other: int) -> Term:
        return self * other

    def __ge__(self, other: Term | int) -> LogicFormula:
        return self._compare(other, ">=")

    def __gt__(self, other: Term | int) -> LogicFormula:
        return self._compare(other, ">")

    def __le__(self, other: Term | int) -> LogicFormula:
        return lift(other) >= self

    def __lt__(self, other: Term | int) -> LogicFormula:
        return lift(other) > self

    def equals(self, other: Term | int) -> LogicFormula:
        """Both have one value."""
        return self._compare(other, "==")

    def value(self, environment: Environment) -> Coefficient:
        """The number of the case that holds."""
        found = [value for guard, value in self.cases if guard.holds(environment)]
        if len(found) != 1:
            raise ValueError(f"one case of a term must hold, but {len(found)} do")
        return found[0].value(environment)


def _both(left: LogicFormula, right: LogicFormula) -> LogicFormula:
    if left is TRUE or right is TRUE:
        return right if left is TRUE else left
    return all_of(left, right)


def lift(value: Term | int) -> Term:
    """A number as a term."""
    return value if isinstance(value, Term) else Term(((TRUE, Polynomial.of({(): value})),))


def choose(guard: LogicFormula, then: Term | int, otherwise: Term | int) -> Term:
    """``then`` where the guard holds, ``otherwise`` elsewhere."""
    yes = ((_both(guard, g), value) for g, value in lift(then).cases)
    no = ((_both(negate(guard), g), value) for g, value in lift(otherwise).cases)
    return Term((*yes, *no))


def index(name: str) -> Term:
    """An integer symbol."""
    return Term(((TRUE, Polynomial.of({(Symbol(name, False),): 1})),))


def time(name: str) -> Term:
    """A symbol for a real number of ticks."""
    return Term(((TRUE, Polynomial.of({(Symbol(name, True),): 1})),))
