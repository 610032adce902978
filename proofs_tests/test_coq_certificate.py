"""A real certificate of one resource is a theorem of Coq; raised by one it is none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import bubbleproof as bp
from bubbleproof.formats.certificate_json import write_certificate
from bubbleproof.formats.problem_toml import read_problem
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline_problem import problem_of
from bubbleproof.verify.certificates.one_machine import OneMachine, one_machine_refusal
from proofs_tests.coq import answer, compiled, needs_coq
from proofs_tests.coq_certificate import coq_text, main

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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    (folder / "problem.toml").write_text(TOML, "utf-8")
    return folder


@pytest.fixture(scope="module")
def certified(folder: Path) -> tuple[Problem, OneMachine]:
    pipeline = read_problem(folder / "problem.toml").pipeline
    certificate, problem = bp.solve(pipeline).certificate, problem_of(pipeline)
    assert isinstance(certificate, OneMachine)
    write_certificate(folder / "certificate.json", problem, certificate)
    return problem, certificate


@needs_coq
def test_coq_accepts_what_the_checker_accepts_and_no_more(
    folder: Path, certified: tuple[Problem, OneMachine], capsys: pytest.CaptureFixture[str]
) -> None:
    compiled(folder)
    problem, certificate = certified
    raised = replace(certificate, bound=certificate.bound + 1)
    twice = replace(certificate, tasks=certificate.tasks + certificate.tasks[:1])
    main([str(folder / "certificate.json"), str(folder / "problem.toml")])
    assert capsys.readouterr().out == coq_text(problem, certificate)
    for claim in (certificate, raised, twice):
        done = answer(folder, "Optimal", coq_text(problem, claim))
        assert (done.returncode == 0) == (one_machine_refusal(problem, claim) is None)
        assert ("Closed under the global context" in done.stdout) == (done.returncode == 0)


def test_what_coq_has_no_words_for_is_refused(certified: tuple[Problem, OneMachine]) -> None:
    problem, certificate = certified
    with pytest.raises(ValueError, match="only a bound of the makespan"):
        coq_text(problem, replace(certificate, objective="span_idle"))
