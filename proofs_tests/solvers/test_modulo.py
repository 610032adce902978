"""Schedules that repeat: accepted by the checker, at the period that is claimed."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.engines.cpsat_periodic import search
from bubbleproof.solvers.engines.engine import Budget
from bubbleproof.solvers.identical import identical
from bubbleproof.solvers.lists.modulo import cycle_of, periodic_schedules, repeated
from bubbleproof.solvers.starts import schedule_of_starts
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify import check
from proofs_tests.patience import PATIENCE
from proofs_tests.sized import paired, sized

V_SHAPE = Pipeline(num_ranks=3, num_microbatches=12, num_chunks=2, placement="wave", capacity=5)
LOOP = Pipeline(
    num_ranks=3, num_microbatches=11, num_chunks=2, capacity=7, split_backward=True, latency=1
)


@pytest.mark.parametrize(("pipeline", "count"), paired([V_SHAPE, LOOP], [1, 2]))
def test_what_fits_one_period_fits_all_of_them(pipeline: Pipeline, count: int) -> None:
    problem = pipeline.problem()
    alike = identical(lower_bounds(problem).order)
    assert alike is not None
    cycle = cycle_of(problem, alike, count)
    assert cycle is not None
    assert cycle.held
    budget = Budget(deadline=time.perf_counter() + PATIENCE, threads=1)
    work = count * 6  # ticks: the forwards and backwards of two chunks on one rank
    fits = []
    for ticks in sized((work - 1, work + 1, 2 * work), full=(*range(work - 1, work + 3), 2 * work)):
        longer = replace(cycle, longest=cycle.longest + 6 * ticks)
        starts = search(longer, ticks, longer.longest, budget, 1.0)
        if starts is not None:
            fits.append(ticks)
            schedule = schedule_of_starts(problem, repeated(starts, cycle, alike, ticks))
            assert check(problem, schedule).ok
    assert fits
    assert min(fits) >= work


def test_schedules_that_repeat_are_found_where_list_scheduling_is_poor() -> None:
    pipeline = Pipeline(
        num_ranks=4, num_microbatches=32, num_chunks=2, placement="wave", capacity=6
    )
    problem = pipeline.problem()
    alike = identical(lower_bounds(problem).order)
    assert alike is not None
    budget = Budget(deadline=time.perf_counter() + PATIENCE, threads=1)
    found = [check(problem, s) for s in periodic_schedules(problem, alike, budget)]
    assert found
    for verdict in found:
        assert verdict.ok
        # 32 microbatches of 6 ticks on each rank; list scheduling takes over 300.
        assert verdict.measured is not None
        assert 32 * 6 <= verdict.measured.makespan <= 32 * 8
