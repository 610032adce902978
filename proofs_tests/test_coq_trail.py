"""Proofs by propagation as Coq has them (``proofs/Trail.v``): each lemma with its steps."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from bubbleproof.formats.coq.certificate_words import free_text, trail_text
from bubbleproof.formats.coq.coq_words import (
    edge_text,
    list_text,
    own_edges,
    stores_text,
    table_text,
)
from bubbleproof.planners.case_proofs import refuted
from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.refutation.propagation import improve
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.certificates.certificate import Drup, Lemma
from proofs_tests.coq import answer, needs_coq
from proofs_tests.patience import in_time
from proofs_tests.verify.test_certificate_propagation import FREE, PROBLEM, PUSH
from proofs_tests.verify.test_drup import proof, refusal

HEADER = """Require Import ZArith List Bool.
From Bubbleproof Require Import Definitions Stores Instances Groups Lifecycles Facts Absurd Trail
  Shown.
Import ListNotations.
Open Scope Z_scope.
"""


def waved(ranks: int, microbatches: int, capacity: int) -> Problem:
    """Two chunks a rank, in a V, that share a store."""
    pipe = Pipeline(
        num_ranks=ranks,
        num_microbatches=microbatches,
        num_chunks=2,
        placement="wave",
        capacity=capacity,
    )
    return pipe.problem()


def certificates() -> list[tuple[Problem, Drup]]:
    """A crowd, a push, a full store, a SAT solver's proof, and one that supposes."""
    small, tiny = waved(2, 4, 3), waved(2, 2, 1)
    by_sat, full = proof(small, 32), refuted(tiny)
    supposing = improve(small, lower_bounds(small), None, in_time())
    assert by_sat is not None
    assert full is not None
    assert supposing is not None
    assert {lemma.rule for lemma in supposing.lemmas} == {"lemma", "suppose", "absurd"}
    crowd = Drup(bound=7, lemmas=(Lemma(crowd=(0, 1, 2, 3)),))
    push = Drup(bound=9, lemmas=(PUSH,))
    found = [(FREE, crowd), (PROBLEM, push), (tiny, full), (small, by_sat), (small, supposing)]
    assert [refusal(*one) for one in found] == [""] * len(found)
    return found


def goal(name: str, problem: Problem, bound: int, items: str, *, holds: bool) -> str:
    """That Coq accepts the trail as a proof of the bound, or refuses it."""
    ranks = f"(fun r => r <? {problem.num_ranks})"
    shown = f"check_shown {ranks} table{name} edges{name} stores{name} ({bound})"
    trail = f"(ByTrail free{name} ({bound}) {items})"
    return f"Goal {shown} {trail} = {str(holds).lower()}. Proof. vm_compute. reflexivity. Qed.\n"


def definitions(name: str, problem: Problem) -> str:
    """The problem, and what justifies free edges."""
    return f"""Definition table{name} : table := {list_text(table_text(problem))}.
Definition edges{name} : list (edge positive) :=
  {list_text(map(edge_text, own_edges(problem)))}.
Definition stores{name} : list (store positive) := {list_text(stores_text(problem))}.
Definition free{name} := {free_text(problem, every_chain=True)}.
"""


@needs_coq
def test_coq_follows_each_lemma_and_no_more(coq_library: tuple[Path, dict[str, str]]) -> None:
    """As they are, with the bound raised by one, and without the steps of one lemma."""
    text, steps = HEADER, Counter[str]()
    for number, (problem, certificate) in enumerate(certificates()):
        items, bound = trail_text(problem, certificate), certificate.bound
        text += definitions(str(number), problem)
        text += goal(str(number), problem, bound, items, holds=True)
        if certificate.lemmas[0].full is None:  # which excludes every makespan
            text += goal(str(number), problem, bound + 1, items, holds=False)
        told = re.sub(r"(Learn \[[^]]*\]) \[[^]]+\]", r"\1 []", items, count=1)
        if told != items:
            text += goal(str(number), problem, bound, told, holds=False)
        steps.update(re.findall(r"[A-Z]\w+", items))
    done = answer(coq_library[0], "Trails", text)
    assert done.returncode == 0, done.stderr
    every = "Inside Along Against Turn Unturn Decide Sure Carry Unit Gone Crowd Full Spent"
    assert set(every.split()) - steps.keys() <= {"Spent"}


def test_what_trails_have_no_words_for_is_refused() -> None:
    idle = Drup(bound=9, lemmas=(PUSH,), objective="span_idle")
    with pytest.raises(ValueError, match="of the makespan alone"):
        trail_text(PROBLEM, idle)
    unfounded = replace(idle, objective="makespan", bound=12, lemmas=(Lemma(),))
    with pytest.raises(ValueError, match="no words for why lemma 0 follows"):
        trail_text(PROBLEM, unfounded)
