"""Formulas of claims: exact, and no name that is no parameter."""

from __future__ import annotations

from fractions import Fraction

import pytest

from bubbleproof.papers.claims.claim import stated
from bubbleproof.papers.claims.domain import case, domain
from bubbleproof.papers.formula import Formula


def test_quotients_and_decimals_are_fractions() -> None:
    # 7/2 - 1/10 = 34/10 = 17/5; a float would miss it.
    found = Formula("p/2 - 0.1")({"p": 7})
    assert (found, type(found)) == (Fraction(17, 5), Fraction)
    assert Formula("-(-p // 2) * max(1, p % 4)")({"p": 7}) == 4 * 3
    assert Formula("2 <= p < m")({"p": 7, "m": 7}) is False


def test_a_formula_calls_the_functions_that_it_is_given() -> None:
    twice = Formula("twice(p) + 1", {"twice": lambda p: 2 * p})
    assert twice({"p": 3}) == 7
    assert twice.parameters == {"p"}


def test_a_domain_takes_formulas_for_its_values_and_its_condition() -> None:
    # m < p, both odd or both even: (2, 0), (3, 1); wide with p = 4: (4, 0), (4, 2).
    some = domain("small", p=(2, 3), m="range(p)", where="(p - m) % 2 == 0").widened("wide", p=(4,))
    assert some.table.tolist() == [[2, 0], [3, 1]]
    assert some.wide is not None
    assert (some.wide.text, some.wide.table.tolist()) == ("wide", [[4, 0], [4, 2]])


def test_a_claim_refuses_a_formula_with_a_name_that_its_cases_lack() -> None:
    where = case("one case", p=1)
    with pytest.raises(ValueError, match=r"x\.y: p/q names q, no parameter"):
        stated("x.y", "ours", "It is.", "value", "p", "==", "p/q", where)
