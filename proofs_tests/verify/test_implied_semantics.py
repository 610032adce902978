"""Implications among semantics: what is proved has no counterexample, what is refuted has one."""

from __future__ import annotations

from itertools import product

import pytest

from bubbleproof.verify import Semantics
from proofs_tests import semantics_page
from proofs_tests.sized import sized
from proofs_tests.verify.implied_semantics import SHAPES, counterexamples, proof

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


def test_what_is_proved_is_transitive() -> None:
    implied = {pair for pair in PAIRS if proof(*pair)}
    for (a, b), (c, d) in product(implied, repeat=2):
        if b is c and a is not d:
            assert (a, d) in implied, (a, b, d)


def test_the_page_says_what_was_found() -> None:
    text = semantics_page.page("", counterexamples(5, SHAPES[:1]))
    assert "rendezvous = rank-stream = one-queue = captured\n" in text
    assert "| ? |" in text or " ? " in text  # five programs of one shape leave most open
