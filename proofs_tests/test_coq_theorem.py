"""A user's schedule and its certificate are theorems of Coq; changed by one they are none."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import bubbleproof as bp
from bubbleproof.formats.coq.coq_theorem import MOST_TASKS, coq_theorem
from bubbleproof.formats.problem_toml import problem_file_of_text
from bubbleproof.solvers import SolveOptions, solve
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.pipeline import problem_of
from bubbleproof.verify.certificates.certificate import Drup, Lemma
from bubbleproof.verify.certificates.certificate_rule import refusal
from bubbleproof.verify.certificates.microbatch_windows import MicrobatchWindows
from bubbleproof.verify.certificates.one_machine import OneMachine, one_machine_refusal
from bubbleproof.verify.certificates.one_store import OneStore
from bubbleproof.verify.certificates.tick_prices import prices_refusal
from bubbleproof.verify.certificates.volume import Volume
from proofs_tests.coq import answer, needs_coq
from proofs_tests.verify.test_certificate_propagation import PROBLEM, PUSH
from proofs_tests.verify.test_microbatch_windows import THRICE
from proofs_tests.verify.test_one_store import QUEUE
from proofs_tests.verify.test_one_store import TRUE as STORED
from proofs_tests.verify.test_tick_prices import rented
from proofs_tests.verify.test_volume import TRUE as VOLUME
from proofs_tests.verify.test_volume import queue

TOML = """
ranks = 3
microbatches = 6
[durations]
forward = [3, 9, 2]
backward = [5, 11, 7]
[memory]
capacity = 3
activation = 1
"""
PIPELINE = problem_file_of_text(TOML, name="small").pipeline
Solved = tuple[Problem, Schedule, OneMachine]


@pytest.fixture
def folder(coq_library: tuple[Path, dict[str, str]]) -> Path:
    """Where the proofs are compiled."""
    return coq_library[0]


@pytest.fixture(scope="module")
def solved() -> Solved:
    found, problem = bp.solve(PIPELINE), problem_of(PIPELINE)
    assert isinstance(found.certificate, OneMachine)
    assert found.schedule is not None
    return problem, found.schedule, found.certificate


@needs_coq
def test_coq_accepts_what_the_checkers_accept_and_no_more(folder: Path, solved: Solved) -> None:
    problem, schedule, certificate = solved
    of_pipeline = coq_theorem(problem, schedule, certificate, PIPELINE)
    done = answer(folder, "Optimal", of_pipeline)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Closed under the global context") == 5
    # the schedule and the bound would do for these ticks too
    faster = of_pipeline.replace("forward := [[3]; [9]; [2]]", "forward := [[3]; [9]; [1]]")
    assert faster != of_pipeline
    assert answer(folder, "Faster", faster).returncode
    text = coq_theorem(problem, schedule, certificate)  # of its tasks alone
    raised = replace(certificate, bound=certificate.bound + 1)
    twice = replace(certificate, tasks=certificate.tasks + certificate.tasks[:1])
    for claim in (raised, twice):
        assert one_machine_refusal(problem, claim) is not None
        assert answer(folder, "Wrong", coq_theorem(problem, schedule, claim)).returncode
    moved = schedule.start.copy()
    moved[-1] -= 1  # before its input, or onto another task
    early = replace(schedule, start=moved)
    assert not bp.check(problem, early).ok
    assert answer(folder, "Early", coq_theorem(problem, early, certificate)).returncode
    unlike = re.sub(
        r"(Definition own_tasks : table := \[\n  \()F_0_0, \((\d+)",
        r"\g<1>F_0_0, (1\g<2>",
        text,
    )
    assert unlike != text  # one microbatch takes longer than the others of its group
    assert answer(folder, "Unlike", unlike).returncode
    free = re.search(r"\[(\([^\[\]]*)\]\)\n  \(Certificate", text)
    own = re.search(r"own_edges .*?:= \[\n(.*?)\]\.", text, re.DOTALL)
    assert free is not None
    assert own is not None
    added = sorted({*free[1].split(";\n")} - {*own[1].split(";\n")})
    later = text.replace(added[0], added[0].replace(", 0)", ", 1)"))
    assert later != text  # an edge that identical microbatches do not allow
    assert answer(folder, "Later", later).returncode
    full = re.sub(r"Store positive 0 \(Some 3\)", "Store positive 0 (Some 2)", text)
    assert full != text  # the schedule needs all 3 units of some rank
    assert answer(folder, "Full", full).returncode
    claims_less = re.sub(r"rows (\d+) (\d+)\.", lambda m: f"rows {m[1]} {int(m[2]) - 1}.", text)
    assert claims_less != text
    assert answer(folder, "Less", claims_less).returncode


@needs_coq
def test_prices_are_a_theorem_about_the_problem_itself(folder: Path) -> None:
    """Four uses of 10 ticks pay 40; of a store for two 19 ticks sell 38 (``test_tick_prices``)."""
    problem = queue(4, 2)
    schedule = solve(problem, SolveOptions(threads=1)).schedule
    assert schedule is not None
    text = coq_theorem(problem, schedule, rented(20))
    done = answer(folder, "Sold", text)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Closed under the global context") == 4
    assert "ByPrices" in text
    assert "Free [" not in text
    for claim in (rented(21), rented(20, 0)):
        assert prices_refusal(problem, claim) is not None
        assert answer(folder, "Wrong", coq_theorem(problem, schedule, claim)).returncode
    roomier = coq_theorem(queue(4, 3), schedule, rented(20))
    assert answer(folder, "Roomier", roomier).returncode


@needs_coq
@pytest.mark.parametrize(
    ("problem", "true"),
    [
        (QUEUE, STORED),
        (QUEUE, replace(STORED, objective="span_idle", bound=STORED.bound - 16)),
        (queue(4, 2), VOLUME),
    ],
    ids=("one store", "idle", "volume"),
)
def test_what_a_store_shows_is_a_theorem(
    folder: Path, problem: Problem, true: OneStore | Volume
) -> None:
    """Certificates of ``test_one_store`` and ``test_volume`` that are true, and raised by one.

    The queue's one rank has 16 ticks of work.
    """
    schedule = solve(problem, SolveOptions(threads=1)).schedule
    assert schedule is not None
    done = answer(folder, "Stored", coq_theorem(problem, schedule, true))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Closed under the global context") == 4
    raised = replace(true, bound=true.bound + 1)
    assert refusal(problem, raised) is not None
    assert answer(folder, "Wrong", coq_theorem(problem, schedule, raised)).returncode


@needs_coq
@pytest.mark.parametrize(
    ("problem", "true"),
    [(PROBLEM, Drup(bound=9, lemmas=(PUSH,))), (queue(5, 2), THRICE)],
    ids=("propagation", "windows"),
)
def test_what_is_proved_in_parts_is_a_theorem(
    folder: Path, problem: Problem, true: Drup | MicrobatchWindows
) -> None:
    """``test_coq_trail`` and ``test_coq_windows`` say what Coq does not accept of these kinds."""
    schedule = solve(problem, SolveOptions(threads=1)).schedule
    assert schedule is not None
    done = answer(folder, "Parts", coq_theorem(problem, schedule, true))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Closed under the global context") == 4


def test_what_coq_has_no_words_for_is_refused(
    solved: Solved, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, schedule, certificate = solved
    unfounded = Drup(bound=certificate.bound + 9, lemmas=(Lemma(),))
    with pytest.raises(ValueError, match="no words for why lemma 0 follows"):
        coq_theorem(problem, schedule, unfounded)
    with pytest.raises(ValueError, match="of the makespan alone, got a Volume"):
        coq_theorem(problem, schedule, Volume(store=0, bound=1, objective="span_idle"))
    monkeypatch.setattr("bubbleproof.formats.coq.coq_theorem.MOST_TASKS", problem.num_tasks - 1)
    assert problem.num_tasks < MOST_TASKS
    with pytest.raises(ValueError, match=f"at most {problem.num_tasks - 1} tasks"):
        coq_theorem(problem, schedule, certificate)
