"""The z3 and MILP models, family by family, and what the engines do when stopped or misled."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path

import numpy as np
import pytest

from bubbleproof.solvers import SolveOptions, Status, solve
from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.encoding import Encoding, Objective
from bubbleproof.solvers.engines import Budget, EngineOutcome, highs, pulp_milp, z3_difference
from bubbleproof.solvers.engines.engine import Engine, Model
from bubbleproof.solvers.engines.milp import MilpModel, MilpSolution
from bubbleproof.solvers.engines.z3_difference import Z3Model
from bubbleproof.solvers.gate import checked_value
from bubbleproof.solvers.starts import schedule_of_starts, starts_by_task
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify import Rule, check
from proofs_tests.patience import FOREVER, PATIENCE, ended
from proofs_tests.sized import sized
from proofs_tests.solvers.brute_force import brute_force
from proofs_tests.solvers.engine_case import lenient
from proofs_tests.solvers.small import RANK_AND_LINK, by_hand, prefetch, split

MODELS: dict[str, tuple[Engine, type[Model]]] = {
    "z3": (z3_difference.search, Z3Model),
    "pulp": (pulp_milp.search, MilpModel),
}
ENGINES: list[Engine] = [z3_difference.search, pulp_milp.search, pulp_milp.search_with_cbc]
LATE = Pipeline(num_ranks=2, num_microbatches=2, forward=2, backward=4, latency=3).problem()
WIDE = Pipeline(num_ranks=2, num_microbatches=3).problem()
TWO_CHUNKS = Pipeline(num_ranks=1, num_microbatches=2, num_chunks=2, capacity=2).problem()
IN_PARTS = split(2, 2, 3, (1, 2, 3), part=True).problem()
MIXED = Pipeline(
    num_ranks=2,
    num_microbatches=2,
    split_backward=((True, False),) * 2,
    capacity=1,
    weight_backward=3,
).problem()
# One link for three transfers of 3 ticks that no order of microbatches decides.
WAYS = ("OFFLOAD", "RELOAD", "LOAD")
ONE_LINK = by_hand(
    [(f"0F{j}", 1, (0,)) for j in range(3)]
    + [(f"0B{j}", 1, (0,)) for j in range(3)]
    + [(f"0{way}{j}", 3, (1,)) for j, way in enumerate(WAYS)],
    [(f"0F{j}", f"0{way}{j}", 0) for j, way in enumerate(WAYS)]
    + [(f"0{way}{j}", f"0B{j}", 0) for j, way in enumerate(WAYS)],
    resources=RANK_AND_LINK,
)


def hard(num_ranks: int) -> Problem:
    """What no engine here solves in the time that a test waits."""
    return Pipeline(
        num_ranks=num_ranks,
        num_microbatches=2 * num_ranks,
        forward=2,
        backward=4,
        latency=1,
        capacity=num_ranks,
    ).problem()


# Eight ranks, latency 1, caps of 1F1B: the optimum is 172 (CP-SAT and SAT, measured elsewhere).
HARD = hard(8)
TO_BE_STOPPED = hard(sized(5, full=8))  # CBC prepares the larger one for seconds and hears nothing


def budget(seconds: float = PATIENCE) -> Budget:
    return Budget(deadline=time.perf_counter() + seconds, threads=1)


def encoded(
    problem: Problem, limit: int | None = None, objective: Objective = "makespan"
) -> Encoding:
    return Encoding(problem, lower_bounds(problem), objective=objective, limit=limit)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("method", "problem", "rule"),
    [
        ("add_dependencies", LATE, Rule.DEPENDENCIES),
        ("add_exclusion", WIDE, Rule.EXCLUSIVE),
        ("add_links", ONE_LINK, Rule.EXCLUSIVE),
        ("add_memory", TWO_CHUNKS, Rule.MEMORY),
        ("add_memory", IN_PARTS, Rule.MEMORY),
        ("add_memory", MIXED, Rule.MEMORY),
    ],
    ids=["dependencies", "exclusion", "links", "two chunks", "in parts", "mixed"],
)
def test_each_family_is_needed(
    name: str, method: str, problem: Problem, rule: Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    search, model = MODELS[name]
    best = brute_force(problem, every_tick=bool((problem.rank_of_task < 0).any()))
    assert best is not None
    whole = search(encoded(problem), None, budget())
    assert whole.start is not None
    assert (checked_value(encoded(problem), whole.start), whole.bound) == (best.makespan,) * 2
    monkeypatch.setattr(model, method, lambda _: None)
    for module in (pulp_milp, z3_difference):
        monkeypatch.setattr(module, "checked_value", lenient)
    broken = search(encoded(problem), None, budget())
    assert broken.start is not None
    assert rule in check(problem, schedule_of_starts(problem, broken.start)).broken


@pytest.mark.parametrize("name", MODELS)
def test_limits_are_met_or_refuted(name: str) -> None:
    search, _ = MODELS[name]
    # 1F1B: (m + p - 1)(tF + tB) = 4 * 3.
    assert search(encoded(WIDE, 12), None, budget()).bound == 12
    assert search(encoded(WIDE, 11), None, budget()) == EngineOutcome(bound=12, is_refuted=True)
    # 0B0 cannot start before 5, yet computation takes 2 ticks: starts are not held below 2.
    assert search(encoded(prefetch(), 2), None, budget()).bound == 2
    assert search(encoded(prefetch(), 1), None, budget()) == EngineOutcome(bound=2, is_refuted=True)


@pytest.mark.parametrize("search", ENGINES)
def test_a_known_schedule_is_never_lost(search: Engine) -> None:
    found = solve(HARD, SolveOptions(time_limit=1e-6))
    assert found.schedule is not None
    assert found.makespan is not None
    hint = starts_by_task(HARD, found.schedule)
    outcome = search(encoded(HARD, found.makespan), hint, budget(sized(0.3, full=2.0)))
    assert not outcome.is_refuted
    assert outcome.bound is None or outcome.bound <= 172
    if outcome.start is not None:
        value = checked_value(encoded(HARD), outcome.start)
        assert value is not None
        assert 172 <= value <= found.makespan


@pytest.mark.parametrize("search", ENGINES)
def test_stop_ends_the_search_with_what_it_has(search: Engine) -> None:
    limited = budget(FOREVER)
    threading.Timer(sized(0.4, full=2.0), limited.stop.set).start()
    problem = TO_BE_STOPPED
    outcome = ended(lambda: search(encoded(problem, objective="span_idle"), None, limited))
    assert not outcome.is_refuted
    assert outcome.start is None or checked_value(encoded(problem), outcome.start) is not None


@pytest.mark.parametrize("name", MODELS)
def test_no_time_left_is_no_answer_and_no_model(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    search, model = MODELS[name]
    built: list[object] = []
    monkeypatch.setattr(model, "add_horizon", built.append)  # the last family
    assert search(encoded(WIDE), None, budget(0)) == EngineOutcome()
    assert not built


def answering(answer: MilpSolution, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the MIP solver say ``answer``."""
    monkeypatch.setattr(pulp_milp, "_run", lambda *_: answer)


@pytest.mark.parametrize(("dual", "bound"), [(11.00005, 11), (11.2, 12), (11.99999, 12)])
def test_dual_bounds_are_rounded_up_but_for_a_tolerance(
    dual: float, bound: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(MilpSolution(bound=dual), monkeypatch)
    assert pulp_milp.search(encoded(WIDE), None, budget()) == EngineOutcome(bound=bound)


def test_a_refutation_of_a_known_schedule_is_no_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(MilpSolution(is_infeasible=True), monkeypatch)
    found = solve(WIDE)
    assert found.schedule is not None
    hint = starts_by_task(WIDE, found.schedule)
    assert pulp_milp.search(encoded(WIDE, 12), hint, budget()) == EngineOutcome()
    assert pulp_milp.search(encoded(WIDE, 11), hint, budget()).is_refuted


def test_beyond_the_trusted_horizon_nothing_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    long = replace(WIDE, duration=WIDE.duration * 100_000)
    outcome = pulp_milp.search(encoded(long), None, budget())
    assert outcome.bound is None
    assert outcome.start is not None
    assert checked_value(encoded(long), outcome.start) == 12 * 100_000
    answering(MilpSolution(is_infeasible=True), monkeypatch)
    assert pulp_milp.search(encoded(long), None, budget()) == EngineOutcome()


def test_a_schedule_that_the_checker_refuses_is_not_returned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pulp_milp, "_rounded", lambda *_: np.zeros(WIDE.num_tasks, dtype=np.int64))
    assert pulp_milp.search(encoded(WIDE), None, budget()) == EngineOutcome(bound=12)


def test_weights_beyond_32_bits_are_added_up() -> None:
    unit = 1 << 40
    pipeline = Pipeline(
        num_ranks=1,
        num_microbatches=2,
        num_chunks=2,
        activation=(unit, unit + 1),
        capacity=2 * unit + 1,
    )
    encoding = encoded(pipeline.problem())
    model = Z3Model(encoding)
    model.build()
    assert not model.is_difference_logic
    best = brute_force(pipeline.problem())
    assert best is not None
    assert z3_difference.search(encoding, None, budget()).bound == best.makespan


def test_highs_starts_from_a_known_schedule() -> None:
    # With no time to search, what it answers with can only be what it was given.
    found = solve(HARD, SolveOptions(time_limit=1e-6))
    assert found.schedule is not None
    model = MilpModel(encoded(HARD, found.makespan))
    model.build()
    start = starts_by_task(HARD, found.schedule)
    known = model.values_of(start, found.makespan or 0)
    answer = highs.minimize(model.program, known, budget(0.0))
    assert answer.values is not None
    assert [round(answer.values[variable]) for variable in model.start] == start.tolist()
    assert highs.minimize(model.program, None, budget(0.0)).values is None


def test_highs_may_have_another_number_of_threads_each_time() -> None:
    for threads in (1, 2, 1):
        limited = Budget(deadline=time.perf_counter() + PATIENCE, threads=threads)
        assert pulp_milp.search(encoded(WIDE), None, limited).bound == 12


def test_an_or_tools_without_highs_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    elsewhere = ModuleSpec("ortools", None, is_package=True)
    elsewhere.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(highs, "find_spec", lambda _: elsewhere)
    highs.library.cache_clear()
    with pytest.raises(ValueError, match="the HiGHS that the wheels of OR-tools bring"):
        highs.library()


def test_ctrl_c_reaches_a_solve_after_z3_has_handled_signals() -> None:
    # By default z3 puts its own handler in place of Python's and back; since then a signal no
    # longer wakes a thread that waits.
    code = (
        "import os, signal, threading, z3\n"
        "from bubbleproof.solvers import solve, SolveOptions\n"
        "from bubbleproof.theory.pipelines.pipeline import Pipeline\n"
        "solver = z3.SimpleSolver(); solver.add(z3.Int('x') > 3); solver.check()\n"
        "problem = Pipeline(num_ranks=16, num_microbatches=48, forward=2, backward=4, latency=1,"
        " capacity=16).problem()\n"
        "interrupt = lambda: os.kill(os.getpid(), signal.SIGINT)\n"
        f"threading.Timer({sized(2.0, full=4.0)}, interrupt).start()\n"
        f"result = solve(problem, SolveOptions(engine='z3', time_limit={FOREVER}))\n"
        "assert result.reason.startswith('interrupted'), result\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr


def test_highs_and_or_tools_share_a_process_that_loads_no_second_highs() -> None:
    code = (
        "import sys; from bubbleproof.solvers import solve, SolveOptions\n"
        "from bubbleproof.theory.pipelines.pipeline import Pipeline\n"
        "problem = Pipeline(num_ranks=2, num_microbatches=2).problem()\n"
        "names = ('pulp', 'cpsat', 'pulp')\n"
        "found = [solve(problem, SolveOptions(engine=e)).makespan for e in names]\n"
        "assert found == [9, 9, 9] and 'highspy' not in sys.modules, found\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("engine", ["z3", "pulp", "pulp-cbc"])
def test_through_the_front_door(engine: str) -> None:
    result = solve(LATE, SolveOptions(engine=engine, threads=1))
    best = brute_force(LATE)
    assert best is not None
    assert (result.status, result.makespan) == (Status.OPTIMAL, best.makespan)
