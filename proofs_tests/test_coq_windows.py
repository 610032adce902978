"""Certificates by windows as Coq has them (``proofs/Windows.v``, ``proofs/WindowRows.v``)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

from bubbleproof.formats.coq.coq_words import (
    edge_text,
    list_text,
    own_edges,
    stores_text,
    table_text,
)
from bubbleproof.formats.coq.window_words import WindowWords
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.certificate import Drup
from bubbleproof.verify.certificates.certificate_rule import refusal
from bubbleproof.verify.certificates.microbatch_windows import (
    Excerpts,
    MicrobatchWindow,
    MicrobatchWindows,
    windows_refusal,
)
from bubbleproof.verify.certificates.one_machine import OneMachine
from bubbleproof.verify.certificates.volume import Volume
from proofs_tests.coq import answer, needs_coq
from proofs_tests.sized import sized
from proofs_tests.solvers.exhaustive import TooMuchWork
from proofs_tests.solvers.random_groups import random_groups
from proofs_tests.solvers.random_problems import random_problem
from proofs_tests.verify.odd_problems import odd_problem
from proofs_tests.verify.test_microbatch_windows import (
    THRICE,
    believed,
    chain,
    claim,
    random_claims,
    window,
)
from proofs_tests.verify.test_volume import queue

HEADER = """Require Import ZArith List Bool.
From Bubbleproof Require Import Definitions Stores Instances OneMachine PricePayments Prices Groups
  Lifecycles OneStore Volume Facts Absurd Trail Shown Windows WindowRows.
Import ListNotations.
Open Scope Z_scope.
Definition all_shown (shorts : list short) (proofs : list shown) :=
  Nat.eqb (length shorts) (length proofs) && forallb (fun x =>
    check_shown (Z.eqb (clock (fst x))) (short_table (fst x)) (short_edges (fst x))
      (short_stores (fst x)) (short_ticks (fst x)) (snd x)) (combine shorts proofs).
"""


def certificates() -> list[tuple[Problem, MicrobatchWindows]]:
    """One microbatch and two at a time; through what is left out; a window by propagation."""
    pair = claim(40, window(2, 2, Volume(store=0, bound=20)))
    middle = chain(4)
    first = middle.task("1F0")
    kinds = OneMachine(resource=0, tasks=(1,), bound=6), Drup(bound=6, lemmas=())
    found = [(queue(5, 2), THRICE), (queue(4, 1), pair)]
    for proof in kinds:
        windows = (MicrobatchWindow(count=1, ranks=(1,), proof=proof, times=4),)
        found.append((middle, MicrobatchWindows(first=first, store=1, windows=windows, bound=27)))
    assert isinstance(Excerpts(middle, first, 1).of(1, (1,)), Problem)
    assert [refusal(*one) for one in found] == [None] * len(found)
    return found


def drawn() -> Iterator[tuple[Problem, MicrobatchWindows]]:
    """Claims of random problems that Python accepts, and not if raised by one, proofs apart."""
    random = Random(7)
    for seed in range(sized(30, full=600)):
        problem = (random_problem, odd_problem, random_groups)[seed % 3](Random(seed))
        try:
            claims = [*random_claims(random, problem)]
        except TooMuchWork:
            continue
        for one in claims:
            more = replace(one, bound=one.bound + 1)
            if windows_refusal(problem, one, believed) is None:
                assert windows_refusal(problem, more, believed) is not None, seed
                yield problem, one


def module(
    number: int,
    problem: Problem,
    certificate: MicrobatchWindows,
    words: str,
    proofs: str = "all_shown shorts short_proofs",
) -> str:
    """What Coq computes of the certificate, and of the bound raised by one."""
    goals = "".join(
        f"Goal check_windows (fun r => r <? {problem.num_ranks}) t es sts justified shorts windows "
        f"({bound}) && {proofs} = {holds}. "
        "Proof. vm_compute. reflexivity. Qed.\n"
        for bound, holds in ((certificate.bound, "true"), (certificate.bound + 1, "false"))
    )
    return f"""Module M{number}.
Definition t : table := {list_text(table_text(problem))}.
Definition es : list (edge positive) := {list_text(map(edge_text, own_edges(problem)))}.
Definition sts : list (store positive) := {list_text(stores_text(problem))}.
{words}
{goals}End M{number}.
"""


@needs_coq
def test_coq_accepts_windows_and_no_more(coq_library: tuple[Path, dict[str, str]]) -> None:
    """Raised by one, or with the use of a store of another microbatch, they prove nothing."""
    text = HEADER
    for number, (problem, certificate) in enumerate(certificates()):
        words = WindowWords(problem, certificate).definitions()
        text += module(number, problem, certificate, words)
        other = re.sub(r"(PartOf \d%nat \[\(0%nat), 0%nat\)", r"\1, 1%nat)", words, count=1)
        assert other != words
        text += module(100 + number, problem, certificate, other).replace("= true.", "= false.")
    random = [*drawn()]
    for number, (problem, certificate) in enumerate(random, start=200):
        words = WindowWords(problem, certificate).definitions()
        text += module(number, problem, certificate, words, proofs="true")
    assert len(random) > 3
    done = answer(coq_library[0], "Windowed", text)
    assert done.returncode == 0, done.stderr
