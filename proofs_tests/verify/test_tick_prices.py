"""Certificates by prices of ticks and of units of stores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from random import Random

import numpy as np
import pytest

from bubbleproof.theory.model.problem import Problem, Store
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.certificates.certificate_rule import refusal
from bubbleproof.verify.certificates.chains import in_order
from bubbleproof.verify.certificates.tick_prices import (
    MOST_TICKS,
    Market,
    Steps,
    Tariff,
    TickPrices,
    UnusablePricesError,
)
from proofs_tests.sized import sized
from proofs_tests.solvers.exhaustive import USUAL_STATES, Exhaustive, TooMuchWork
from proofs_tests.solvers.random_problems import random_problem
from proofs_tests.solvers.small import by_hand
from proofs_tests.verify.odd_problems import odd_problem
from proofs_tests.verify.test_volume import RANKS, in_a_circle, queue


def rented(bound: int, price: int = 1) -> TickPrices:
    """A price for a unit of store 0 in every tick."""
    return TickPrices(resources=(), stores=(Tariff(of=0, steps=((0, price),)),), bound=bound)


def hired(bound: int, *steps: tuple[int, int], of: int = 0) -> TickPrices:
    """Prices for ticks of a resource."""
    return TickPrices(resources=(Tariff(of=of, steps=steps),), stores=(), bound=bound)


# Four uses of 10 ticks each pay 40, and 2 units times 19 ticks are 38; 20 ticks are 40.
TRUE = rented(20)


def test_a_true_certificate_is_accepted_and_no_more() -> None:
    problem = queue(4, 2)
    assert refusal(problem, TRUE) is None
    assert refusal(problem, rented(20, 7)) is None
    assert refusal(problem, rented(15)) is None
    assert refusal(queue(4, 2, base=3), TRUE) is None
    assert refusal(problem, rented(21)) == "the prices do not prove a bound of 21"
    assert refusal(queue(3, 2), TRUE) == "the prices do not prove a bound of 20"
    assert refusal(queue(4, 3), TRUE) == "the prices do not prove a bound of 20"


def test_ticks_of_a_rank_prove_its_work_between_head_and_tail() -> None:
    """1F1B of two ranks and m microbatches: (m + p - 1)(tF + tB), on the last rank.

    Its first forward begins after tF, its last backward ends tB before the end. With the ticks
    between at 1 and m = 5, tF = 2, tB = 4: 30 is paid, and of H = 35 ticks 35 - 6 = 29 are sold.
    """
    pipeline = Pipeline(num_ranks=2, num_microbatches=5, forward=2, backward=4)
    problem = pipeline.problem()
    assert refusal(problem, hired(36, (2, 1), (31, 0), of=1)) is None
    assert refusal(problem, hired(37, (2, 1), (32, 0), of=1)) is not None
    assert refusal(replace(pipeline, num_microbatches=4).problem(), hired(36, (2, 1))) is not None


def test_what_alone_does_not_fit_needs_no_price() -> None:
    """F, 6 ticks and B take 10."""
    nothing = TickPrices(resources=(), stores=(), bound=10)
    assert refusal(queue(4, 2), nothing) is None
    assert refusal(queue(4, 2), replace(nothing, bound=11)) is not None


def test_nothing_is_paid_for_zeros() -> None:
    """Prices of 0, tasks of 0 ticks, changes of 0 units, a horizon of no tick."""
    assert refusal(queue(4, 2), rented(11, 0)) == "the prices do not prove a bound of 11"
    still = by_hand(
        [("0F0", 0, (0,)), ("0B0", 0, (0,))],
        [("0F0", "0B0", 0)],
        resources=RANKS[:1],
        stores=[Store(name="memory", capacity=0)],
        events=[("0F0", False, 0, 0), ("0B0", True, 0, 0)],
    )
    for claim in (rented(2), hired(2, (0, 5)), TickPrices(resources=(), stores=(), bound=1)):
        assert refusal(still, claim) == f"the prices do not prove a bound of {claim.bound}"


@pytest.mark.parametrize(
    ("problem", "damaged", "sentence"),
    [
        # Hypothesis 1: at -1 a tick 4 x 4 ticks pay -16, more than -100 for 100 ticks.
        (queue(4, 2), hired(101, (0, -1)), "prices of resource 0 must be 0 or more"),
        (queue(4, 2), rented(101, -1), "prices of store 0 must be 0 or more"),
        # Twice the same prices would be sold once and paid twice.
        (
            queue(4, 2),
            replace(rented(23), stores=TRUE.stores * 2),
            "store 0 is priced twice",
        ),
        # Hypothesis 2: what has no capacity sells without end; 3 of base leave -1 of 2.
        (queue(4, None), TRUE, "store 0 has no capacity, or a base load beyond it"),
        (queue(4, -1, base=3), TRUE, "store 0 has no capacity, or a base load beyond it"),
        # Hypothesis 3.
        (
            queue(4, 2),
            rented(20, 1.5),  # type: ignore[arg-type]  # a float, on purpose
            "prices of store 0 must be whole numbers at whole ticks",
        ),
        (
            queue(4, 2),
            rented(19.5),  # type: ignore[arg-type]  # a float, on purpose
            "a certificate proves a whole bound, got 19.5",
        ),
        (queue(4, 2), rented(0), "prices prove a whole bound of 1 to 4194305, got 0"),
        (
            queue(4, 2),
            rented(MOST_TICKS + 2),
            "prices prove a whole bound of 1 to 4194305, got 4194306",
        ),
        (queue(4, 2), rented(20, 1 << 61), "the prices add up to 2**62 or more"),
        (queue(4, 2), rented(20, 1 << 90), "the prices add up to 2**62 or more"),
        (queue(4, 2), rented(20, 1 << 55), "the prices add up to 2**62 or more"),
        (
            queue(4, 2),
            hired(9, (3, 1), (3, 2)),
            "prices of resource 0 must begin at rising ticks in 0..7",
        ),
        (queue(4, 2), hired(9, (8, 1)), "prices of resource 0 must begin at rising ticks in 0..7"),
        (queue(4, 2), hired(9, (-1, 1)), "prices of resource 0 must begin at rising ticks in 0..7"),
        (queue(4, 2), hired(9, of=1), "resource 1 is none of the problem's 1"),
        (queue(4, 2), hired(9, of=-1), "resource -1 is none of the problem's 1"),
        (
            queue(4, 2),
            replace(TRUE, objective="span_idle"),
            "prices bound the makespan, not 'span_idle'",
        ),
    ],
)
def test_damage_is_refused(problem: Problem, damaged: TickPrices, sentence: str) -> None:
    assert refusal(problem, damaged) == sentence


def test_a_cycle_proves_nothing() -> None:
    assert refusal(in_a_circle(), TRUE) == "the problem's precedences have a cycle"


def random_prices(rng: Random, problem: Problem, bound: int) -> TickPrices:
    """Small prices at random ticks, of some resources and of some stores with a capacity."""

    def tariffs(numbers: list[int]) -> Iterator[Tariff]:
        for number in rng.sample(numbers, rng.randint(0, min(2, len(numbers)))):
            count = min(bound - 1, rng.choice((1, 2, 4)))
            ticks = sorted(rng.sample(range(bound - 1), count))
            steps: Steps = tuple((tick, rng.choice((0, 1, 1, 3))) for tick in ticks)
            yield Tariff(of=number, steps=steps)

    capped = [
        number
        for number, store in enumerate(problem.stores)
        if store.capacity is not None and store.capacity >= store.base
    ]
    return TickPrices(
        resources=tuple(tariffs([*range(len(problem.resources))])),
        stores=tuple(tariffs(capped)),
        bound=bound,
    )


def price_at(tariff: Tariff, tick: int) -> int:
    """The price of a tick, looked up."""
    return next((price for begin, price in reversed(tariff.steps) if begin <= tick), 0)


def least_of_all_placings(problem: Problem, tasks: list[int], prices: TickPrices) -> int | None:
    """What a microbatch pays, tick by tick, in the cheapest of all its placings; None: none fits.

    Transfers may lie outside of the horizon, at most their duration and a tick beyond it.
    """
    horizon, events, edges = prices.bound - 1, problem.events, problem.edges
    ticks, homes = problem.duration.tolist(), problem.occupancy

    def starts(task: int) -> range:
        beyond = 0 if problem.rank_of_task[task] >= 0 else ticks[task] + 1
        return range(-beyond, horizon - ticks[task] + beyond + 1)

    def paid(task: int, start: int) -> int:
        used = set(homes.resource[homes.task == task].tolist())
        end, total = start + ticks[task], 0
        for tariff in (each for each in prices.resources if each.of in used):
            total += sum(price_at(tariff, t) for t in range(horizon) if start <= t < end)
        for tariff in prices.stores:
            for row in np.flatnonzero((events.task == task) & (events.store == tariff.of)):
                moment = end if events.at_end[row] else start
                held = sum(price_at(tariff, t) for t in range(horizon) if t >= moment)
                total += int(events.delta[row]) * held
        return total

    columns = edges.before.tolist(), edges.after.tolist(), edges.lag.tolist()
    inside = [row for row in zip(*columns, strict=True) if {*row[:2]} <= {*tasks}]
    found: list[int] = []
    for placing in product(*(starts(task) for task in tasks)):
        at = dict(zip(tasks, placing, strict=True))
        if all(at[after] >= at[before] + ticks[before] + lag for before, after, lag in inside):
            found.append(sum(paid(task, start) for task, start in at.items()))
    return min(found, default=None)


def test_it_is_what_all_placings_say() -> None:
    """Of each microbatch alone; never more, and the same where its precedences are a path."""
    rng, same, less, unfit = Random(5), 0, 0, 0
    for seed in range(sized(100, full=4000)):
        problem = (odd_problem, random_problem)[seed % 2](Random(seed))
        edges, sample = problem.edges, problem.actions.microbatch
        order = in_order(problem.num_tasks, edges.before.tolist(), edges.after.tolist())
        bound = rng.randint(2, 7)
        parts = [np.flatnonzero(sample == number).tolist() for number in np.unique(sample)]
        most = max(map(len, parts))
        if len(order) < problem.num_tasks or (bound + 3) ** most > 3000:
            continue
        prices = random_prices(rng, problem, bound)
        try:
            found = Market(problem, prices).paid(order)
        except UnusablePricesError:
            continue
        each = [least_of_all_placings(problem, tasks, prices) for tasks in parts]
        if None in each or found is None:
            assert None in each
            unfit += 1
            continue
        total = sum(paid for paid in each if paid is not None)
        assert found <= total
        same += found == total
        less += found < total
    assert min(same, unfit) > 5, (same, less, unfit)
    assert same > less


@pytest.mark.sweep
def test_nothing_above_the_optimum_is_accepted() -> None:
    """Random prices on random problems, against a walk that knows no lemma."""
    rng, proved = Random(3), 0
    for seed in range(sized(30, full=4000)):
        problem = (odd_problem, random_problem)[seed % 2](Random(seed))
        try:
            optimum = Exhaustive(problem, USUAL_STATES).optimum()
        except TooMuchWork:
            continue
        if not optimum:
            continue
        for _ in range(20):
            bound = rng.randint(max(2, optimum - 3), optimum + 1)
            accepted = refusal(problem, random_prices(rng, problem, bound)) is None
            assert not accepted or bound <= optimum, seed
            proved += accepted
    assert proved > 10
