"""Prices that are found: they prove what a linear program of one rank can, and never too much."""

from __future__ import annotations

import time
from collections.abc import Iterator
from math import inf
from random import Random

import pytest

from bubbleproof.solvers import SolveOptions, Status, solve
from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.engines.engine import Budget
from bubbleproof.solvers.refutation.price_search import lengthened, prices_beyond
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.certificates.certificate_rule import refusal
from bubbleproof.verify.certificates.tick_prices import Tariff, TickPrices
from proofs_tests.sized import sampled, sized
from proofs_tests.solvers.exhaustive import USUAL_STATES, Exhaustive, TooMuchWork
from proofs_tests.solvers.random_problems import random_problem
from proofs_tests.solvers.small import UNEVEN, split
from proofs_tests.verify.odd_problems import odd_problem


def tight_loop(num_microbatches: int, capacity: int, num_ranks: int = 4) -> Pipeline:
    """Two chunks a rank, F of 2 and B of 4 ticks, messages of 1."""
    return Pipeline(
        num_ranks=num_ranks,
        num_microbatches=num_microbatches,
        num_chunks=2,
        forward=2,
        backward=4,
        latency=1,
        capacity=capacity,
    )


def found(problem: Problem, known: int | None = None, work: float = inf) -> Iterator[TickPrices]:
    """The certificates beyond what is known."""
    bounds = lower_bounds(problem)
    budget = Budget(deadline=time.perf_counter() + 600, work=work)
    return prices_beyond(bounds.best.bound if known is None else known, problem, bounds, budget)


@pytest.mark.parametrize(
    ("num_microbatches", "capacity", "by_program", "optimum"),
    sampled(
        [
            (6, 6, 124, 126),
            (8, 6, 160, 164),
            (10, 6, 190, 194),
            (8, 8, 134, 136),
            (10, 8, 158, 164),
        ],
        every=2,
    ),
)
def test_four_ranks_of_two_chunks(
    num_microbatches: int, capacity: int, by_program: int, optimum: int
) -> None:
    """Values of a program for the first rank by GLOP, and optima by CP-SAT, on models of their own.

    Prices are sought beyond two ticks less than the program is known to show.
    """
    problem = tight_loop(num_microbatches, capacity).problem()
    claims = [*found(problem, by_program - 2)]
    assert all(refusal(problem, claim) is None for claim in claims)
    assert by_program <= claims[-1].bound <= optimum
    assert [claim.bound for claim in claims] == sorted({claim.bound for claim in claims})


def test_no_program_is_made_of_what_a_microbatch_does_not_fit() -> None:
    """Known is next to nothing: the first horizon is a microbatch's own length."""
    problem = tight_loop(6, 6).problem()
    claims = [claim.bound for claim in found(problem, 1)]
    assert claims[-1] == [*found(problem, 122)][-1].bound


def test_prices_of_a_short_horizon_are_lengthened() -> None:
    """A wave of eight ranks, split backwards: from 1,994 ticks to 2,041, by 797 of them alone."""
    pipeline = split(8, 32, 12, UNEVEN, v=2).with_changes(placement="wave")
    claim = next(found(pipeline.problem(), 1994))
    assert claim.bound == 2041
    assert refusal(pipeline.problem(), claim) is None


def test_what_is_lengthened_keeps_its_last_price() -> None:
    prices = TickPrices(
        resources=(Tariff(of=0, steps=((1, 5), (9, 7))),),
        stores=(Tariff(of=0, steps=((4, 2),)),),
        bound=11,
    )
    assert lengthened(prices, 6, 3) == TickPrices(
        resources=(Tariff(of=0, steps=((1, 5), (12, 7))),),
        stores=(Tariff(of=0, steps=((4, 2),)),),
        bound=14,
    )


def test_work_is_counted_and_decides_alone() -> None:
    problem = tight_loop(10, 6).problem()
    once, again = ([*found(problem, 180, work=5.0)] for _ in range(2))
    assert once == again
    assert once
    assert [*found(problem, 180, work=1e-9)] == []


def test_a_problem_without_a_priced_store_has_none() -> None:
    assert [*found(tight_loop(10, 6).problem().with_capacity(None), 10)] == []


def test_solve_refutes_by_prices_and_counts_their_work() -> None:
    """4 ranks, 20 microbatches, room for 6: 322 ticks by its volume, more by prices."""
    problem = tight_loop(20, 6).problem()
    assert lower_bounds(problem).best.bound == 322
    options = SolveOptions(time_limit=600, work=1.2, threads=1, within=322)
    once, *again = (solve(problem, options) for _ in range(sized(1, full=2)))
    assert isinstance(once.certificate, TickPrices)
    assert (once.status, once.lower_bound > 322) == (Status.INFEASIBLE, True)
    assert refusal(problem, once.certificate) is None
    assert 0 < once.work < 1.2
    assert all((o.certificate, o.work) == (once.certificate, once.work) for o in again)


@pytest.mark.sweep
def test_no_price_is_above_the_optimum() -> None:
    """Of random problems, beyond less than their bounds; some prove the optimum itself."""
    proved = exact = 0
    for seed in range(sized(16, full=1000)):
        problem = (odd_problem, random_problem)[seed % 2](Random(seed))
        bounds = lower_bounds(problem)
        try:
            optimum = None if bounds.is_cyclic else Exhaustive(problem, USUAL_STATES).optimum()
        except TooMuchWork:
            continue
        if not optimum:
            continue
        for claim in found(problem, max(1, bounds.best.bound - 3)):
            assert refusal(problem, claim) is None
            assert claim.bound <= optimum, seed
            proved += 1
            exact += claim.bound == optimum
    assert min(proved, exact) > sized(1, full=3), (proved, exact)


@pytest.mark.parametrize("unit", [1 << 20, 10**9 + 7, 1 << 40, 1 << 50])
def test_memory_in_bytes_is_priced_as_well(unit: int) -> None:
    """Prices are whole numbers, of units that are small: they lose digits, but not all."""
    claims = [*found(tight_loop(6, 6).problem(), 122)]
    in_bytes = tight_loop(6, 6 * unit).with_changes(activation=unit).problem()
    more = [*found(in_bytes, 122)]
    assert all(refusal(in_bytes, claim) is None for claim in more)
    least = claims[-1].bound if unit < 1 << 40 else 0
    assert least <= max((claim.bound for claim in more), default=0) <= claims[-1].bound
