"""On tiny random problems, bounds stay below the true optimum and ``solve`` attains it."""

from __future__ import annotations

from hypothesis import given, settings

from bubbleproof.solvers import SolveOptions, Status, solve
from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify import check
from proofs_tests.sized import sized
from proofs_tests.solvers.brute_force import brute_force
from proofs_tests.solvers.small import tiny_pipelines


@settings(max_examples=sized(60, full=300))
@given(tiny_pipelines())
def test_no_bound_exceeds_the_optimum(pipeline: Pipeline) -> None:
    problem = pipeline.problem()
    best = brute_force(problem)
    if best is not None:
        bounds = lower_bounds(problem)
        assert not bounds.is_cyclic
        assert bounds.best.bound <= best.makespan


@settings(max_examples=sized(40, full=100))
@given(tiny_pipelines())
def test_solve_attains_the_optimum(pipeline: Pipeline) -> None:
    problem = pipeline.problem()
    best = brute_force(problem)
    result = solve(problem, SolveOptions(threads=1))
    assert (result.status is Status.INFEASIBLE) == (best is None), result.reason
    if best is None:
        return
    assert result.makespan == best.makespan
    assert result.schedule is not None
    assert check(problem, result.schedule).ok
    closes = result.lower_bound == best.makespan
    assert result.status is (Status.OPTIMAL if closes else Status.FEASIBLE)
    if not closes:
        assert result.engine_bound == best.makespan


@settings(max_examples=sized(12, full=30))
@given(tiny_pipelines())
def test_the_engine_alone_says_the_same(pipeline: Pipeline) -> None:
    problem = pipeline.problem()
    best = brute_force(problem)
    result = solve(problem, SolveOptions(engine="cpsat", threads=1))
    assert (result.status is Status.INFEASIBLE) == (best is None)
    if best is not None:
        assert result.makespan == best.makespan
        assert max(result.lower_bound, result.engine_bound or 0) == best.makespan
