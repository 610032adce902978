"""Extras that are not installed: told before any work begins, and the rest of the work is done."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bubbleproof.commands import bench as bench_command
from bubbleproof.commands import pareto as pareto_command
from bubbleproof.commands import show as show_command
from bubbleproof.commands import solve as solve_command
from bubbleproof.solvers import ProofOrigin, Status, solve
from bubbleproof.solvers.search import Search
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.commands.conftest import Run

PROBLEM = "ranks = 2\nmicrobatches = 2\n[durations]\nforward = 1\nbackward = 2\n"
REPORT = ("matplotlib",)


def without(monkeypatch: pytest.MonkeyPatch, *libraries: str) -> None:
    """Imports of the libraries fail, and of what lies in them, also where they were loaded."""
    for name in list(sys.modules):
        if name.partition(".")[0] in libraries:
            monkeypatch.delitem(sys.modules, name)
    for name in libraries:
        monkeypatch.setitem(sys.modules, name, None)


def problem(folder: Path) -> Path:
    path = folder / "small.toml"
    path.write_text(PROBLEM)
    return path


def no_work(*_: object, **__: object) -> None:
    raise AssertionError("work was begun")


@pytest.mark.torch
def test_run_says_so_first_and_leaves_the_picture_out(
    command: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without(monkeypatch, *REPORT)
    folder = tmp_path / "out"
    answer = command("run", problem(tmp_path), "-o", folder, "--backend", "virtual")
    assert answer.status == 0, answer.err
    install = 'no picture without matplotlib: pip install "bubbleproof[report]"'
    assert answer.err.splitlines()[0] == install
    written = {path.name for path in folder.iterdir()}
    files = {"schedule.json", "schedule.perfetto.json", "result.json", "replay.json"}
    assert written == files | {"report.html", "replay.html"}  # pages need no library


def test_run_without_torch_says_so_first_and_does_the_rest(
    command: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr("bubbleproof.commands.run_outcome.replay_given", torchless)
    folder = tmp_path / "out"
    answer = command("run", problem(tmp_path), "-o", folder, "--json")
    assert answer.status == 3  # a replay that was asked for is not decided
    first = 'the schedule is not replayed: replay needs PyTorch: pip install "bubbleproof[exec]"'
    assert answer.err.splitlines()[0] == first
    found = json.loads(answer.out)
    assert found["verdict"]["ok"]
    assert found["replay"][0]["verdict"] == "not run"
    assert (folder / "report.html").exists()


def torchless(*_: object) -> None:
    """What ``replay_given`` raises without torch; this process has loaded it."""
    raise ValueError('replay needs PyTorch: pip install "bubbleproof[exec]"')


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_a_picture_that_was_asked_for_is_refused_before_any_work(
    command: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ending: str
) -> None:
    without(monkeypatch, *REPORT)
    monkeypatch.setattr(show_command, "read_schedule_input", no_work)
    monkeypatch.setattr(pareto_command, "read_problem_input", no_work)
    asked = {
        "show": ("1f1b", "p=2", "m=2"),
        "pareto": (problem(tmp_path),),
    }
    for verb, words in asked.items():
        answer = command(verb, *words, "-o", tmp_path / f"x.{ending}")
        assert (answer.status, answer.out) == (2, "")
        assert 'which is not installed; run: pip install "bubbleproof[report]"' in answer.err
        assert answer.err.count("\n") == 1


def test_what_needs_no_library_is_written_without(
    command: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without(monkeypatch, *REPORT)
    for name in ("x.perfetto.json", "x.html"):
        assert command("show", "1f1b", "p=2", "m=2", "-o", tmp_path / name).status == 0
    assert command("show", "1f1b", "p=2", "m=2").status == 0
    assert command("pareto", problem(tmp_path), "--workers", 1).status == 0


@pytest.mark.parametrize("verb", ["pareto"])
def test_a_cluster_without_dask_is_refused(
    command: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, verb: str
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    words = [problem(tmp_path)] if verb == "pareto" else ["--audit", "--quick"]
    answer = command(verb, *words, "--scheduler", "tcp://nowhere:1")
    assert answer.status == 2
    assert "install the extra bubbleproof[cluster]" in answer.err


@pytest.mark.parametrize("verb", ["pareto", "plan"])
def test_the_old_name_of_a_scheduler_is_taken_and_says_so(
    command: Run, tmp_path: Path, verb: str
) -> None:
    plan = Path(__file__).parents[2] / "examples" / "cluster" / "gpt3-13b-8xA100.toml"
    file = plan if verb == "plan" else problem(tmp_path)
    words = ["--audit", "--quick"] if verb == "claims" else [file]
    old = command(verb, *words, "--cluster", "127.0.0.1:99999")
    new = command(verb, *words, "--scheduler", "127.0.0.1:99999")
    assert (old.status, new.status) == (2, 2)
    told = "--cluster is called --scheduler now"
    assert told in old.err
    assert told not in new.err
    assert all("a scheduler's address must be such as" in each.err for each in (old, new))
    both = command(verb, *words, "--cluster", "a:1", "--scheduler", "a:1")
    assert both.status == 2
    assert "give --scheduler alone" in both.err
    assert "--cluster" not in command(verb, "--help").out


@pytest.mark.parametrize("verb", ["solve", "bench"])
def test_an_engine_that_is_not_here_is_refused_before_any_work(
    command: Run,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    verb: str,
) -> None:
    without(monkeypatch, "pysat")
    monkeypatch.setattr(solve_command, "read_problem_input", no_work)
    monkeypatch.setattr(bench_command, "read_problem_input", no_work)
    answer = command(verb, problem(tmp_path), "--engine", "sat")
    assert (answer.status, answer.out) == (2, "")
    install = 'pip install "bubbleproof[sat]"'
    why = f"engine sat needs python-sat, which is not installed; run: {install}"
    assert answer.err == f"bubbleproof: {why}\n"


def test_a_bench_takes_the_engines_that_are_here(
    command: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without(monkeypatch, "pysat")
    answer = command("bench", problem(tmp_path), "--time-limit", 1)
    assert "without sat, which is not installed" in answer.err
    assert "pulp" in answer.out


def test_auto_does_without_sat_and_its_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    late = Pipeline(
        num_ranks=4, num_microbatches=8, capacity=4, forward=2, backward=4, latency=1
    ).problem()
    monkeypatch.setattr(Search, "_narrow", lambda *_: None)  # what else would certify 80
    whole = solve(late)
    assert whole.proof is ProofOrigin.CERTIFICATE
    without(monkeypatch, "pysat")
    found = solve(late)
    assert (found.status, found.value) == (Status.OPTIMAL, whole.value)
    assert found.proof is ProofOrigin.ENGINE
