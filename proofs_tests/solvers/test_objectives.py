"""The other objectives against exhaustive search, and how a search ends early."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given, settings

from bubbleproof.solvers import ProofOrigin, SolveOptions, Status, solve
from bubbleproof.solvers.objectives import below
from bubbleproof.solvers.options import OBJECTIVES, Goal, Progress
from bubbleproof.theory.families import family
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify import check
from proofs_tests.judged import accepted
from proofs_tests.own_process import run_alone
from proofs_tests.patience import FOREVER, ended
from proofs_tests.sized import sized
from proofs_tests.solvers.brute_force import brute_force
from proofs_tests.solvers.small import UNEVEN, split, tiny_pipelines


def least_peak(problem: Problem, within: int | None) -> int | None:
    """The least peak by trying every capacity from 0 on, exhaustively."""
    highest = sum(store.base for store in problem.stores)
    highest += int(abs(problem.events.delta).sum())
    for peak in range(highest + 1):
        if brute_force(below(problem, peak + 1), most=within) is not None:
            return peak
    return None


@settings(max_examples=sized(6, full=25))
@given(tiny_pipelines(least=1))
def test_makespan_then_peak_and_peak_equal_exhaustive_search(pipeline: Pipeline) -> None:
    problem = pipeline.problem()
    best = brute_force(problem)
    both = solve(problem, SolveOptions(objective="makespan-then-peak", threads=1))
    alone = solve(problem, SolveOptions(objective="peak", threads=1))
    if best is None:
        assert (both.status, alone.status) == (Status.INFEASIBLE, Status.INFEASIBLE)
        return
    assert (both.status, alone.status) == (Status.OPTIMAL, Status.OPTIMAL)
    assert (both.makespan, both.peak) == (best.makespan, least_peak(problem, best.makespan))
    assert alone.value == alone.peak == least_peak(problem, None)
    assert alone.peak_bound is not None
    assert alone.gap == 0


def test_the_makespan_leaves_room_that_only_the_second_objective_uses() -> None:
    # ZB-H2's room for 8 is not needed at the least makespan 265: 6 do, and 5 cost time.
    pipeline = split(4, 8, 8, UNEVEN)
    result = solve(pipeline.problem(), SolveOptions(objective="makespan-then-peak"))
    assert (result.status, result.makespan, result.peak) == (Status.OPTIMAL, 265, 6)
    assert (result.proof, result.lower_bound) == (ProofOrigin.ARGUMENT, 265)
    tighter = solve(pipeline.with_changes(capacity=5).problem())
    assert tighter.status is Status.OPTIMAL
    assert tighter.makespan is not None
    assert tighter.makespan > 265


def test_within_bounds_what_is_wanted() -> None:
    problem = Pipeline(num_ranks=2, num_microbatches=3).problem()
    assert solve(problem, SolveOptions(within=12)).makespan == 12
    refused = solve(problem, SolveOptions(within=11))
    assert (refused.status, refused.schedule) == (Status.INFEASIBLE, None)
    assert refused.reason == "makespan <= 11 cannot be: 12 is certified"
    assert refused.proof is ProofOrigin.CERTIFICATE
    peak = solve(problem, SolveOptions(objective="peak", within=12))
    free = solve(problem, SolveOptions(objective="peak"))
    assert (peak.peak, free.peak) == (2, 1)


def test_span_idle_is_its_own_measure() -> None:
    # At tF = tI = tW with room for 2p - 1 nothing idles within a rank's span (ZB-H2).
    pipeline = Pipeline(num_ranks=3, num_microbatches=6, split_backward=True, capacity=5)
    result = solve(pipeline.problem(), SolveOptions(objective="span_idle"))
    assert (result.status, result.value) == (Status.OPTIMAL, 0)
    published = family("zb-h2").schedule(pipeline)
    measured = accepted(pipeline.problem(), published)
    assert measured.span_idle == 0


SLOW = Pipeline(
    num_ranks=16, num_microbatches=48, forward=2, backward=4, latency=1, capacity=16
)  # its optimum is not known


def once_something_is_found(act: Callable[[], None]) -> Progress:
    """Progress that acts soon after the first schedule was reported, from another thread."""
    timer = threading.Timer(0.3, act)

    def hear(who: str, value: int | None, bound: int, seconds: float) -> None:
        del who, bound, seconds
        if value is not None and not timer.ident:
            timer.start()

    return hear


def test_setting_stop_ends_the_search_with_the_best_so_far() -> None:
    stop = threading.Event()
    act = once_something_is_found(stop.set)
    options = SolveOptions(time_limit=FOREVER, stop=stop, progress=act)
    result = ended(lambda: solve(SLOW.problem(), options))
    assert (result.status, result.reason) == (Status.FEASIBLE, "interrupted: the best so far")
    assert result.makespan is not None
    assert 0 < result.lower_bound < result.makespan


def interrupted_search() -> None:
    ctrl_c = partial(os.kill, os.getpid(), signal.SIGINT)
    options = SolveOptions(time_limit=FOREVER, progress=once_something_is_found(ctrl_c))
    result = solve(SLOW.problem(), options)
    assert (result.status, result.reason) == (Status.FEASIBLE, "interrupted: the best so far")
    assert result.schedule is not None
    assert check(SLOW.problem(), result.schedule).ok


def test_ctrl_c_ends_the_search_with_the_best_so_far() -> None:
    run_alone(interrupted_search)


SAID = {
    "makespan": "optimal for this shape",
    "span_idle": "optimal for this shape",
    "makespan-then-peak": "optimal makespan for this shape",
    "peak": "least peak for this shape",
}


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_word_optimal_is_no_wider_than_the_certificate(objective: Goal) -> None:
    """By hand: 3 ranks, 5 microbatches of 2 and 4 ticks take 7 x 6; within that 3 are in flight."""
    pipeline = Pipeline(num_ranks=3, num_microbatches=5, forward=2, backward=4)
    found = solve(pipeline.problem(), SolveOptions(objective=objective))
    assert found.status is Status.OPTIMAL
    assert found.statement.partition(":")[0].partition(",")[0] == SAID[objective]
    assert repr(found).startswith(f"<Result: {SAID[objective]}, ")
    is_whole = found.certificate is not None and found.certificate.objective == objective
    assert ("no schedule is better" in found.statement) == is_whole
    assert (found.certificate is None) == (objective == "peak")
    if objective != "peak":  # the same with no certificate
        alone = replace(found, lower_bound=0, certificate=None, engine_bound=found.value)
        assert alone.statement.startswith(f"{SAID[objective]}, by the solver's own bound, without ")
        assert "certificate checked" not in alone.statement + repr(alone)
        assert "no schedule is better" not in alone.statement


def test_each_half_of_two_objectives_has_its_own_proof() -> None:
    pipeline = Pipeline(num_ranks=3, num_microbatches=5, forward=2, backward=4)
    found = solve(pipeline.problem(), SolveOptions(objective="makespan-then-peak"))
    assert repr(found) == (
        "<Result: optimal makespan for this shape, makespan 42, no schedule is below 42 "
        "(certificate checked), least peak 3 (by the reason given)>"
    )
    assert found.peak_bound is not None
    claimed = replace(found.peak_bound, proof=ProofOrigin.ENGINE)
    half = replace(found, peak_bound=claimed)
    assert half.proof is ProofOrigin.ENGINE
    assert half.value_proof is ProofOrigin.CERTIFICATE
    assert half.statement.endswith(
        "least peak of that makespan by the solver's own bound, without a certificate"
    )
