"""Random problems with events anywhere: no wrong optimum, no wrong INFEASIBLE, no false edge."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from bubbleproof.solvers.memory_rules import exact_stores
from bubbleproof.verify.certificates.chains import Chain, ForcedOrder, Lifecycle
from bubbleproof.verify.certificates.index_order import index_order
from proofs_tests.sized import sized
from proofs_tests.solvers import random_optima
from proofs_tests.solvers.brute_force import brute_force
from proofs_tests.solvers.exhaustive import Exhaustive, TooMuchWork, obeys
from proofs_tests.solvers.random_problems import random_problem
from proofs_tests.solvers.small import by_hand


@pytest.mark.sweep
def test_no_answer_is_wrong() -> None:
    """12 problems, 20,000 with ``BUBBLEPROOF_SWEEP=full``."""
    counts = random_optima.sweep(sized(12, full=20_000))
    assert counts.wrong == []
    assert counts.by_engine > 0
    assert counts.variants > 0
    assert counts.spans > 0
    # The sweep has teeth only where answers are given and can be judged.
    assert counts.optimal > counts.problems / 2
    assert counts.infeasible > counts.problems / 20
    assert counts.undecided + counts.given_up <= counts.problems / 100


def test_a_false_lemma_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were what is acquired at first believed to be held until the end, optima would be wrong."""
    true = ForcedOrder.lifecycle

    def false(self: ForcedOrder, store: int, chain: Chain) -> Lifecycle | None:
        life = true(self, store, chain)
        return None if life is None else replace(life, held=life.acquired)

    monkeypatch.setattr(ForcedOrder, "lifecycle", false)
    for seed in (123, 167):
        assert len(random_optima.sweep(1, seed=seed).wrong_optima) == 1


def test_the_problems_are_of_all_kinds() -> None:
    problems = [random_problem(Random(number)) for number in range(300)]
    orders = [index_order(problem) for problem in problems]
    assert 5 < sum(len(order.groups) > 1 for order in orders) < 60
    assert sum(bool(order.lifecycles) for order in orders) > 60
    assert sum(bool(exact_stores(order)) for order in orders) > 5
    assert sum(bool(len(order.memory_edges)) for order in orders) > 30
    events = [problem.events for problem in problems]
    assert sum(bool((e.delta[e.at_end] > 0).any()) for e in events) > 20  # acquired at an end
    assert sum(bool((e.delta[~e.at_end] < 0).any()) for e in events) > 20  # released at a start
    for rare in (
        [bool((problem.edges.lag < 0).any()) for problem in problems],
        [bool((problem.duration == 0).any()) for problem in problems],
        [len(problem.stores) > 1 for problem in problems],
        [bool((problem.actions.part > 0).any()) for problem in problems],
        [bool((problem.actions.slice > 0).any()) for problem in problems],
        [len(problem.occupancy.task) > problem.num_tasks for problem in problems],
    ):
        assert sum(rare) > 10


def test_two_exhaustive_searches_agree() -> None:
    """The walk against the older search, where that one may be asked: no negative lags."""
    found = 0
    for number in range(60):
        problem = random_problem(Random(number))
        if problem.num_tasks <= 9 and (problem.edges.lag >= 0).all():
            walk, best = Exhaustive(problem), brute_force(problem, every_tick=True)
            optimum = walk.optimum()
            assert optimum == (None if best is None else best.makespan)
            found += optimum is not None
            if optimum is not None:
                start = walk.schedule(optimum)
                assert start is not None
                assert obeys(problem, start)
    assert found > 5


def test_the_walk_lets_a_negative_lag_run_backwards() -> None:
    # B starts 3 ticks before F ends at the earliest: B 0-1 beside F 0-3 where it has a rank of its
    # own (link: no computation), and behind F or before it on one rank.
    problem = by_hand([("0F0", 3, (0,)), ("0B0", 1, (0,))], [("0F0", "0B0", -4)])
    assert Exhaustive(problem).optimum() == 4
    start = Exhaustive(problem).schedule(4)
    assert start in ((0, 3), (1, 0))
    assert obeys(problem, (1, 0))
    assert not obeys(problem, (2, 0))  # more than 1 tick after B starts
    assert not obeys(problem, (0, 2))  # at the same time


def test_a_walk_that_grows_too_long_is_given_up() -> None:
    with pytest.raises(TooMuchWork):
        Exhaustive(random_problem(Random(6)), most_states=3).optimum()
