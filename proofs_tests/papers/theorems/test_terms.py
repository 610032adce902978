"""Terms: expansion, cases and evaluation, with values worked out by hand."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import pytest

from bubbleproof.papers.theorems.polynomials import Coefficient, Polynomial, Symbol
from bubbleproof.papers.theorems.terms import all_of, any_of, choose, implies, index, negate, time

P, R, T, U = index("p"), index("r"), time("t"), time("u")
AT: dict[str, Coefficient] = {"p": 5, "r": 2, "t": Fraction(1, 2), "u": 3}


def test_products_are_expanded() -> None:
    # (p - r)(p + r) = p^2 - i^2, and p^2 - p^2 leaves nothing.
    p, r = Symbol("p", False), Symbol("r", False)
    expanded = (P - R) * (P + R)
    assert expanded.cases == ((all_of(), Polynomial.of({(p, p): 1, (r, r): -1})),)
    assert (expanded - P * P + R * R).cases == ((all_of(), Polynomial.of({})),)


def test_a_term_has_its_value() -> None:
    # (5 - 2) * 1/2 + 2 * 3 - 0 = 7.5
    assert ((P - R) * T + R * U).value(AT) == Fraction(15, 2)
    assert (7 - 2 * P).value(AT) == -3


def test_choose_takes_the_case_that_holds() -> None:
    term = choose(R <= P - 3, T, U) - T
    assert term.value(AT) == 0  # 2 <= 2
    assert term.value({**AT, "r": 3}) == Fraction(5, 2)  # 3 - 1/2


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (P >= 5, True),
        (P > 5, False),
        (P <= 5, True),
        (P < 5, False),
        (P.equals(R + 3), True),
        (negate(P.equals(R)), True),
        (all_of(P >= 5, P >= 6), False),
        (any_of(P >= 6, P >= 5), True),
        (implies(P >= 6, P >= 7), True),
        (implies(P >= 5, P >= 6), False),
        (choose(P >= 5, T, U) < U, True),
        (all_of(), True),
    ],
)
def test_a_formula_is_evaluated(formula: object, expected: bool) -> None:
    assert formula.holds(AT) is expected  # type: ignore[attr-defined]  # all are formulas


@pytest.mark.parametrize("wrong", [lambda: P + T, lambda: T * U])
def test_an_index_is_no_time(wrong: object) -> None:
    with pytest.raises(ValueError, match="an index or a time throughout"):
        wrong()  # type: ignore[operator]  # both are functions


def test_a_missing_value_is_an_error() -> None:
    with pytest.raises(KeyError, match="t"):
        T.value({"p": 1})


@pytest.mark.parametrize("module", ["bubbleproof", "bubbleproof.papers.theorems"])
def test_importing_does_not_load_z3(module: str) -> None:
    probe = "assert 'z3' not in sys.modules; import z3; assert 'z3' in sys.modules"
    code = f"import sys, {module}; {probe}"
    subprocess.run([sys.executable, "-c", code], check=True)
