"""The SAT model: each family is needed, together they suffice, and a budget is kept."""

from __future__ import annotations

import threading
import time
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pysat.solvers import Solver

from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.encoding import Encoding, Objective
from bubbleproof.solvers.engines import Budget, engine, sat
from bubbleproof.solvers.engines.sat_clauses import FALSE, TRUE, OrderClauses, TooLargeError
from bubbleproof.solvers.engines.sat_model import SatModel, tick_size
from bubbleproof.theory.model.problem import Problem, Resource, Store
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify import Rule, check
from proofs_tests.cases import hand_built, overlapped
from proofs_tests.patience import FOREVER, ended, in_time
from proofs_tests.sized import sized
from proofs_tests.solvers.brute_force import brute_force
from proofs_tests.solvers.engine_case import lenient, optimum, outcome_of, schedule_of
from proofs_tests.solvers.small import (
    MIXED,
    RANK_AND_LINK,
    TWO_CHUNKS,
    UNEVEN,
    WIDE,
    by_hand,
    offloading,
    prefetch,
    split,
    tiny_pipelines,
)

HARD = split(8, 24, 16, UNEVEN, part=True).problem()
IN_PARTS = split(2, 4, 3, (2, 2, 3), part=True).problem()
LATE = Pipeline(num_ranks=4, num_microbatches=8, forward=2, backward=4, latency=1, capacity=4)


def clauses(most: int = 10_000) -> OrderClauses:
    return OrderClauses(most=most, is_over=lambda: False)


def values(cnf: OrderClauses, count: int) -> set[tuple[int, ...]]:
    """What the first variables may be, over all models."""
    found = set()
    with Solver(name="glucose4", bootstrap_with=cnf.clauses) as solver:
        ranges = [range(cnf.low[x], cnf.high[x] + 1) for x in range(count)]
        for wanted in product(*ranges):
            pairs = list(enumerate(wanted))
            assumed = [cnf.at_most(x, v) for x, v in pairs]
            assumed += [-cnf.at_most(x, v - 1) for x, v in pairs]
            if solver.solve(assumptions=assumed):
                found.add(wanted)
    return found


@given(
    st.tuples(st.integers(-2, 2), st.integers(0, 3)),
    st.tuples(st.integers(-2, 2), st.integers(0, 3)),
    st.integers(-7, 7),
    st.sampled_from((None, TRUE, FALSE)),
)
def test_a_difference_keeps_exactly_the_values_it_says(
    first: tuple[int, int], second: tuple[int, int], ticks: int, unless: int | None
) -> None:
    cnf = clauses()
    for low, width in (first, second):
        cnf.variable(low, low + width)
    cnf.differ(0, 1, ticks, unless=FALSE if unless is None else unless)
    expected = {
        (x, y)
        for x in range(first[0], sum(first) + 1)
        for y in range(second[0], sum(second) + 1)
        if y >= x + ticks or unless == TRUE
    }
    assert values(cnf, 2) == expected


@given(st.lists(st.integers(-3, 3), max_size=5), st.integers(-6, 6))
def test_a_sum_keeps_exactly_the_choices_it_says(weights: list[int], most: int) -> None:
    cnf = clauses()
    for _ in weights:
        cnf.variable(0, 1)
    # x = 1 is the negation of x <= 0.
    cnf.add_sum([(-cnf.at_most(x, 0), w) for x, w in enumerate(weights)], most)
    expected = {
        choice
        for choice in product((0, 1), repeat=len(weights))
        if sum(w * c for w, c in zip(weights, choice, strict=True)) <= most
    }
    assert values(cnf, len(weights)) == expected


@pytest.mark.parametrize(("weight", "most", "holds"), [(2, 1, False), (2, 2, True), (-2, -1, True)])
def test_a_sum_takes_constants(weight: int, most: int, holds: bool) -> None:
    cnf = clauses()
    cnf.add_sum([(TRUE, weight), (FALSE, -5 * weight)], most)
    with Solver(name="glucose4", bootstrap_with=cnf.clauses) as solver:
        assert solver.solve() is holds


def test_an_empty_window_is_a_contradiction() -> None:
    cnf = clauses()
    cnf.variable(3, 2)
    with Solver(name="glucose4", bootstrap_with=cnf.clauses) as solver:
        assert solver.solve() is False


def test_a_formula_that_would_be_too_large_is_not_written() -> None:
    cnf = clauses(most=100)
    with pytest.raises(TooLargeError):
        cnf.variable(0, 10**12)
    assert len(cnf.clauses) < 100


def broken_without(
    method: str, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> tuple[Rule, ...]:
    """The rules that the engine's schedule breaks when one family is left out."""
    optimum("sat", problem)
    monkeypatch.setattr(SatModel, method, lambda _: None)
    monkeypatch.setattr(sat, "checked_value", lenient)
    schedule = schedule_of(problem, outcome_of("sat", problem))
    assert schedule is not None
    return check(problem, schedule).broken


def test_dependencies_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    late = Pipeline(num_ranks=2, num_microbatches=4, forward=2, backward=4, latency=3).problem()
    assert Rule.DEPENDENCIES in broken_without("add_dependencies", late, monkeypatch)


def test_exclusion_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert broken_without("add_exclusion", WIDE, monkeypatch) == (Rule.EXCLUSIVE,)


def test_links_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two off-loads share a link: 1 + 3 + 3 + 1 ticks.
    problem = by_hand(
        [
            (f"{g}{kind}0", ticks, (home,))
            for g in (0, 1)
            for kind, ticks, home in (("F", 1, g), ("OFFLOAD", 3, 2), ("B", 1, g))
        ],
        [
            (f"{g}{a}0", f"{g}{b}0", 0)
            for g in (0, 1)
            for a, b in (("F", "OFFLOAD"), ("OFFLOAD", "B"))
        ],
        resources=[
            Resource(name="rank 0", rank=0),
            Resource(name="rank 1", rank=1),
            RANK_AND_LINK[1],
        ],
    )
    assert optimum("sat", problem) == 8
    assert broken_without("add_links", problem, monkeypatch) == (Rule.EXCLUSIVE,)


@pytest.mark.parametrize(
    "problem", [TWO_CHUNKS, IN_PARTS, MIXED], ids=["two chunks", "in parts", "mixed"]
)
def test_memory_is_needed(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    # The engine leaves out orders that memory edges decide, so others may break as well.
    assert Rule.MEMORY in broken_without("add_memory", problem, monkeypatch)


@pytest.mark.parametrize(
    ("problem", "objective", "best"),
    [(WIDE, "makespan", 15), (prefetch(), "makespan", 2), (WIDE, "span_idle", 3)],
)
def test_the_horizon_is_needed(
    problem: Problem, objective: Objective, best: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # (4 + 2 - 1) * 3, and rank 0 idles (2 - 1) * 3.
    encoding = Encoding(problem, lower_bounds(problem), objective=objective, limit=best + 5)

    def is_satisfiable(limit: int) -> bool:
        model = SatModel(encoding, limit)
        model.build()
        with Solver(name="glucose4", bootstrap_with=model.cnf.clauses) as solver:
            return bool(solver.solve())

    assert is_satisfiable(best)
    assert not is_satisfiable(best - 1)
    monkeypatch.setattr(SatModel, "_spans", lambda _: [])  # what add_horizon states
    assert is_satisfiable(best - 1)


def test_known_optima_of_either_objective() -> None:
    # 80: the one-machine bound is 78, and two exact engines found 80.
    assert optimum("sat", LATE.problem()) == 80
    # 1F1B idles (p - 1)(tF + tB) on rank 0, and no order does better: p = 4, 3 * 3.
    assert optimum("sat", Pipeline(num_ranks=4, num_microbatches=8).problem(), 9, "span_idle") == 9


@settings(max_examples=sized(25, full=60))
@given(tiny_pipelines(least=1))
def test_on_tiny_pipelines_the_optimum_is_the_brute_forces(pipeline: Pipeline) -> None:
    problem = pipeline.problem()
    best = brute_force(problem)
    if best is not None:
        assert optimum("sat", problem) == best.makespan


@settings(max_examples=sized(25, full=60))
@given(tiny_pipelines())
def test_two_engines_agree_on_span_idle(pipeline: Pipeline) -> None:
    problem = pipeline.problem()
    if brute_force(problem) is not None:
        assert optimum("sat", problem, None, "span_idle") == optimum(
            "cpsat", problem, None, "span_idle"
        )


@pytest.mark.parametrize(
    ("problem", "best"),
    [(prefetch(), 2), (offloading(), 9), (hand_built().problem, 22), (overlapped().problem, 15)],
)
def test_transfers_and_fused_tasks(problem: Problem, best: int) -> None:
    # The values are derived in ``small`` and ``test_odd_problems``.
    assert optimum("sat", problem) == best


def test_a_store_never_falls_below_zero_though_it_has_no_capacity() -> None:
    # 1F0 frees at its end what 0OFFLOAD0 brings at its start, after the 3 ticks of 0F0.
    problem = by_hand(
        [("0F0", 3, (0,)), ("1F0", 1, (1,)), ("0OFFLOAD0", 1, (2,))],
        [("0F0", "0OFFLOAD0", 0)],
        resources=[
            Resource(name="rank 0", rank=0),
            Resource(name="rank 1", rank=1),
            RANK_AND_LINK[1],
        ],
        stores=[Store(name="host")],
        events=[("0OFFLOAD0", False, 0, 1), ("1F0", True, 0, -1)],
    )
    assert optimum("sat", problem) == 3


def test_times_are_counted_in_their_common_divisor() -> None:
    slow = Pipeline(
        num_ranks=4, num_microbatches=8, forward=2000, backward=4000, latency=1000, capacity=4
    ).problem()
    assert tick_size(slow, "makespan") == 1000
    assert tick_size(slow, "span_idle") == 1
    assert optimum("sat", slow) == 80_000
    # A limit between two multiples is met exactly if the multiple below is.
    assert outcome_of("sat", slow, 80_999).start is not None
    assert outcome_of("sat", slow, 79_999).bound == 80_000
    assert outcome_of("sat", slow, 79_999).is_refuted


def test_a_limit_that_cannot_be_met_is_refuted() -> None:
    outcome = outcome_of("sat", WIDE, 14)
    assert (outcome.start, outcome.bound, outcome.is_refuted) == (None, 15, True)


def test_a_problem_of_too_many_ticks_is_given_up() -> None:
    # Durations without a common divisor: 2**40 ticks a task.
    fine = Pipeline(
        num_ranks=2, num_microbatches=4, forward=(1 << 40) + 1, backward=1 << 41, latency=3
    ).problem()
    outcome = outcome_of("sat", fine)
    assert (outcome.start, outcome.bound, outcome.is_refuted) == (None, None, False)


@pytest.mark.parametrize("is_stopped", [True, False])
def test_the_budget_is_kept(is_stopped: bool) -> None:
    """A problem that takes minutes ends after the deadline, or after ``stop``."""
    encoding = Encoding(HARD, lower_bounds(HARD), limit=837)
    stop = threading.Event()
    limit = time.perf_counter() + (FOREVER if is_stopped else 1)
    budget = Budget(deadline=limit, stop=stop)
    timer = threading.Timer(1, stop.set)
    if is_stopped:
        timer.start()
    outcome = ended(lambda: engine("sat")(encoding, None, budget))
    timer.cancel()
    assert not outcome.is_refuted


@pytest.mark.parametrize(
    ("problem", "limit", "least", "most"), [(WIDE, 14, 0.0, 0.01), (HARD, 837, 0.9, 1.1)]
)
def test_work_is_what_was_done(problem: Problem, limit: int, least: float, most: float) -> None:
    """What propagation refutes takes next to none; what takes minutes ends where it is limited."""
    budget = Budget(deadline=in_time(), work=1.0, threads=1)
    engine("sat")(Encoding(problem, lower_bounds(problem), limit=limit), None, budget)
    assert least < budget.meter.units < most
