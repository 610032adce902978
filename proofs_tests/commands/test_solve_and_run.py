"""``solve`` and ``run``: statuses, files, and the whole way once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bubbleproof.formats.clusters.cluster_toml import is_cluster_file
from bubbleproof.solvers import ENGINES, OBJECTIVES
from proofs_tests.commands.conftest import Run
from proofs_tests.patience import PATIENCE
from proofs_tests.report.replay_content import replay_in
from proofs_tests.sized import sized

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = "ranks = 2\nmicrobatches = 4\n[durations]\nforward = 1\nbackward = 2\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "small.toml"
    path.write_text(text)
    return path


def test_solve_writes_a_schedule_that_verifies(command: Run, tmp_path: Path) -> None:
    problem, target = write(tmp_path, SMALL), tmp_path / "s.json"
    answer = command("solve", problem, "-o", target, "--json")
    found = json.loads(answer.out)
    # (m + p - 1)(tF + tB) = 5 * 3; rank 0 works 12 ticks, waits tF + tB for its first backward.
    assert (answer.status, found["status"], found["makespan"]) == (0, "OPTIMAL", 15)
    assert found["certificate"]["bound"] == found["lower_bound"] == 15
    assert command("verify", target).status == 0
    assert json.loads(target.read_text())["claims"]["makespan"] == 15


def test_a_schedule_file_is_a_problem_too(command: Run, tmp_path: Path) -> None:
    target = tmp_path / "g.json"
    assert command("convert", "gpipe", "p=2", "m=4", target).status == 0
    assert json.loads(command("solve", target, "--json").out)["makespan"] == 15


def test_infeasible_says_why(command: Run, tmp_path: Path) -> None:
    problem = write(tmp_path, SMALL + "[memory]\nactivation = 5\nstatic = 3\ncapacity = 7\n")
    answer = command("solve", problem, "-o", tmp_path / "s.json")
    assert answer.status == 1
    assert "0F0 needs 5 beside the base load 3, but the capacity is 7" in answer.out
    assert not (tmp_path / "s.json").exists()


def test_bad_input_overwrites_nothing(command: Run, tmp_path: Path) -> None:
    target = tmp_path / "s.json"
    target.write_text("mine")
    answer = command("solve", write(tmp_path, SMALL.replace("= 2\nm", "= 0\nm")), "-o", target)
    assert (answer.status, answer.out, target.read_text()) == (2, "", "mine")
    assert "ranks: expected a whole number of 1 or more, found 0" in answer.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--engine", "magic"], f"engine must be one of auto {' '.join(ENGINES)}, got 'magic'"),
        (
            ["--objective", "beauty"],
            f"objective must be one of {' '.join(OBJECTIVES)}, got 'beauty'",
        ),
        (["--within", "-1"], "within must be 0 ticks or more, got -1"),
        (["--time-limit", "0"], "time limit must be above 0 seconds, got 0.0"),
        (["-o", "x.txt"], "the schedule's file must end in .json, got 'x.txt'"),
    ],
)
def test_unusable_options(command: Run, tmp_path: Path, words: list[str], message: str) -> None:
    answer = command("solve", write(tmp_path, SMALL), *words)
    assert (answer.status, answer.out, answer.err) == (2, "", f"bubbleproof: {message}\n")


def test_run_refuses_an_unknown_backend_before_it_solves(command: Run, tmp_path: Path) -> None:
    answer = command("run", write(tmp_path, SMALL), "--backend", "x", "-o", tmp_path / "out")
    assert answer.status == 2
    assert answer.err == "bubbleproof: run replays on one of virtual, gloo, got 'x'\n"


@pytest.mark.torch
def test_the_whole_way_on_virtual(command: Run, tmp_path: Path) -> None:
    problem = write(tmp_path, SMALL + '[compare]\nfamilies = ["gpipe", "1f1b"]\n')
    brief = command("run", problem, "-o", tmp_path / "brief", "--backend", "virtual")
    heads = [line.split()[0] for line in brief.out.splitlines()]
    assert heads == ["solved", "against", "valid", "replay", "report"]
    assert "proved: rank 1 is busy or unavoidably waiting for 15 ticks" in brief.out
    assert "gradients and losses bit-identical" in brief.out
    answer = command("run", problem, "-o", tmp_path / "out", "--backend", "virtual", "-v")
    assert answer.status == 0
    for name in ("schedule.json", "schedule.svg", "schedule.perfetto.json", "result.json"):
        assert (tmp_path / "out" / name).stat().st_size > 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert "gpipe" in page
    assert replay_in(tmp_path / "out" / "replay.json").ok
    assert "as it ran" in (tmp_path / "out" / "replay.html").read_text()
    assert "is busy or unavoidably waiting for 15 ticks; certificate checked" in page
    assert "replay: gradients (virtual, 2 ranks, mlp float64)" in answer.out
    assert "violated" not in answer.out
    assert str(tmp_path / "out" / "report.html") in answer.out


@pytest.mark.torch
def test_the_whole_way_as_json(command: Run, tmp_path: Path) -> None:
    problem = write(tmp_path, SMALL + '[compare]\nfamilies = ["gpipe"]\n')
    answer = command("run", problem, "-o", tmp_path / "out", "--backend", "virtual", "--json")
    found = json.loads(answer.out)
    assert (answer.status, answer.err, found["status"]) == (0, "", "OPTIMAL")
    assert found["verdict"]["ok"]
    assert [row["name"] for row in found["published"]] == ["gpipe"]
    assert {row["verdict"] for row in found["replay"]} == {"holds"}


LONG = {"memory-choices"}  # to prove
PIPELINES = [path for path in sorted(EXAMPLES.glob("*/*.toml")) if not is_cluster_file(path)]


@pytest.mark.sweep
@pytest.mark.parametrize(
    "path", [path for path in PIPELINES if path.stem not in sized(LONG, full=set[str]())]
)
def test_examples_solve_to_optimal(command: Run, path: Path) -> None:
    answer = command("solve", path, "--json", "--time-limit", str(int(PATIENCE)))
    assert (answer.status, json.loads(answer.out)["status"]) == (0, "OPTIMAL")


def test_run_takes_problem_files_only(command: Run) -> None:
    answer = command("run", "x.json")
    assert (answer.status, answer.err) == (
        2,
        "bubbleproof: run takes a problem file (.toml), got 'x.json'\n",
    )


def test_solve_says_what_it_chose(command: Run, tmp_path: Path) -> None:
    # Room for one activation where two are in flight: a backward waits for its forward's return.
    text = (
        SMALL + "[memory]\ncapacity = 1\n[choices.offload]\nstages = [0]\noffload = 0\nreload = 0\n"
    )
    problem, target = write(tmp_path, text), tmp_path / "s.json"
    answer = command("solve", problem, "-o", target, "--json")
    found = json.loads(answer.out)
    # Rank 0 never waits for room, so it is 1F1B on two ranks: (m + p - 1)(tF + tB) = 15.
    assert (answer.status, found["status"], found["makespan"]) == (0, "OPTIMAL", 15)
    assert found["certificate"]["bound"] == found["lower_bound"] == 15
    assert [line.split(" microbatches")[0] for line in found["chosen"]] == ["stage 0 off-loads"]
    assert command("verify", target).status == 0
    assert "stage 0 off-loads microbatches" in command("solve", problem).out


def test_run_shows_what_was_chosen(command: Run, tmp_path: Path) -> None:
    text = SMALL + "[memory]\nactivation = 2\ncapacity = 3\n[choices.recompute]\nkept = 1\n"
    folder = tmp_path / "out"
    answer = command("run", write(tmp_path, text), "-o", folder, "--backend", "virtual", "--json")
    found = json.loads(answer.out)
    assert found["status"] == "OPTIMAL"
    # Stage 1 runs each backward right after its forward: it needs no room, and R would cost time.
    assert found["chosen"] == ["stage 0 recomputes"]
    assert "stage 0 recomputes" in (folder / "report.html").read_text()
    assert command("verify", folder / "schedule.json").status == 0
