"""Demands, explanations and repairs, each against exhaustive search where that is possible."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise, permutations, product
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubbleproof.solvers import SolveOptions, Status, solve
from bubbleproof.solvers.demands import Demands, forbidden, orders_of, starts_until
from bubbleproof.solvers.explain import Limit, Order, StoreUse, explain, quickxplain
from bubbleproof.solvers.repair_search import repair
from bubbleproof.solvers.starts import starts_by_task
from bubbleproof.theory.families import family
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import UntimedProgram, left_shift
from bubbleproof.verify import check
from proofs_tests.sized import sized
from proofs_tests.solvers.brute_force import brute_force
from proofs_tests.solvers.small import tiny_pipelines

ONE = SolveOptions(threads=1)
PAIR = Pipeline(num_ranks=2, num_microbatches=3)


def order(problem: Problem, *texts: str) -> Demands:
    return Demands(
        orders=tuple(
            (problem.task(a), problem.task(b))
            for a, _, b in (text.partition("<") for text in texts)
        )
    )


@settings(max_examples=sized(12, full=30))
@given(tiny_pipelines(least=1), st.data())
def test_demanded_orders_equal_exhaustive_search(pipeline: Pipeline, data: st.DataObject) -> None:
    problem = pipeline.problem()
    tasks = st.integers(0, problem.num_tasks - 1)
    pairs = data.draw(st.lists(st.tuples(tasks, tasks), max_size=2))
    demands = Demands(orders=tuple((a, b) for a, b in pairs if a != b))
    asked = demands.demanding(problem)
    result = solve(problem, ONE, demands=demands)
    if result.status is Status.UNKNOWN:
        assert "takes no time" in result.reason
        return
    if "cycle" in result.reason:
        assert result.status is Status.INFEASIBLE
        return
    best = brute_force(asked)
    assert (result.makespan, result.status) == (
        (best.makespan, Status.OPTIMAL) if best else (None, Status.INFEASIBLE)
    )


def test_starts_are_kept_to_the_tick_and_the_rest_is_completed() -> None:
    problem = Pipeline(num_ranks=3, num_microbatches=4).problem()
    gpipe = family("gpipe").schedule(Pipeline(num_ranks=3, num_microbatches=4))
    demands = starts_until(problem, gpipe, 4)
    labels = {problem.label(task) for task, _ in demands.starts}
    assert labels == {"0F0", "0F1", "0F2", "0F3", "1F0", "1F1", "1F2", "2F0", "2F1"}
    result = solve(problem, ONE, demands=demands)
    assert result.schedule is not None
    assert check(problem, result.schedule).ok
    start = starts_by_task(problem, result.schedule)
    kept = np.array([task for task, _ in demands.starts])
    assert (start[kept] == np.array([at for _, at in demands.starts])).all()
    # All forwards of rank 0 are first: no better than GPipe, (m + p - 1)(tF + tB) = 18.
    assert (result.status, result.makespan) == (Status.OPTIMAL, 18)


def test_starts_that_leave_gaps_are_kept_although_shorter_schedules_exist() -> None:
    problem = PAIR.problem()
    late = Demands(starts=((problem.task("0F0"), 0), (problem.task("1F0"), 7)))
    result = solve(problem, ONE, demands=late)
    assert result.schedule is not None
    start = starts_by_task(problem, result.schedule)
    assert start[problem.task("1F0")] - start[problem.task("0F0")] == 7
    # 0F0 at 0 puts 1F0 at 7 and the end of 0B0 at 12. Rank 1 can do F and B of the other two
    # microbatches (6 ticks) before 7 only if one of their forwards precedes 0F0: 12 + 1. Else some
    # of it comes after 8, and a B of rank 0 after that: 8 + 2 + 2 + 2 = 14.
    assert (result.makespan, result.status) == (13, Status.OPTIMAL)
    mixed = Demands(starts=((problem.task("0F0"), 5), (problem.task("1F0"), 5)))
    assert solve(problem, ONE, demands=mixed).status is Status.INFEASIBLE


def test_the_order_of_one_rank_can_be_kept() -> None:
    problem = PAIR.problem()
    gpipe = family("gpipe").schedule(PAIR)
    result = solve(problem, ONE, demands=orders_of(problem, gpipe, [0]))
    assert result.schedule is not None
    ours, theirs = (
        [s.program.actions.label(int(r)) for r in np.flatnonzero(s.program.resource == 0)]
        for s in (result.schedule, gpipe)
    )
    assert ours == theirs


def test_forbidding_turns_an_order_around_on_one_resource_alone() -> None:
    problem = PAIR.problem()
    first, second = problem.task("0B0"), problem.task("0F1")
    assert forbidden(problem, first, second) == (second, first)
    with pytest.raises(ValueError, match="0F0 and 1F0 share none"):
        forbidden(problem, problem.task("0F0"), problem.task("1F0"))


@given(st.sets(st.integers(0, 9), max_size=9), st.data())
def test_quickxplain_finds_a_part_that_no_element_can_leave(
    bad: set[int], data: st.DataObject
) -> None:
    # A family of sets that exclude: those that hold one of a few hidden cores.
    cores = [bad, *data.draw(st.lists(st.sets(st.integers(0, 9), min_size=1), max_size=2))]

    def excludes(chosen: Sequence[int]) -> bool:
        return any(core <= set(chosen) for core in cores)

    found = quickxplain(excludes, list(range(10)))
    assert excludes(found)
    assert not any(excludes([x for x in found if x != left]) for left in found)


def test_a_cap_that_two_chunks_overrun_is_explained_by_two_holds() -> None:
    # One rank, two chunks: 0F0 and 1F0 are held at once whatever the order.
    problem = Pipeline(num_ranks=1, num_microbatches=3, num_chunks=2, capacity=1).problem()
    reason = explain(problem, ONE)
    assert reason is not None
    assert reason.is_irreducible
    held = [cause for cause in reason.causes if isinstance(cause, StoreUse)]
    assert len(held) == len(reason.causes) == 2
    labels = [{problem.label(task) for task in cause.tasks} for cause in held]
    number = min(labels[0])[-1]
    assert labels == [{f"0F{number}", f"0B{number}"}, {f"1F{number}", f"1B{number}"}]


def test_a_makespan_out_of_reach_is_explained_by_the_holds_and_orders_behind_it() -> None:
    pipeline = Pipeline(num_ranks=2, num_microbatches=3, capacity=1)
    problem = pipeline.problem()
    demands = order(problem, "0F0<0F1", "0F1<0F2")
    # Room for one: 18. Without any memory: 12.
    reason = explain(problem, SolveOptions(threads=1, within=13), demands)
    assert reason is not None
    kinds = {type(cause) for cause in reason.causes}
    assert Limit in kinds
    assert StoreUse in kinds
    assert explain(problem, SolveOptions(threads=1, within=18), demands) is None


def test_contradicting_orders_are_explained_without_the_others() -> None:
    problem = PAIR.problem()
    demands = order(problem, "0F0<0F1", "0F1<0F2", "0F2<0F0", "1F0<1F1")
    assert solve(problem, ONE, demands=demands).status is Status.INFEASIBLE
    reason = explain(problem, ONE, demands)
    assert reason is not None
    assert reason.causes == tuple(
        Order(problem.task(a), problem.task(b))
        for a, b in (("0F0", "0F1"), ("0F1", "0F2"), ("0F2", "0F0"))
    )


def kept_places(old: Sequence[str], new: Sequence[str]) -> int:
    """The most rows of ``old`` (repeated ones too) that stand in this order in ``new``."""
    place = {text: i for i, text in enumerate(new)}
    for size in range(len(old), -1, -1):
        for part in combinations(old, size):
            places = [place[text] for text in part]
            if places == sorted(set(places)):
                return size
    return 0


def best_repair(problem: Problem, given: Sequence[Sequence[str]]) -> tuple[int, int]:
    """(fewest moves, least makespan of so few) by trying all orders of both ranks' tasks.

    The given rows are tasks of their rank. What stands there and does not keep its place is one
    move, a repeated row or not, and so is a task that does not stand there.
    """
    found = []
    homes = [np.flatnonzero(problem.rank_of_task == rank) for rank in range(2)]
    for orders in product(*(permutations(home.tolist()) for home in homes)):
        task = np.array([*orders[0], *orders[1]])
        candidate = Program(actions=problem.actions.take(task), resource=problem.rank_of_task[task])
        try:
            schedule = left_shift(problem, candidate)
        except UntimedProgram:
            continue
        verdict = check(problem, schedule)
        if verdict.ok and verdict.measured is not None:
            moves = 0
            for old, order in zip(given, orders, strict=True):
                new = [problem.label(task) for task in order]
                moves += len(old) - kept_places(old, new) + len(set(new) - set(old))
            found.append((moves, verdict.measured.makespan))
    return min(found)


def table(problem: Problem, rows: Sequence[Sequence[str]]) -> Program:
    """The program whose rank r runs the tasks named in ``rows[r]``."""
    task = np.array([problem.task(text) for row in rows for text in row])
    homes = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    return Program(actions=problem.actions.take(task), resource=homes)


@settings(max_examples=sized(4, full=10), deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from([None, 1, 2]), st.booleans())
def test_repairs_are_the_shortest_of_the_fewest_moves(
    random: Random, cap: int | None, is_doubled: bool
) -> None:
    problem = Pipeline(num_ranks=2, num_microbatches=2, capacity=cap).problem()
    rows = [[f"{g}{kind}{j}" for kind in "FB" for j in range(2)] for g in range(2)]
    for row in rows:
        random.shuffle(row)
        if is_doubled:
            row.insert(random.randrange(len(row) + 1), random.choice(row))
    found = repair(problem, table(problem, rows), ONE)
    assert found is not None
    assert found.result.schedule is not None
    assert check(problem, found.result.schedule).ok
    assert (found.is_fewest, found.is_shortest) == (True, True)
    assert (found.num_moves, found.result.makespan) == best_repair(problem, rows)


IN_TURN = (("0F0", "0F1", "0F2", "0B0", "0B1", "0B2"), ("1F0", "1B0", "1F1", "1B1", "1F2", "1B2"))


@pytest.mark.parametrize(
    ("in_front", "cap", "moves"),
    [
        # With room for two, 0F2 has to go behind 0B0: one move. Behind 0B1 is one move as well,
        # and three ticks longer.
        ((None, None), 2, 1),
        (("0B0", None), 2, 2),  # and the doubled row is dropped
        ((None, "1B2"), None, 1),  # the copy in front is dropped, the one behind keeps its place
    ],
)
def test_of_repairs_of_equally_few_moves_the_shortest_is_given(
    in_front: tuple[str | None, str | None], cap: int | None, moves: int
) -> None:
    problem = Pipeline(num_ranks=2, num_microbatches=3, capacity=cap).problem()
    rows = [
        [*([] if first is None else [first]), *row]
        for first, row in zip(in_front, IN_TURN, strict=True)
    ]
    found = repair(problem, table(problem, rows), ONE)
    assert found is not None
    # 1F0 starts at 1, three times 1 + 2 follow on rank 1, and 0B2 of 2 ticks closes: 1 + 9 + 2.
    assert (found.num_moves, found.is_fewest, found.result.makespan) == (moves, True, 12)
    assert (found.result.status, found.result.lower_bound) == (Status.OPTIMAL, 12)


def test_a_repair_that_is_longer_than_the_best_schedule_is_not_called_optimal() -> None:
    # All of microbatch 0 before all of microbatch 1 is valid, so nothing moves: 2 x (3 + 3) ticks,
    # where two microbatches need 1 + 6 + 2.
    problem = Pipeline(num_ranks=2, num_microbatches=2).problem()
    rows = [[f"{g}{kind}{j}" for j in range(2) for kind in "FB"] for g in range(2)]
    found = repair(problem, table(problem, rows), ONE)
    assert found is not None
    assert (found.num_moves, found.is_shortest) == (0, True)
    assert (found.result.status, found.result.makespan) == (Status.FEASIBLE, 12)
    assert found.result.lower_bound == 9
    kept = [tuple(problem.label(task) for task in pair) for pair in found.kept_orders]
    assert kept == [pair for row in rows for pair in pairwise(row)]


def test_missing_and_foreign_rows_are_counted() -> None:
    problem = PAIR.problem()
    good = family("1f1b").schedule(PAIR).program
    rows = np.array([0, 0, *range(2, len(good))])  # row 0 twice, row 1 missing
    broken = Program(actions=good.actions.take(rows), resource=good.resource[rows])
    found = repair(problem, broken, ONE)
    assert found is not None
    assert (found.moved, len(found.added), found.num_dropped, found.num_moves) == ((), 1, 1, 2)
    assert found.result.makespan == 12


def test_a_valid_program_needs_no_move() -> None:
    pipeline = Pipeline(num_ranks=3, num_microbatches=4, capacity=3)
    found = repair(pipeline.problem(), family("1f1b").program(pipeline), ONE)
    assert found is not None
    assert (found.num_moves, found.is_fewest) == (0, True)
    assert found.result.makespan == 18
