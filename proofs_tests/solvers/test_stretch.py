"""Large m: bands found, periods inserted, and the result checked in full at the real size."""

from __future__ import annotations

import threading
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubbleproof.formats.schedule_json import is_same_problem
from bubbleproof.solvers import ProofOrigin, SolveOptions, Status, solve
from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.lists.stretch import (
    find_band,
    first_microbatches,
    period_bound,
    stretched,
)
from bubbleproof.solvers.starts import schedule_of_starts, starts_by_task
from bubbleproof.theory.families import family
from bubbleproof.theory.orders.periods import Band
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify import check
from proofs_tests.judged import accepted
from proofs_tests.patience import PATIENCE
from proofs_tests.sized import sized
from proofs_tests.solvers.small import UNEVEN, split, tiny_pipelines


@given(tiny_pipelines(least=1), st.integers(1, 3))
def test_the_first_microbatches_are_the_problem_of_so_many(pipeline: Pipeline, few: int) -> None:
    few = min(few, pipeline.num_microbatches)
    short = pipeline.with_changes(num_microbatches=few).problem()
    assert is_same_problem(first_microbatches(pipeline.problem(), few), short)


def test_a_band_is_where_all_classes_step_alike() -> None:
    # Class 0 steps by 3 from its second microbatch on, class 1 from its third; both end unevenly.
    starts = np.array([[0, 4, 7, 10, 13, 16, 19, 30], [9, 10, 14, 17, 20, 23, 26, 28]])
    assert find_band(starts) == Band(first=2, last=7, count=1, ticks=3)
    # In pairs: the steps 1 and 5 alternate.
    pairs = np.array([[0, 1, 6, 7, 12, 13, 18, 19, 24]])
    assert find_band(pairs) == Band(first=0, last=9, count=2, ticks=6)
    assert find_band(np.array([[0, 1, 4, 9, 16, 25, 36, 49]])) is None


def test_periods_are_inserted_within_the_band() -> None:
    starts = np.array([[0, 4, 7, 10, 13, 16, 19, 30]])
    longer = stretched(starts, Band(first=1, last=7, count=1, ticks=3), 10)
    assert longer.tolist() == [[0, 4, 7, 10, 13, 16, 19, 22, 25, 36]]
    pairs = stretched(np.array([[0, 1, 6, 7, 12, 13]]), Band(first=0, last=6, count=2, ticks=6), 10)
    assert pairs.tolist() == [[0, 1, 6, 7, 12, 13, 18, 19, 24, 25]]
    with pytest.raises(ValueError, match="multiples of 2, got 9"):
        stretched(np.array([[0, 1, 6, 7, 12, 13]]), Band(first=0, last=6, count=2, ticks=6), 9)


@settings(max_examples=sized(8, full=20))
@given(st.sampled_from(["1f1b", "gpipe", "zb-h1"]), st.integers(1, 4), st.integers(0, 20))
def test_published_orders_stretch_to_themselves(name: str, p: int, more: int) -> None:
    chosen, m = family(name), 5 * p + 6
    short = Pipeline(num_ranks=p, num_microbatches=m, split_backward=name == "zb-h1")
    problem, long = short.problem(), short.with_changes(num_microbatches=m + more)
    (members,), (whole,) = (lower_bounds(of).order.groups for of in (problem, long.problem()))
    starts = starts_by_task(problem, chosen.schedule(short))[members]
    band = find_band(starts)
    if name == "gpipe":  # its backwards step by tB, its forwards by tF
        assert band is None
        return
    assert band is not None
    full = np.empty(long.problem().num_tasks, dtype=np.int64)
    full[whole] = stretched(starts, band, m + more)
    measured = accepted(long.problem(), schedule_of_starts(long.problem(), full))
    published = check(long.problem(), chosen.schedule(long)).measured
    assert published is not None
    assert measured.makespan == published.makespan


def test_the_period_bound_is_work_or_round_trip() -> None:
    # One microbatch: 3 ticks on each rank; its stay on rank 0 is 12, with room for K: 12 / K.
    for cap, bound in ((4, 3), (3, 4), (2, 6), (1, 12)):
        problem = Pipeline(num_ranks=4, num_microbatches=8, capacity=cap).problem()
        order = lower_bounds(problem).order
        assert period_bound(problem, order) == bound
    late = Pipeline(
        num_ranks=4, num_microbatches=8, forward=2, backward=4, latency=1, capacity=4
    ).problem()
    order = lower_bounds(late).order
    assert period_bound(late, order) == Fraction(30, 4)


LARGE = [
    # (p, cap, optimum or None, most): caps 4 and 3 for m = 256; the gap is at most ``most`` ticks.
    (4, 4, 0),
    (4, 3, 0),
    (8, 8, 0),
    (8, 4, 9),
]


@pytest.mark.parametrize(("p", "cap", "most"), LARGE)
def test_large_m_is_checked_in_full_and_near_its_bound(p: int, cap: int, most: int) -> None:
    problem = Pipeline(num_ranks=p, num_microbatches=257, capacity=cap).problem()
    stop = threading.Event()

    def near_enough(who: str, value: int | None, bound: int, seconds: float) -> None:
        del who, seconds
        if value is not None and 0 < value - bound <= most:
            stop.set()

    result = solve(problem, SolveOptions(time_limit=PATIENCE, stop=stop, progress=near_enough))
    assert result.schedule is not None
    assert check(problem, result.schedule).ok
    assert result.makespan is not None
    assert 0 <= result.makespan - result.lower_bound <= most
    assert result.status is (Status.OPTIMAL if most == 0 else result.status)


def test_a_thousand_microbatches_with_split_backwards_are_optimal_by_a_certificate() -> None:
    problem = split(4, 1024, 4, UNEVEN).problem()
    result = solve(problem, SolveOptions(time_limit=PATIENCE))
    assert (result.status, result.proof) == (Status.OPTIMAL, ProofOrigin.CERTIFICATE)
    assert result.makespan == 29747
