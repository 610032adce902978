"""Shorter periods from a schedule that repeats: what they hold, and that the checker agrees."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from operator import mul

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.engines.cpsat_turns import search
from bubbleproof.solvers.engines.cycle import PRICE, price, turns_of
from bubbleproof.solvers.engines.engine import Budget
from bubbleproof.solvers.identical import IdenticalClasses, identical
from bubbleproof.solvers.lists.modulo import Nearing, cycle_of, repeated, shorter_schedules
from bubbleproof.solvers.lists.modulo_lists import ModuloLists, Turn
from bubbleproof.solvers.memory_rules import FINE, Lifetime, LimitedStore
from bubbleproof.solvers.starts import schedule_of_starts
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify import check
from proofs_tests.judged import accepted
from proofs_tests.patience import PATIENCE

WAVE = Pipeline(
    num_ranks=3,
    num_microbatches=18,
    num_chunks=2,
    placement="wave",
    forward=2,
    backward=4,
    latency=1,
    capacity=5,
)
SPLIT = Pipeline(
    num_ranks=3,
    num_microbatches=18,
    num_chunks=2,
    placement="wave",
    split_backward=True,
    capacity=5,
)


def alike_of(problem: Problem) -> IdenticalClasses:
    found = identical(lower_bounds(problem).order)
    assert found is not None
    return found


def budget_of(work: float) -> Budget:
    return Budget(deadline=time.perf_counter() + PATIENCE, threads=1, work=work)


def longest(problem: Problem) -> Turn:
    """The poorest schedule that repeats."""
    return max(ModuloLists(problem).turns(), key=lambda turn: turn.period)


def test_periods_are_shorter_than_the_one_they_begin_from() -> None:
    problem = WAVE.problem()
    turn = longest(problem)
    # One rank's work is 2 (2 + 4) = 12 ticks a microbatch; the first microbatch takes a while.
    least = 18 * 12
    found = [*shorter_schedules(problem, alike_of(problem), turn, budget_of(1.0))]
    assert found
    spans = []
    for schedule in found:
        verdict = check(problem, schedule)
        assert verdict.ok
        assert verdict.measured is not None
        spans.append(verdict.measured.makespan)
    assert spans == sorted(spans, reverse=True)
    assert least < spans[-1] < 18 * turn.rate


@pytest.mark.parametrize("pipeline", [WAVE, SPLIT])
def test_turns_say_what_is_held(pipeline: Pipeline) -> None:
    problem = pipeline.problem()
    lists = ModuloLists(problem)
    turn = next(iter(lists.turns()))
    cycle = cycle_of(problem, alike_of(problem), 1)
    assert cycle is not None
    ticks = int(turn.rate) + 1
    turns = turns_of(cycle, turn.starts, turn.period)
    begun = turn.starts * ticks // turn.period
    starts = search(cycle, ticks, begun, turns, budget_of(4.0), 2.0)
    assert starts is not None
    turns = turns_of(cycle, starts, ticks)
    duration = cycle.few.duration
    for (one, other), number in turns.items():
        apart = starts[other] - starts[one] + number * ticks
        assert duration[one] <= apart <= ticks - duration[other]

    def against(task: int, other: int) -> int:
        if task == other:
            return 1
        return turns[task, other] if (task, other) in turns else 1 - turns[other, task]

    excess, total = 0, 0
    for held in cycle.held:
        loads = []
        for task in {life.first for life in held.lifetimes}:
            # Counted copy by copy: those that have begun when the task starts, and not yet ended.
            load = 0
            for life in held.lifetimes:
                end = starts[life.last] + duration[life.last]
                for turn_number in range(-99, 100):
                    begin = starts[life.first] + turn_number * ticks
                    is_kept = begin <= starts[task] < end + turn_number * ticks
                    load += life.amount * int(is_kept)
            told = sum(
                life.amount * (against(task, life.first) - against(task, life.last))
                for life in held.lifetimes
            )
            assert told == load
            loads.append(load)
        stays = sum(
            life.amount * int(starts[life.last] + duration[life.last] - starts[life.first])
            for life in held.lifetimes
        )
        worst = max(0, max(loads) - held.room)
        excess += worst
        total += stays + PRICE * (worst * ticks + max(0, stays - held.room * ticks))
    assert price(cycle, starts, ticks) == (excess, total)


def test_what_is_found_where_nothing_is_held_too_much_is_a_schedule() -> None:
    problem = SPLIT.problem()
    alike = alike_of(problem)
    cycle = cycle_of(problem, alike, 1)
    assert cycle is not None
    turn = next(iter(ModuloLists(problem).turns()))
    ticks = int(turn.rate) + 1
    begun = turn.starts * ticks // turn.period
    with ThreadPoolExecutor(1) as pool:
        nearing = Nearing(cycle, budget_of(6.0), pool)
        assert nearing.is_meant
        starts = nearing.starts(ticks, begun, turns_of(cycle, turn.starts, turn.period))
    assert starts is not None
    assert price(cycle, starts, ticks)[0] == 0
    full = repeated(starts, cycle, alike, ticks)
    assert check(problem, schedule_of_starts(problem, full)).ok


def test_a_period_below_a_ranks_work_is_not_found() -> None:
    problem = SPLIT.problem()
    cycle = cycle_of(problem, alike_of(problem), 1)
    assert cycle is not None
    turn = next(iter(ModuloLists(problem).turns()))
    work = 6  # ticks: F, I and W of two chunks
    turns = turns_of(cycle, turn.starts, turn.period)
    begun = turn.starts * (work - 1) // turn.period
    assert search(cycle, work - 1, begun, turns, budget_of(2.0), 1.0) is None


def test_stores_that_several_resources_use_are_left_alone() -> None:
    problem = SPLIT.problem()
    cycle = cycle_of(problem, alike_of(problem), 1)
    assert cycle is not None
    first, second = cycle.held[:2]
    both = replace(first, lifetimes=(*first.lifetimes, *second.lifetimes))
    with ThreadPoolExecutor(1) as pool:
        assert not Nearing(replace(cycle, held=[both]), budget_of(1.0), pool).is_meant


def test_the_same_work_finds_the_same() -> None:
    problem = WAVE.problem()
    alike, turn = alike_of(problem), longest(problem)
    runs = [
        [s.start for s in shorter_schedules(problem, alike, turn, budget_of(0.2))] for _ in range(2)
    ]
    assert len(runs[0]) == len(runs[1])
    for one, other in zip(*runs, strict=True):
        assert np.array_equal(one, other)


def spans_of(pipeline: Pipeline) -> list[int]:
    """The makespans of what is found from the poorest schedule on."""
    problem = pipeline.problem()
    found = shorter_schedules(problem, alike_of(problem), longest(problem), budget_of(0.3))
    return [accepted(problem, schedule).makespan for schedule in found]


def test_memory_in_bytes_is_no_other_search() -> None:
    in_bytes = WAVE.with_changes(activation=1 << 40, capacity=5 << 40)
    assert spans_of(in_bytes) == spans_of(WAVE) != []


@pytest.mark.parametrize(
    "changes",
    [
        {"activation": 10**9 + 7, "capacity": 5 * 10**9 + 40},
        {"forward": 2 << 30, "backward": 4 << 30, "latency": 1 << 30},
        {"forward": 2 << 48, "backward": 4 << 48, "latency": 1 << 48},  # beyond CP-SAT
        {"capacity": 1 << 70},
        {"forward": 0, "backward": 0},
        {"forward": 0, "backward": 0, "latency": 0},
    ],
)
def test_numbers_at_the_edges_are_searched_or_left_alone(changes: dict[str, int]) -> None:
    pipeline = WAVE.with_changes(**changes)
    least = lower_bounds(pipeline.problem()).best.bound
    assert all(span >= least for span in spans_of(pipeline))


@given(
    st.lists(st.integers(0, 1 << 44), min_size=1, max_size=4),
    st.integers(0, 1 << 46),
    st.integers(1, 9),
    st.data(),
)
def test_what_fits_in_coarse_units_fits(
    amounts: list[int], room: int, times: int, data: st.DataObject
) -> None:
    lifetimes = tuple(Lifetime(first=0, last=1, amount=amount) for amount in amounts)
    store = LimitedStore(store=0, room=room, lifetimes=lifetimes)
    coarse = store.coarse(times)
    assert max(life.amount for life in coarse.lifetimes) <= FINE
    often = [data.draw(st.integers(0, times)) for _ in amounts]
    held = [life.amount for life in coarse.lifetimes]
    if sum(map(mul, often, held)) <= coarse.room:
        assert sum(map(mul, often, amounts)) <= room
    common = LimitedStore(
        store=0,
        room=room << 50,
        lifetimes=tuple(replace(h, amount=(h.amount % 9) << 50) for h in lifetimes),
    )
    small = replace(
        common,
        room=room,
        lifetimes=tuple(replace(h, amount=h.amount >> 50) for h in common.lifetimes),
    )
    is_fit = sum(map(mul, often, (h.amount for h in small.lifetimes))) <= room
    told = common.coarse(times)
    assert is_fit == (sum(map(mul, often, (h.amount for h in told.lifetimes))) <= told.room)
