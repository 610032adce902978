"""Every theorem is proved, none of them by contradiction in its premises; every twin fails."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import pytest

from bubbleproof.papers.theorems import (
    Obligation,
    ProofVerdict,
    Theorem,
    TheoremProof,
)
from bubbleproof.papers.theorems.polynomials import Coefficient
from bubbleproof.papers.theorems.prover import prove, prove_obligation
from bubbleproof.papers.theorems.terms import LogicFormula, any_of
from bubbleproof.papers.theorems.theorem import ObligationProof
from bubbleproof.papers.theorems.theorem_library import theorems
from proofs_tests.papers.theorems.twin import Twin
from proofs_tests.papers.theorems.twins import twins
from proofs_tests.papers.theorems.values import drawn, numbers
from proofs_tests.patience import PATIENCE
from proofs_tests.sized import sampled, sized

IDS = [*theorems()]


@cache
def asked(name: str) -> Theorem:
    """The theorem; by default with each other obligation."""
    theorem = theorems()[name]
    return replace(theorem, obligations=tuple(sampled(theorem.obligations, every=2)))


@cache
def proofs() -> dict[str, TheoremProof]:
    known: dict[Obligation, ObligationProof] = {}
    return {name: prove(asked(name), round(1000 * PATIENCE), known) for name in IDS}


@pytest.mark.parametrize("name", IDS)
def test_the_theorem_is_proved(name: str) -> None:
    theorem, proof = asked(name), proofs()[name]
    undecided = [o for o in proof.obligations if o.verdict is not ProofVerdict.PROVED]
    assert not undecided
    assert proof.verdict is ProofVerdict.PROVED
    assert [o.name for o in proof.obligations] == [o.name for o in theorem.obligations]


@pytest.mark.parametrize("name", IDS)
def test_every_obligation_has_premises_that_can_hold(name: str) -> None:
    for obligation in asked(name).obligations:
        values = model_of(obligation.premises)
        assert values is not None, obligation.name
        assert all(premise.holds(values) for premise in obligation.premises), obligation.name


@cache
def model_of(premises: tuple[LogicFormula, ...]) -> dict[str, Coefficient] | None:
    """Values at which the premises hold, asked once of those that obligations share."""
    never = Obligation(name="never", premises=premises, goal=any_of())
    proof = prove_obligation(never)
    assert proof.verdict is ProofVerdict.FAILED
    return None if proof.counter_model is None else numbers(proof.counter_model)


@pytest.mark.parametrize("name", IDS)
def test_obligations_hold_at_numbers_drawn_without_z3(name: str) -> None:
    """All of them, for one that does not hold is also refuted here."""
    for obligation in theorems()[name].obligations:
        assert refuting(obligation) is None, obligation.name


@cache
def refuting(obligation: Obligation) -> dict[str, Coefficient] | None:
    """Drawn values that refute an obligation, drawn once for those that theorems share."""
    draws = (drawn(obligation, seed) for seed in range(sized(20, full=150)))
    return next((values for values in draws if obligation.refuted_by(values)), None)


@pytest.mark.parametrize("name", IDS)
def test_each_twin_fails_with_values_that_refute_it(name: str) -> None:
    of_it = [twin for twin in twins() if twin.theorem.id == name]
    assert of_it
    for twin in of_it:
        assert_fails(twin)


def assert_fails(twin: Twin) -> None:
    wanted = {o.name: o for o in twin.theorem.obligations}
    assert twin.breaks, twin.change
    broken = replace(twin.theorem, obligations=tuple(wanted[name] for name in sorted(twin.breaks)))
    proof = prove(broken)
    for part in proof.obligations:
        assert part.verdict is ProofVerdict.FAILED, (twin.change, part.name)
        assert part.counter_model is not None
        assert wanted[part.name].refuted_by(numbers(part.counter_model)), part.name
    assert proof.verdict is ProofVerdict.FAILED


def test_every_theorem_has_a_twin() -> None:
    assert {twin.theorem.id for twin in twins()} == set(IDS)


def test_a_proof_is_the_same_twice_but_for_the_seconds() -> None:
    theorem = theorems()["1f1b"]
    first, second = (prove(theorem).to_dict() for _ in range(2))
    for data in (first, second):
        data.pop("seconds")
        assert isinstance(data["obligations"], list)
        for part in data["obligations"]:
            part.pop("seconds")
    assert json.dumps(first) == json.dumps(second)


def test_a_failed_proof_shows_its_counter_model() -> None:
    twin = next(t for t in twins() if t.theorem.id == "1f1b" and "makespan" in t.change)
    data = prove(twin.theorem).to_dict()
    assert data["verdict"] == "FAILED"
    assert isinstance(data["obligations"], list)
    failed = [part for part in data["obligations"] if part["verdict"] == "FAILED"]
    assert {part["name"] for part in failed} == twin.breaks
    assert all(part["counter_model"] for part in failed)
    texts = [str(part) for part in prove(twin.theorem).obligations]
    assert any("failed: a counter-model breaks it, " in text for text in texts)
    assert texts[0] == "no start before 0: proved: no counter-model exists"
