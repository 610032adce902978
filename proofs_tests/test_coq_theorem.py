"""A user's schedule and its certificate are theorems of Coq; changed by one they are none."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import bubbleproof as bp
from bubbleproof.formats.coq.coq_theorem import MOST_TASKS, coq_theorem
from bubbleproof.formats.problem_toml import problem_file_of_text
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.pipeline_problem import problem_of
from bubbleproof.verify.certificates.one_machine import OneMachine, one_machine_refusal
from proofs_tests.coq import answer, compiled, needs_coq

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
Solved = tuple[Problem, Schedule, OneMachine]


@pytest.fixture(scope="module")
def solved() -> Solved:
    pipeline = problem_file_of_text(TOML, name="small").pipeline
    found, problem = bp.solve(pipeline), problem_of(pipeline)
    assert isinstance(found.certificate, OneMachine)
    assert found.schedule is not None
    return problem, found.schedule, found.certificate


@needs_coq
def test_coq_accepts_what_the_checkers_accept_and_no_more(tmp_path: Path, solved: Solved) -> None:
    compiled(tmp_path)
    problem, schedule, certificate = solved
    text = coq_theorem(problem, schedule, certificate)
    done = answer(tmp_path, "Optimal", text)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Closed under the global context") == 4
    raised = replace(certificate, bound=certificate.bound + 1)
    twice = replace(certificate, tasks=certificate.tasks + certificate.tasks[:1])
    for claim in (raised, twice):
        assert one_machine_refusal(problem, claim) is not None
        assert answer(tmp_path, "Wrong", coq_theorem(problem, schedule, claim)).returncode
    moved = schedule.start.copy()
    moved[-1] -= 1  # before its input, or onto another task
    early = replace(schedule, start=moved)
    assert not bp.check(problem, early).ok
    assert answer(tmp_path, "Early", coq_theorem(problem, early, certificate)).returncode
    full = re.sub(r"Store positive 0 \(Some 3\)", "Store positive 0 (Some 2)", text)
    assert full != text  # the schedule needs all 3 units of some rank
    assert answer(tmp_path, "Full", full).returncode
    claims_less = re.sub(r"rows (\d+) (\d+)\.", lambda m: f"rows {m[1]} {int(m[2]) - 1}.", text)
    assert claims_less != text
    assert answer(tmp_path, "Less", claims_less).returncode


def test_what_coq_has_no_words_for_is_refused(
    solved: Solved, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, schedule, certificate = solved
    with pytest.raises(ValueError, match="got OneMachine of span_idle"):
        coq_theorem(problem, schedule, replace(certificate, objective="span_idle"))
    monkeypatch.setattr("bubbleproof.formats.coq.coq_theorem.MOST_TASKS", problem.num_tasks - 1)
    assert problem.num_tasks < MOST_TASKS
    with pytest.raises(ValueError, match=f"at most {problem.num_tasks - 1} tasks"):
        coq_theorem(problem, schedule, certificate)
