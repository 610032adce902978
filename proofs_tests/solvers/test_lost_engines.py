"""What a search says when its engine was killed, found no memory, crashed or overran.

That is never a statement about the problem, and what was found before is kept.
"""

from __future__ import annotations

import json
import time
from math import inf
from pathlib import Path

import numpy as np
import pytest

import bubbleproof as bp
from bubbleproof.engine_process import hosted
from bubbleproof.engine_process.loss import LossKind
from bubbleproof.formats import read_problem
from bubbleproof.planners import PlanOptions
from bubbleproof.platforms import has_memory_limits
from bubbleproof.solvers import SolveOptions, Status, search, search_state, solve
from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.encoding import Encoding
from bubbleproof.solvers.engines import Budget, apart, cpsat, cpsat_solver, engine
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.commands.conftest import Run, command
from proofs_tests.patience import PATIENCE, in_time

__all__ = ["command"]

GONE = "proofs_tests.solvers.lost_engines"
SMALL = Pipeline(num_ranks=2, num_microbatches=3)
PROBLEM = SMALL.problem()
# Four units of memory for two chunks of four ranks: lists leave a gap, and CP-SAT works on it.
OPEN = Pipeline(num_ranks=4, num_microbatches=8, num_chunks=2, placement="wave", capacity=6)
limited = pytest.mark.skipif(not has_memory_limits(), reason="memory cannot be limited here")


def away(monkeypatch: pytest.MonkeyPatch, function: str) -> None:
    """Send every model of CP-SAT to a process that does this instead."""
    monkeypatch.setattr(cpsat_solver, "AWAY", -1.0)  # seconds; also where none are left
    monkeypatch.setattr(cpsat_solver, "SOLVE", f"{GONE}:{function}")


def test_incumbents_of_an_engine_that_is_killed_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    away(monkeypatch, "solve_until_killed")
    encoding = Encoding(PROBLEM, lower_bounds(PROBLEM))
    budget = Budget(deadline=in_time(), threads=1)
    found = cpsat.search(encoding, None, budget)
    assert [loss.kind for loss in budget.losses] == [LossKind.KILLED]
    assert not found.is_refuted
    assert found.start is not None  # all of its solutions were told before
    # 1F1B's makespan: (m + p - 1)(tF + tB) = 4 * 3 = 12 ticks, which is the optimum.
    assert int((found.start + PROBLEM.duration).max()) == 12
    assert found.bound == 12


@pytest.mark.parametrize("function", ["kill", "leave", "abort_without_memory"])
def test_an_engine_that_is_lost_refutes_nothing(
    monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    away(monkeypatch, function)
    budget = Budget(deadline=in_time(), threads=1)
    found = cpsat.search(Encoding(PROBLEM, lower_bounds(PROBLEM)), None, budget)
    assert (found.start, found.is_refuted) == (None, False)
    assert len(budget.losses) == 1


def test_a_search_goes_on_with_what_it_has_and_says_what_was_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    away(monkeypatch, "abort_without_memory")
    monkeypatch.setattr(search, "NARROWING", 0)  # seconds, for proofs that need no engine
    monkeypatch.setattr(search, "has_sat", lambda: False)
    found = bp.solve(OPEN, time_limit=PATIENCE)
    assert found.status is Status.FEASIBLE
    assert [loss.kind for loss in found.losses] == [LossKind.MEMORY]
    assert found.reason == "cpsat ran out of memory: what was known before is kept"
    alone = bp.solve(OPEN, engine="cpsat", time_limit=PATIENCE)
    assert (alone.status, alone.losses) == (Status.UNKNOWN, found.losses)
    assert alone.lower_bound > 0  # by one resource, with its certificate


def test_one_that_ignores_its_limit_is_ended_and_said_to_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    away(monkeypatch, "sleep")
    monkeypatch.setattr(hosted, "LEAST_GRACE", 0.01)
    budget = Budget(deadline=time.perf_counter() + 0.01, threads=1)
    found = cpsat.search(Encoding(PROBLEM, lower_bounds(PROBLEM)), None, budget)
    assert (found.start, found.is_refuted) == (None, False)
    assert [loss.kind for loss in budget.losses] == [LossKind.OVERRAN]


@limited
@pytest.mark.parametrize("name", ["z3", "pulp", "sat"])
def test_other_engines_find_the_optimum_where_their_memory_is_limited(name: str) -> None:
    if name == "sat":
        pytest.importorskip("pysat")
    budget = Budget(deadline=in_time(), threads=1, memory=2 << 30)
    outcome = engine(name)(Encoding(PROBLEM, lower_bounds(PROBLEM)), None, budget)
    assert budget.losses == []
    assert outcome.start is not None
    assert (int((outcome.start + PROBLEM.duration).max()), outcome.bound) == (12, 12)


def test_other_engines_that_are_lost_refute_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "LARGE", 0)
    killed = apart.ApartEngine(name="z3", function=f"{GONE}:search_until_killed", is_heavy=True)
    budget = Budget(deadline=in_time(), threads=1)
    outcome = killed(Encoding(PROBLEM, lower_bounds(PROBLEM)), None, budget)
    assert (outcome.start, outcome.bound, outcome.is_refuted) == (None, None, False)
    assert [(loss.who, loss.kind) for loss in budget.losses] == [("z3", LossKind.KILLED)]


def test_the_same_work_gives_the_same_answer_in_either_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = SolveOptions(engine="cpsat", time_limit=inf, work=1.0, threads=2)
    monkeypatch.setattr(cpsat_solver, "AWAY", inf)
    here = solve(OPEN.problem(), options)
    monkeypatch.setattr(cpsat_solver, "AWAY", 0.0)
    there = solve(OPEN.problem(), options)
    assert there.losses == ()
    assert here.schedule is not None
    assert there.schedule is not None
    assert (here.value, here.best_bound, here.work) == (there.value, there.best_bound, there.work)
    assert np.array_equal(here.schedule.start, there.schedule.start)


def test_a_memory_limit_can_be_said_wherever_a_schedule_is_asked_for(
    command: Run, tmp_path: Path
) -> None:
    text = Path("examples/researcher/split-backward.toml").read_text("utf-8")
    file = tmp_path / "limited.toml"
    file.write_text(text.replace("[solve]", '[solve]\nmemory = "2 GiB"'), "utf-8")
    assert read_problem(file).memory == 2 << 30
    assert command("solve", str(file), "--memory", "1 GiB", "--json").status == 0
    refused = command("solve", str(file), "--memory", "1 MiB")
    assert refused.status == 2
    assert "memory must be 64 MiB or more, got 1 MiB" in refused.err
    assert "80 GiB" in command("solve", str(file), "--memory", "much").err
    assert bp.solve(SMALL, memory="1 GiB").makespan == 12
    with pytest.raises(ValueError, match="64 MiB or more"):
        bp.solve(SMALL, memory=5)
    with pytest.raises(ValueError, match="64 MiB or more"):
        PlanOptions(memory=5)


def test_the_command_tells_of_a_lost_engine(
    command: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    away(monkeypatch, "kill")
    monkeypatch.setattr(search, "NARROWING", 0)
    monkeypatch.setattr(search, "has_sat", lambda: False)
    file = tmp_path / "open.toml"
    file.write_text(
        "ranks = 4\nmicrobatches = 8\nchunks = 2\nplacement = 'wave'\n"
        "[durations]\nforward = 1\nbackward = 2\n[memory]\ncapacity = 6\n",
        "utf-8",
    )
    done = command("solve", str(file), "--json")
    assert done.status == 3  # undecided: a schedule, and no proof that none is better
    told = json.loads(done.out)
    assert [loss["kind"] for loss in told["losses"]] == ["KILLED"]
    assert told["losses"][0]["statement"] == told["reason"]
    assert told["makespan"] is not None


def test_a_system_without_memory_limits_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_state, "has_memory_limits", lambda: False)
    found = bp.solve(SMALL, memory="1 GiB")
    assert found.makespan == 12
    assert found.reason.endswith("limits no memory of a process: engines had no limit")
