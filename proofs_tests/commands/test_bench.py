"""``bubbleproof bench``: each engine on each problem, and what it is no use for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.encoding import Encoding
from bubbleproof.solvers.engine_runs import INSTANCES
from bubbleproof.solvers.engines import Budget, EngineOutcome, z3_difference
from bubbleproof.theory.model.actions import Ints
from proofs_tests.commands.conftest import Run

# Uneven stages, which no published order and no one-machine bound settles at once.
PROBLEM = """\
name = "late"
ranks = 3
microbatches = 3
[durations]
forward = [1, 3, 2]
backward = [2, 4, 5]
[memory]
activation = 1
capacity = 2
"""
CHOICES = """\
ranks = 2
microbatches = 2
[durations]
forward = 1
backward = 2
[choices.recompute]
stages = [0]
"""


def written(folder: Path, text: str) -> str:
    path = folder / "given.toml"
    path.write_text(text)
    return str(path)


def test_engines_agree_and_are_timed(command: Run, tmp_path: Path) -> None:
    words = ("--engine", "auto", "--engine", "cpsat", "--engine", "z3")
    path = written(tmp_path, PROBLEM)
    answer = command("bench", path, *words, "--json")
    assert answer.status == 0, answer.err
    found = json.loads(answer.out)
    assert "cores" in found["machine"]
    solved = json.loads(command("solve", path, "--json").out)["makespan"]
    assert [(run["problem"], run["engine"], run["best"]) for run in found["runs"]] == [
        ("late", engine, solved) for engine in ("auto", "cpsat", "z3")
    ]
    assert all(run["bound"] <= run["best"] and run["seconds"] > 0 for run in found["runs"])


def test_people_read_ratios(command: Run, tmp_path: Path) -> None:
    answer = command(
        "bench", written(tmp_path, PROBLEM), "--engine", "auto", "--engine", "sat", "-v"
    )
    assert answer.status == 0, answer.err
    assert answer.out.startswith("1 of 1 problem decided\n")
    assert "by auto" in answer.out
    assert "1.0" in answer.out
    assert "late: sat" in answer.err


SHORT = PROBLEM.replace("microbatches = 3", "microbatches = 2")


def test_three_engines_decide_alone(command: Run, tmp_path: Path) -> None:
    path = written(tmp_path, SHORT)
    answer = command("bench", path, "--decide")
    assert answer.status == 0, answer.err
    solved = json.loads(command("solve", path, "--json").out)["makespan"]
    told = f"late: the least makespan is {solved} ticks (cpsat, z3, pulp)"
    assert told in answer.out
    runs = json.loads(command("bench", path, "--decide", "--json").out)["runs"]
    assert [(run["engine"], run["best"], run["bound"]) for run in runs] == [
        (engine, solved, solved) for engine in ("cpsat", "z3", "pulp")
    ]


def test_three_engines_find_that_there_is_no_schedule(command: Run, tmp_path: Path) -> None:
    """An activation takes more than there is room for, which needs no engine."""
    small = SHORT.replace("activation = 1", "activation = 4")
    answer = command("bench", written(tmp_path, small), "--decide")
    assert answer.status == 0, answer.err
    assert "late: there is no schedule: memory of rank 0: 0F0 needs 4" in answer.out
    assert "(cpsat, z3, pulp)" in answer.out


def test_an_engine_that_is_out_of_time_is_undecided(command: Run, tmp_path: Path) -> None:
    path = written(tmp_path, PROBLEM)
    words = ("--decide", "--engine", "z3", "--time-limit", "0.000001")
    answer = command("bench", path, *words)
    assert answer.status == 3
    assert "late: undecided" in answer.out
    refused = command("bench", path, "--decide", "--engine", "auto")
    assert refused.status == 2
    assert "--decide asks single engines" in refused.err


def test_an_engine_that_claims_too_much_ends_it(
    command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine says that no schedule exists, of a problem whose schedule another one found."""
    true = z3_difference.search

    def false(encoding: Encoding, hint: Ints | None, budget: Budget) -> EngineOutcome:
        return replace(true(encoding, hint, budget), start=None, bound=None, is_refuted=True)

    monkeypatch.setattr(z3_difference, "search", false)
    answer = command("bench", written(tmp_path, SHORT), "--decide")
    assert answer.status not in (0, 3)
    assert "z3" in answer.err
    assert "the checker accepts cpsat's" in answer.err


def test_time_that_is_too_short_is_undecided(command: Run) -> None:
    answer = command("bench", "--engine", "auto", "--time-limit", "0.001", "--json")
    assert answer.status == 3
    assert any(run["best"] != run["bound"] for run in json.loads(answer.out)["runs"])


@pytest.mark.parametrize("verb", ["bench", "pareto"])
def test_open_choices_are_refused(command: Run, tmp_path: Path, verb: str) -> None:
    answer = command(verb, written(tmp_path, CHOICES))
    assert (answer.status, answer.out) == (2, "")
    assert f"{verb}" in answer.err
    assert "[choices]" in answer.err


def test_an_unknown_engine_is_refused(command: Run) -> None:
    answer = command("bench", "--engine", "gurobi")
    assert answer.status == 2
    assert "engine must be one of auto cpsat sat z3 pulp pulp-cbc, got 'gurobi'" in answer.err


def test_the_named_instances_are_not_all_settled_by_bounds() -> None:
    bounds = {name: lower_bounds(p.problem()).best.bound for name, p in INSTANCES.items()}
    assert bounds["1f1b-p4-m8"] == 33  # (m + p - 1)(tF + tB), its optimum
    # their optima are 80 and 283 (see test_known_optima)
    assert bounds["latency-p4-m8"] < 80
    assert bounds["released-at-I-p4-m8"] < 283
