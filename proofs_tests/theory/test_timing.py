"""Left-shifting against a naive fixpoint; deadlocks shown as the cycles they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubbleproof.theory.model.actions import Action, ActionTable
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.problem import Edges, Occupancy, Problem, Resource
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import (
    Deadlock,
    UntimedProgram,
    find_cycle,
    left_shift,
    rough_times,
)
from proofs_tests.cases import hand_built
from proofs_tests.drawn_programs import ordered_pipelines, shuffled_programs
from proofs_tests.verify.plain import broken_rules, plain_measures

Ordered = tuple[Pipeline, Problem, Program]


def waits(problem: Problem, program: Program) -> list[tuple[Action, Action, int]]:
    """(before, after, ticks between their starts): precedences and neighbours in an order."""
    tasks = list(problem.actions)
    ticks = dict(zip(tasks, problem.duration.tolist(), strict=True))
    edges = problem.edges
    found = [
        (tasks[a], tasks[b], ticks[tasks[a]] + lag)
        for a, b, lag in zip(
            edges.before.tolist(), edges.after.tolist(), edges.lag.tolist(), strict=True
        )
    ]
    for order in program.orders(len(problem.resources)):
        found += [(a, b, ticks[a]) for a, b in pairwise(order)]
    return found


def naive_starts(problem: Problem, program: Program) -> dict[Action, int] | None:
    """Push starts later until nothing changes; None when that takes more rounds than tasks."""
    start = dict.fromkeys(problem.actions, 0)
    rules = waits(problem, program)
    for _ in range(len(start) + 1):
        changed = False
        for before, after, ticks in rules:
            if start[after] < start[before] + ticks:
                start[after] = start[before] + ticks
                changed = True
        if not changed:
            return start
    return None


def starts(schedule: Schedule) -> dict[Action, int]:
    return dict(zip(schedule.program.actions, schedule.start.tolist(), strict=True))


@given(ordered_pipelines())
def test_left_shift_is_the_least_fixpoint(made: Ordered) -> None:
    _, problem, program = made
    assert starts(left_shift(problem, program)) == naive_starts(problem, program)


def test_left_shift_of_tasks_on_two_resources_is_the_least_fixpoint() -> None:
    case = hand_built()
    expected = naive_starts(case.problem, case.schedule.program)
    assert starts(left_shift(case.problem, case.schedule.program)) == expected


@given(ordered_pipelines())
def test_left_shifted_schedules_are_valid_and_start_at_zero(made: Ordered) -> None:
    _, problem, program = made
    schedule = left_shift(problem, program)
    assert broken_rules(problem, schedule) == set()
    assert schedule.start.min() == 0


@given(ordered_pipelines(), st.lists(st.integers(0, 4), min_size=64, max_size=64))
def test_left_shifting_never_increases_a_start_or_the_makespan(
    made: Ordered, delays: list[int]
) -> None:
    _, problem, program = made
    # A late schedule of the same orders: the left-shifted one of a problem with longer lags.
    edges = problem.edges
    extra = np.array([delays[i % 64] for i in range(len(edges))], dtype=np.int64)
    slower = replace(problem, edges=replace(edges, lag=edges.lag + extra))
    late = left_shift(slower, program)
    shifted = left_shift(problem, late.program)
    assert (shifted.start <= late.start).all()
    assert measure(problem, shifted).makespan <= measure(problem, late).makespan
    assert (left_shift(problem, shifted.program).start == shifted.start).all()


def test_a_transfer_before_all_computations_can_make_the_left_shift_longer() -> None:
    # A load of 10 ticks before rank 1's forward, and rank 0's forward, of 1 tick each. At 0, 10 and
    # 10 they take 1 tick from the first computation on; as early as they can (0, 10, 0), 11 ticks.
    texts = ["1LOAD0", "1F0", "0F0"]
    problem = Problem(
        resources=(
            Resource(name="rank 0", rank=0),
            Resource(name="rank 1", rank=1),
            Resource(name="link 0-1"),
        ),
        actions=ActionTable.from_actions(Action.parse(text) for text in texts),
        duration=np.array([10, 1, 1]),
        occupancy=Occupancy(task=np.arange(3), resource=np.array([2, 1, 0])),
        edges=Edges(before=np.array([0]), after=np.array([1]), lag=np.array([0])),
    )
    program = Program.from_orders([["0F0"], ["1F0"], ["1LOAD0"]])
    soonest = left_shift(problem, program)
    at = {"1LOAD0": 0, "1F0": 10, "0F0": 10}
    start = np.array([at[str(action)] for action in soonest.program.actions])
    later = replace(soonest, start=start)
    assert broken_rules(problem, later) == broken_rules(problem, soonest) == set()
    assert (soonest.start <= later.start).all()
    assert measure(problem, later).makespan == 1
    assert measure(problem, soonest).makespan == 11


@given(ordered_pipelines(), st.integers(2, 5))
def test_scaled_durations_scale_all_times(made: Ordered, factor: int) -> None:
    _, problem, program = made
    edges = problem.edges
    scaled = replace(
        problem,
        duration=problem.duration * factor,
        edges=replace(edges, lag=edges.lag * factor),
    )
    small, large = left_shift(problem, program), left_shift(scaled, program)
    assert (large.start == factor * small.start).all()
    assert measure(scaled, large).idle_ratio == measure(problem, small).idle_ratio
    assert measure(scaled, large).peak_memory == measure(problem, small).peak_memory


@given(shuffled_programs())
def test_a_deadlock_is_a_real_cycle_and_found_whenever_there_is_one(
    made: tuple[Problem, Program],
) -> None:
    problem, program = made
    try:
        schedule = left_shift(problem, program)
    except Deadlock as deadlock:
        assert_is_cycle(deadlock.waiting, problem, program)
    else:
        assert starts(schedule) == naive_starts(problem, program)


def assert_is_cycle(waiting: list[str], problem: Problem, program: Program) -> None:
    """Each task of the cycle must follow the next by a precedence or in an order."""
    label = {action: problem.label(t) for t, action in enumerate(problem.actions)}
    known = {(label[before], label[after]) for before, after, _ in waits(problem, program)}
    assert waiting
    assert len(set(waiting)) == len(waiting)
    for waiter, blocker in zip(waiting, waiting[1:] + waiting[:1], strict=True):
        assert (blocker, waiter) in known


def test_a_deadlock_tells_who_waits_for_whom() -> None:
    problem = Pipeline(num_ranks=1, num_microbatches=1).problem()
    with pytest.raises(Deadlock) as caught:
        left_shift(problem, Program.from_orders([["0B0", "0F0"]]))
    assert str(caught.value) in {
        "deadlock: 0F0 waits for 0B0 waits for 0F0",
        "deadlock: 0B0 waits for 0F0 waits for 0B0",
    }


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (["0F0"], "0B0 must stand in 1 order(s), stands in 0"),
        (["0F0", "0B0", "0B0"], "0B0 must stand in 1 order(s), stands in 2"),
        (["0F0", "0B0", "0B1"], "0B1 is no task of the problem"),
    ],
)
def test_a_program_must_hold_every_task_once(order: list[str], message: str) -> None:
    problem = Pipeline(num_ranks=1, num_microbatches=1).problem()
    with pytest.raises(UntimedProgram) as caught:
        left_shift(problem, Program.from_orders([order]))
    assert str(caught.value) == message


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20))
def test_find_cycle_finds_one_exactly_when_there_is_one(pairs: list[tuple[int, int]]) -> None:
    before = np.array([a for a, _ in pairs], dtype=np.int64)
    after = np.array([b for _, b in pairs], dtype=np.int64)
    cycle = find_cycle(8, before, after)
    assert bool(cycle) == is_cyclic(set(pairs), range(8))
    for waiter, blocker in zip(cycle, cycle[1:] + cycle[:1], strict=True):
        assert (blocker, waiter) in pairs


def is_cyclic(pairs: set[tuple[int, int]], nodes: Iterable[int]) -> bool:
    """Whether some node reaches itself, by repeated composition."""
    reach = set(pairs)
    while more := {(a, d) for a, b in reach for c, d in pairs if b == c} - reach:
        reach |= more
    return any((n, n) in reach for n in nodes)


@given(ordered_pipelines(split=False), st.data())
def test_the_peak_of_an_order_does_not_depend_on_positive_durations(
    made: Ordered, data: st.DataObject
) -> None:
    """Unsplit pipelines, and no task of zero ticks: then the order alone decides the peak."""
    pipeline, _, program = made
    ticks = st.tuples(*[st.integers(1, 9)] * pipeline.num_stages)
    peaks = set()
    for _ in range(2):
        timed = pipeline.with_changes(forward=data.draw(ticks), backward=data.draw(ticks))
        problem = timed.problem()
        peaks.add(measure(problem, left_shift(problem, program)).peak_memory)
    assert len(peaks) == 1


@given(ordered_pipelines())
def test_measures_equal_the_plain_ones(made: Ordered) -> None:
    _, problem, program = made
    schedule = left_shift(problem, program)
    measured = measure(problem, schedule)
    for name, value in plain_measures(problem, schedule).items():
        assert getattr(measured, name) == value


def test_without_edges_only_the_orders_count() -> None:
    problem = replace(Pipeline(num_ranks=1, num_microbatches=1).problem(), edges=Edges())
    shifted = left_shift(problem, Program.from_orders([["0B0", "0F0"]]))
    assert shifted.start.tolist() == [0, 2]


def test_any_program_has_rough_times() -> None:
    problem = Pipeline(num_ranks=2, num_microbatches=2).problem()  # tF = 1, tB = 2

    def starts(*orders: str) -> list[int]:
        program = Program.from_orders([order.split() for order in orders])
        made: list[int] = rough_times(problem, program).start.tolist()
        return made

    right = ("0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1")
    assert starts(*right) == [0, 1, 4, 7, 1, 2, 4, 5]
    assert starts("0F0 0F1", "1F0 1F1") == [0, 1, 1, 2]
    # 7F7 is no task; 0F1 follows 0F0 without it.
    assert starts("0F0 7F7 0F1", "1F0 1F1") == [0, 0, 1, 1, 2]
    # A circle: 0F1 behind 0B0, 1F0 behind 1F1. Each row starts as many ticks in as stand before it.
    assert starts("0F0 0B0 0F1 0B1", "1F1 1B1 1F0 1B0") == [0, 1, 2, 3, 0, 1, 2, 3]
