"""The prover: what it may call proved, what refuted, and what neither."""

from __future__ import annotations

from itertools import product

import pytest
import z3  # type: ignore[import-untyped]  # z3 ships no annotations

from bubbleproof.papers.theorems.polynomials import Coefficient, Polynomial
from bubbleproof.papers.theorems.products import Linearisation, found_products
from bubbleproof.papers.theorems.prover import prove, prove_obligation
from bubbleproof.papers.theorems.terms import LogicFormula, Term, all_of, index, time
from bubbleproof.papers.theorems.theorem import Obligation, ProofVerdict, Theorem
from proofs_tests.papers.theorems.values import numbers
from proofs_tests.patience import PATIENCE

A, B, T = index("a"), index("b"), time("t")


def _smt(number: Coefficient) -> str:
    return str(number) if number >= 0 else f"(- {-number})"


def obligation(
    *premises: LogicFormula, goal: LogicFormula, hints: tuple[tuple[Term, Term], ...] = ()
) -> Obligation:
    return Obligation(name="it", premises=premises, goal=goal, hints=hints)


def verdict(wanted: Obligation) -> ProofVerdict:
    return prove_obligation(wanted, timeout_ms=round(1000 * PATIENCE)).verdict


def test_a_sign_lemma_proves_what_products_hide() -> None:
    assert verdict(obligation(T > 0, A >= B, goal=A * T >= B * T)) is ProofVerdict.PROVED


def test_a_false_obligation_fails_with_values_that_refute_it() -> None:
    wanted = obligation(T > 0, A >= B, goal=A * T > B * T)
    proof = prove_obligation(wanted)
    assert proof.verdict is ProofVerdict.FAILED
    assert proof.counter_model is not None
    values = numbers(proof.counter_model)
    assert wanted.refuted_by(values)
    assert values["a"] == values["b"]  # the only way to break it


def test_true_but_beyond_the_lemmas_is_unknown_and_not_proved() -> None:
    # a*a >= 0 holds for all integers; for a < 0 it needs a negative times a negative, no lemma.
    assert verdict(obligation(goal=A * A >= 0)) is ProofVerdict.UNKNOWN


def test_a_hint_cannot_make_a_false_obligation_pass() -> None:
    hints = ((A - B, T), (B - A, T), (A, T), (A * B, T), (A - 7, B))
    wanted = obligation(T > 0, A >= B, goal=A * T >= B * T + T, hints=hints)
    assert verdict(wanted) is ProofVerdict.FAILED


def test_a_false_product_of_indices_fails_at_small_counts() -> None:
    wanted = obligation(A >= 1, B >= 1, goal=A * B <= A + B)  # first broken at 2 * 3 > 2 + 3
    assert verdict(wanted) is ProofVerdict.FAILED


def test_one_unknown_obligation_leaves_the_theorem_unknown() -> None:
    parts = (
        Obligation(name="fine", premises=(A >= 1,), goal=A >= 0),
        Obligation(name="beyond", premises=(), goal=A * A >= 0),
    )
    theorem = Theorem(
        id="x", statement="", assumptions=(), symbols="", argument="", obligations=parts
    )
    proof = prove(theorem)
    assert proof.verdict is ProofVerdict.UNKNOWN
    assert [o.verdict.name for o in proof.obligations] == ["PROVED", "UNKNOWN"]
    assert proof.to_dict()["verdict"] == "UNKNOWN"


def test_obligations_need_names_of_their_own() -> None:
    one = obligation(goal=A >= 0)
    with pytest.raises(ValueError, match="names of their own"):
        Theorem(
            id="x", statement="", assumptions=(), symbols="", argument="", obligations=(one, one)
        )


def test_sign_lemmas_hold_at_all_small_numbers() -> None:
    """Every lemma for (a - b) t, evaluated with the true product in place of its variable."""
    formula = all_of((A - B) * T >= 0)
    linear = Linearisation()
    lemmas = list(linear.sign_lemmas([formula], ()))
    assert lemmas
    broken = " ".join(f"(not {lemma})" for lemma in lemmas)
    for values in product(range(-3, 4), repeat=3):
        numbers = dict(zip("abt", values, strict=True))
        exact = [
            f"(assert (= {name} {_smt(Polynomial.of({monomial: 1}).value(numbers))}))"
            for monomial, name in linear.names.items()
        ]
        solver = z3.Solver()
        solver.from_string("".join([*linear.declarations(), *exact, f"(assert (or {broken}))"]))
        assert solver.check() == z3.unsat, numbers


def test_a_script_is_plain_smt_lib() -> None:
    lines = Linearisation().script((A - 1) * T >= 2 * T).splitlines()
    assert sorted(lines[:3]) == [
        "(declare-const |a*t| Real)",
        "(declare-const |a| Int)",
        "(declare-const |t| Real)",
    ]
    assert lines[3] == "(assert (>= (+ (* 1.0 |a*t|) (* (- 3.0) |t|)) 0.0))"


def test_products_are_found_inside_products() -> None:
    # (a*b - b) * t: t multiplies a*b - b, in which a multiplies b and b multiplies a - 1.
    formula = (A * B - B) * T >= 0
    products = [(A * B - B, T), (B, A), (A - 1, B)]
    assert {*found_products([formula])} == {(e.cases[0][1], s.cases[0][1]) for e, s in products}
