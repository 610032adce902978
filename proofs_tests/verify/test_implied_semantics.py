"""Implications among semantics: what is proved has no counterexample, what is refuted has one."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from bubbleproof.theory.model.schedule import Program
from bubbleproof.verify import Semantics, check_communication
from bubbleproof.verify.communication.deadlock import WEAKER
from proofs_tests import semantics_page
from proofs_tests.sized import sized
from proofs_tests.verify.implied_semantics import (
    SHAPES,
    counterexamples,
    judged,
    problem_of,
    programs_of,
    proof,
)

MOST, TRIED = sized((20, SHAPES[:6]), full=(3000, SHAPES))
PAIRS = [(a, b) for a, b in product(Semantics, repeat=2) if a is not b]


@pytest.mark.sweep
def test_no_program_refutes_what_is_proved() -> None:
    found = counterexamples(MOST, TRIED)
    assert [pair for pair in found if proof(*pair)] == []
    assert len(found) > 60  # of 114 that are refuted, by few programs already


def test_the_usual_chain_is_proved() -> None:
    usual = ("rank-stream", "launch-order", "pair-stream", "buffered")
    for number, stricter in enumerate(usual):
        for weaker in usual[number + 1 :]:
            assert proof(Semantics(stricter), Semantics(weaker))
            assert not proof(Semantics(weaker), Semantics(stricter))


def _where_what_follows_is_not_looked_at(most: int) -> tuple[int, int]:
    """How many programs there are, and how many are judged otherwise than by each semantics."""
    programs = [
        (problem, orders)
        for shape in TRIED
        for problem in [problem_of(shape)]
        for orders in programs_of(problem, most, Random(f"{shape} again"))
    ]
    differ = 0
    for problem, orders in programs:
        program = Program.from_orders([list(order) for order in orders])
        decisions = check_communication(problem, program, tuple(Semantics)).decisions
        ok, _ = judged(problem, orders)
        differ += [decision.ok for decision in decisions] != [ok[name] for name in Semantics]
    return len(programs), differ


def test_what_follows_need_not_be_looked_at() -> None:
    number, differ = _where_what_follows_is_not_looked_at(sized(5, full=1000))
    assert number >= 20
    assert differ == 0
    assert all(proof(a, b) for a, weaker in WEAKER.items() for b in weaker)


def test_what_does_not_follow_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WEAKER, Semantics.BUFFERED, (Semantics.RENDEZVOUS,))
    assert _where_what_follows_is_not_looked_at(5)[1] > 0


def test_what_is_proved_is_transitive() -> None:
    implied = {pair for pair in PAIRS if proof(*pair)}
    for (a, b), (c, d) in product(implied, repeat=2):
        if b is c and a is not d:
            assert (a, d) in implied, (a, b, d)


def test_the_page_says_what_was_found() -> None:
    text = semantics_page.page("", counterexamples(5, SHAPES[:1]))
    assert "rendezvous = rank-stream = one-queue = captured\n" in text
    assert "| ? |" in text or " ? " in text  # five programs of one shape leave most open
