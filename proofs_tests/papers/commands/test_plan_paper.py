"""``bubbleproof plan FILE --paper NAME``: what it prints, writes and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proofs_tests.commands.conftest import Run

PROBLEM = """
ranks = 2
microbatches = 4
[durations]
forward = 4
backward = 8
[memory]
activation = 2
capacity = 8
[choices.recompute]
stages = "all"
[plan]
chunks = [1, 2]
[paper.tpipe]
state = 0
"""


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(PROBLEM)
    return path


def test_the_paper_stands_beside_the_plan(command: Run, problem: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    answer = command("plan", problem, "--paper", "tpipe", "-o", out, "--json")
    assert answer.status == 0
    found = json.loads(answer.out)
    paper = found["paper"]
    assert paper.keys() == {"name", "choice", "value", "executable", "note", "joint"}
    # T-Pipe on two ranks holds ceil(2/3 + 0 + 1 + 1) + ceil(4/6) = 4 activations of 1, and takes
    # 6 (4 + 1) units of 2 ticks.
    assert paper["choice"]["memory"] == 4
    assert (paper["value"], paper["executable"]) == (60, True)
    assert paper["joint"]["value"] == found["value"] <= 60
    assert command("verify", out / "paper.json").status == 0
    assert "what runs of the choice of tpipe" in (out / "plan.html").read_text()


def test_the_table_has_the_paper_and_the_joint_plan(command: Run, problem: Path) -> None:
    answer = command("plan", problem, "--paper", "tpipe")
    assert answer.status == 0
    for words in ("tpipe chooses chunks", "the plan takes"):
        assert words in answer.out


def test_without_the_option_there_is_no_paper(command: Run, problem: Path) -> None:
    assert "paper" not in json.loads(command("plan", problem, "--json").out)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("", "", "paper must be one of"),
        ("forward = 4", "forward = 3", "forward 3 is not divisible by 2"),
        ("state = 0", "stat = 0", "did you mean 'state'"),
        ("state = 0", "state = -1", "paper.tpipe.state"),
        ("[paper.tpipe]", "[paper.tpip]", "paper"),
        ("[paper.tpipe]\nstate = 0", "[paper.bpipe]\nnodes = 8", "did you mean 'node'"),
        ("[paper.tpipe]\nstate = 0", "[paper.mepipe]\ntemporary = -1", "paper.mepipe.temporary"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(
    command: Run, problem: Path, tmp_path: Path, old: str, new: str, told: str
) -> None:
    problem.write_text(PROBLEM.replace(old, new) if old else PROBLEM)
    out = tmp_path / "out"
    answer = command("plan", problem, "--paper", "tpipe" if old else "tpip", "-o", out)
    assert answer.status == 2
    assert told in answer.err
    assert len(answer.err.splitlines()) == 1
    assert not out.exists()


@pytest.mark.parametrize("paper", ["bpipe", "mepipe"])
def test_every_paper_stands_beside_the_plan(command: Run, problem: Path, paper: str) -> None:
    found = json.loads(command("plan", problem, "--paper", paper, "--json").out)
    # Two ranks, room for four samples: 1F1B, or SVPP with one chunk; (4 + 1) (4 + 8) ticks with one
    # chunk and with two 4 * 12 + 6.
    assert found["paper"]["name"] == paper
    assert found["paper"]["value"] in (54, 60)
    assert found["value"] <= found["paper"]["value"]


def test_a_stage_that_fits_on_no_node_is_refused(command: Run, problem: Path) -> None:
    problem.write_text(PROBLEM.replace("[paper.tpipe]\nstate = 0", "[paper.bpipe]\ntensor = 16"))
    answer = command("plan", problem, "--paper", "bpipe")
    assert answer.status == 2
    assert answer.err.splitlines() == [
        "bubbleproof: tensor must be at most the GPUs of a node (8), got 16; use 8"
    ]


MODEL = """
[model]
name = "llama-2-70b"
[cluster]
card = "v100"
cards = 96
[batch]
samples = 96
sequence = 4096
[plan]
zero = [1]
chunks = [1]
pipeline = [12]
tensor = [8]
"""


def test_a_plan_stays_where_the_paper_takes_no_such_model(command: Run, tmp_path: Path) -> None:
    path, out = tmp_path / "own.toml", tmp_path / "out"
    path.write_text(MODEL)
    answer = command("plan", path, "--paper", "pipemesh", "--work", "2", "-o", out, "--json")
    assert answer.status == 0
    found = json.loads(answer.out)
    assert found["value"] == found["paper"]["joint"]["value"]
    assert (found["paper"]["value"], found["paper"]["executable"]) == (None, False)
    # 80 layers on 12 ranks: 84 is the nearest multiple, 10 the nearest divisor.
    assert "section II-A" in found["paper"]["note"]
    assert "use 84 layers, or such as 10 ranks" in found["paper"]["note"]
    assert command("verify", out).status == 0
    assert not (out / "paper.json").exists()
