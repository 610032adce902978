"""An engine that is named decides alone: no schedule and no bound of others is in its answer.

Every engine that is declared is asked. The optima are brute force's, which knows no engine.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from bubbleproof.solvers import ENGINES, SolveOptions, Status, solve
from bubbleproof.solvers.engines import is_installed
from bubbleproof.solvers.options import Goal
from bubbleproof.solvers.search_state import Incumbent, SearchState
from bubbleproof.theory.families import family
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.commands.conftest import Run, command
from proofs_tests.patience import PATIENCE
from proofs_tests.solvers.brute_force import brute_force, least_span_idle
from proofs_tests.solvers.exhaustive import Exhaustive, TooMuchWork
from proofs_tests.solvers.random_problems import random_problem

__all__ = ["command"]

SMALL = Pipeline(num_ranks=2, num_microbatches=2, forward=2, backward=3, capacity=1)
HERE = [name for name in ENGINES if is_installed(name)]


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else may offer a schedule; known orders are there to contradict, and no more."""
    offer = SearchState.offer

    def offered(self: SearchState, found: Incumbent) -> None:
        assert found.origin == self.options.engine
        offer(self, found)

    monkeypatch.setattr(SearchState, "offer", offered)


@pytest.mark.parametrize("engine", HERE)
def test_it_finds_and_bounds_what_brute_force_does(engine: str) -> None:
    problem = SMALL.problem()
    best = brute_force(problem)
    assert best is not None
    starts = [("an order", family("1f1b").program(SMALL))]
    result = solve(problem, SolveOptions(engine=engine, time_limit=PATIENCE), starts)
    assert (result.status, result.origin, result.value) == (Status.OPTIMAL, engine, best.makespan)
    assert result.engine_bound == best.makespan


@pytest.mark.parametrize("engine", HERE)
@pytest.mark.parametrize("objective", ["makespan", "span_idle"])
def test_on_random_problems(engine: str, objective: Goal) -> None:
    rng, decided = Random(4), 0
    for problem in (random_problem(rng) for _ in range(6)):
        truth = _truth(problem, objective)
        options = SolveOptions(engine=engine, objective=objective, time_limit=PATIENCE)
        result = solve(problem, options)
        if truth is None or result.status is not Status.OPTIMAL:
            continue
        assert (result.value, result.origin) == (truth, engine)
        decided += 1
    assert decided


def _truth(problem: Problem, objective: Goal) -> int | None:
    try:
        if objective == "span_idle":
            return least_span_idle(problem, most=40)
        return Exhaustive(problem).optimum()
    except TooMuchWork:
        return None


@pytest.mark.parametrize("engine", HERE)
def test_the_command_says_what_the_engine_found_and_claims(
    engine: str, command: Run, tmp_path: Path
) -> None:
    file = tmp_path / "small.toml"
    file.write_text("ranks = 2\nmicrobatches = 2\n[durations]\nforward = 2\nbackward = 3\n")
    done = command("solve", file, "--engine", engine, "-v")
    # (m + p - 1)(tF + tB) = 3 * 5
    assert f"{engine} found makespan 15, and claims that none is below 15" in done.out
    assert f"found by         │ {engine}" in done.out
