"""Papers beside plans of deployments: their choices are iterations; others are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bubbleproof.papers.planning.planner_list import planners
from proofs_tests.commands.conftest import Run
from proofs_tests.commands.test_plan_cluster import problem as problem
from proofs_tests.papers.test_vocabulary_deployed import JOB
from proofs_tests.sized import sampled


@pytest.mark.sweep
@pytest.mark.parametrize("paper", sampled([*planners()], every=2))
def test_a_paper_stands_beside_the_plan_of_the_winners_deployment(
    command: Run, problem: Path, tmp_path: Path, paper: str
) -> None:
    out = tmp_path / "out"
    proofs = tmp_path / "proofs.json"
    more = ("-o", out, "--json", "--certificate", proofs)
    answer = command("plan", problem, "--paper", paper, *more)
    assert answer.status == 0, answer.err
    found = json.loads(answer.out)
    told = found["paper"]
    assert told["name"] == paper
    # Both are iterations: the pipeline and the end of the step.
    assert found["lower_bound"] <= found["value"] == told["joint"]["value"] <= told["value"]
    assert command("verify", out / "paper.json").status == 0
    proved = json.loads(command("verify", out, "--certificate", proofs, "--json").out)[
        "certificate"
    ]
    assert (proved["value"], proved["bound"]) == (found["value"], found["lower_bound"])


def test_a_paper_that_is_not_there_is_refused_before_planning(
    command: Run, problem: Path, tmp_path: Path
) -> None:
    answer = command("plan", problem, "--paper", "bpip", "-o", tmp_path / "out")
    assert (answer.status, answer.out) == (2, "")
    assert "did you mean 'bpipe'?" in answer.err
    assert not (tmp_path / "out").exists()


def test_it_stands_beside_the_plan_and_is_none_of_it(command: Run, tmp_path: Path) -> None:
    path, out = tmp_path / "job.toml", tmp_path / "out"
    path.write_text(JOB.format(words=256000, memory=80).replace("[1, 2, 4]", "[4]"))
    plain = json.loads(command("plan", path, "--json").out)
    answer = command("plan", path, "--paper", "vocabulary", "--json", "-o", out)
    found = json.loads(answer.out)
    assert (found["value"], found["winner"]) == (plain["value"], plain["winner"])
    assert found["paper"]["name"] == "vocabulary"
    assert "only its authors' code runs it" in found["paper"]["note"]
    assert found["paper"]["value"] < found["value"]  # a quarter of the head in place of all of it
    assert not (out / "paper.json").exists()
    lines = command("plan", path, "--paper", "vocabulary").out
    assert "paper    vocabulary chooses deployment t 1 d 1 p 4" in lines
    assert lines.count("% more") == 1


def test_a_problem_file_has_no_ends_to_share(command: Run) -> None:
    answer = command("plan", "examples/researcher/plan.toml", "--paper", "vocabulary")
    assert answer.status == 2
    assert "use a file with [model], [cluster] and [batch]" in answer.err
