"""The CP-SAT model, family by family: each is needed, and together they suffice."""

from __future__ import annotations

import pytest

from bubbleproof.solvers.engines.cpsat import CpSatModel
from bubbleproof.theory.model.problem import Problem, Resource, Store
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify import Rule, check
from proofs_tests.judged import accepted
from proofs_tests.solvers import engine_case
from proofs_tests.solvers.brute_force import brute_force
from proofs_tests.solvers.small import (
    IN_PARTS,
    MIXED,
    RANK_AND_LINK,
    TWO_CHUNKS,
    WIDE,
    by_hand,
    prefetch,
    split,
)


def engine(problem: Problem, limit: int | None = None) -> tuple[Schedule | None, int | None, bool]:
    """The engine alone: its schedule, its bound, and whether it claims infeasibility."""
    outcome = engine_case.outcome_of("cpsat", problem, limit)
    return engine_case.schedule_of(problem, outcome), outcome.bound, outcome.is_refuted


def optimum(problem: Problem, limit: int | None = None) -> int:
    """The engine's makespan, which its own bound meets and the checker confirms."""
    return engine_case.optimum("cpsat", problem, limit)


def broken_without(
    method: str, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> tuple[Rule, ...]:
    """The rules that the engine's schedule breaks when one family is left out."""
    optimum(problem)
    monkeypatch.setattr(CpSatModel, method, lambda _: None)
    schedule, _, _ = engine(problem)
    assert schedule is not None
    return check(problem, schedule).broken


def test_dependencies_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    # Held within their heads and tails, stages still start before their own inputs.
    late = Pipeline(num_ranks=2, num_microbatches=4, forward=2, backward=4, latency=3).problem()
    assert Rule.DEPENDENCIES in broken_without("add_dependencies", late, monkeypatch)


def test_exclusion_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert broken_without("add_exclusion", WIDE, monkeypatch) == (Rule.EXCLUSIVE,)


@pytest.mark.parametrize(
    "problem", [TWO_CHUNKS, IN_PARTS, MIXED], ids=["two chunks", "in parts", "mixed"]
)
def test_memory_is_needed(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    # A cumulative over held intervals, a reservoir with index order, and one without.
    assert broken_without("add_memory", problem, monkeypatch) == (Rule.MEMORY,)


def test_the_horizon_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    # No schedule is shorter than 80, one-machine bounds end at 78: with nothing to tie the makespan
    # to the ends of tasks, the engine believes in 78.
    late = Pipeline(
        num_ranks=4, num_microbatches=8, forward=2, backward=4, latency=1, capacity=4
    ).problem()
    assert optimum(late) == 80
    monkeypatch.setattr(CpSatModel, "add_horizon", lambda _: None)
    schedule, bound, _ = engine(late)
    assert bound == 78
    assert schedule is not None
    measured = accepted(late, schedule)
    assert measured.makespan >= 80


def test_exact_stores_need_no_constraint_but_their_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Pipeline(num_ranks=2, num_microbatches=4, capacity=1).problem()
    monkeypatch.setattr(CpSatModel, "add_memory", lambda _: None)
    # One at a time: 4 * (1 + 1 + 2 + 2).
    assert optimum(problem) == 24


def test_families_together_suffice_on_each_kind_of_memory() -> None:
    small = [
        Pipeline(num_ranks=1, num_microbatches=2, num_chunks=2, capacity=2),
        split(2, 2, 3, (1, 2, 3), part=True),
        Pipeline(
            num_ranks=1,
            num_microbatches=3,
            split_backward=((True, False, True),),
            capacity=1,
            weight_backward=3,
        ),
    ]
    for pipeline in small:
        best = brute_force(pipeline.problem())
        assert best is not None
        assert optimum(pipeline.problem()) == best.makespan


@pytest.mark.parametrize("limit", [15, None])
def test_a_limit_that_can_be_met_changes_nothing(limit: int | None) -> None:
    assert optimum(WIDE, limit) == 15


def test_a_limit_that_cannot_be_met_is_refuted_and_gives_a_bound() -> None:
    assert engine(WIDE, 14) == (None, 15, True)


def test_a_limit_on_computation_leaves_room_for_transfers() -> None:
    # 0B0 cannot start before 5, yet computation takes 2 ticks: starts are not held below 2.
    assert optimum(prefetch(), 2) == 2
    assert engine(prefetch(), 1) == (None, 2, True)


def test_a_store_never_falls_below_zero_though_it_has_no_capacity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
    # 1F0 ends with the off-load's start, at 3.
    assert optimum(problem) == 3
    assert broken_without("add_memory", problem, monkeypatch) == (Rule.MEMORY,)
