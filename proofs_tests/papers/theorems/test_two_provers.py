"""cvc5 answers each obligation as Z3 does, from the same text, and where it does not that is told.

By default some obligations of each theorem; all of them in the long form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from bubbleproof.papers.commands.prove import run_prove
from bubbleproof.papers.theorems import Obligation, ProofVerdict, Theorem, TheoremProof
from bubbleproof.papers.theorems import second_prover as cvc5_module
from bubbleproof.papers.theorems.prover import prove
from bubbleproof.papers.theorems.second_prover import cvc5_answer, with_second_answers
from bubbleproof.papers.theorems.terms import index, time
from bubbleproof.papers.theorems.theorem_library import theorems
from proofs_tests.papers.theorems.twins import twins
from proofs_tests.patience import PATIENCE
from proofs_tests.sized import sampled, sized

pytest.importorskip("cvc5", reason="cvc5 is not installed, so there is no second answer")
NAMES = tuple(theorems())
MOST = sized(2, full=10_000)  # obligations of a theorem
A, T = index("a"), time("t")


def some(theorem: Theorem) -> Theorem:
    """The theorem with its last obligations alone, which are its longest."""
    return replace(theorem, obligations=theorem.obligations[-MOST:])


@pytest.mark.parametrize("name", NAMES)
def test_cvc5_proves_what_z3_proves(name: str) -> None:
    limit = round(1000 * PATIENCE)
    proof = with_second_answers(prove(some(theorems()[name]), limit), limit)
    assert [answer.answer for answer in proof.second_answers] == ["unsat"] * len(proof.obligations)
    assert proof.verdict is ProofVerdict.PROVED
    assert proof.disputed == ()


@pytest.mark.parametrize("name", sampled(NAMES, every=3))
def test_cvc5_proves_no_twin(name: str) -> None:
    for twin in [twin for twin in twins() if twin.theorem.id == name][: sized(1, full=100)]:
        wanted = {o.name: o for o in twin.theorem.obligations}
        for part in sorted(twin.breaks)[: sized(1, full=100)]:
            assert cvc5_answer(wanted[part].script(), 10_000) == "sat", (twin.change, part)


def one(goal_holds: bool) -> Theorem:
    goal = A * T >= T if goal_holds else A * T > T
    part = Obligation(name="it", premises=(T > 0, A >= 1), goal=goal)
    return Theorem(
        id="x", statement="", assumptions=(), symbols="", argument="", obligations=(part,)
    )


def answering(monkeypatch: pytest.MonkeyPatch, answer: str) -> Callable[[bool], TheoremProof]:
    """The theorem above, where the second prover's answer is this one."""
    monkeypatch.setattr(cvc5_module, "cvc5_answer", lambda *_: answer)
    return lambda goal_holds: with_second_answers(prove(one(goal_holds)))


@pytest.mark.parametrize("answer", ["sat", "unknown"])
def test_what_only_z3_proves_is_disputed_by_name(
    monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    proof = answering(monkeypatch, answer)(True)
    assert proof.verdict is ProofVerdict.DISPUTED
    assert proof.disputed == (f"it: Z3 proved, cvc5 {answer}",)


def test_what_only_cvc5_proves_is_disputed_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    proof = answering(monkeypatch, "unsat")(False)
    assert proof.verdict is ProofVerdict.DISPUTED
    assert proof.disputed == ("it: Z3 failed, cvc5 unsat",)


def test_both_refuting_it_is_no_dispute() -> None:
    proof = with_second_answers(prove(one(False)))
    assert proof.verdict is ProofVerdict.FAILED
    assert [answer.answer for answer in proof.second_answers] == ["sat"]


def test_the_command_prints_both_and_fails_where_they_differ(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert run_prove(["bpipe"], 10.0, True, False) == 0
    answer = capsys.readouterr().out
    assert re.search(r"bpipe +│ proved +│ 13 +│ [\d.]+ s +│ 13 of 13", answer)
    monkeypatch.setattr(cvc5_module, "cvc5_answer", lambda *_: "unknown")
    assert run_prove(["bpipe"], 10.0, True, True) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["ok"] is False
    (theorem,) = told["theorems"]
    assert theorem["verdict"] == "DISPUTED"
    assert {part["cvc5"]["answer"] for part in theorem["obligations"]} == {"unknown"}
    assert run_prove(["bpipe"], 10.0, True, False) == 1
    assert capsys.readouterr().out.count(": Z3 proved, cvc5 unknown") == 13
