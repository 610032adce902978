"""Deadlines: a task starts at most so many ticks after another, a precedence of negative lag."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from bubbleproof.solvers import SolveOptions, Status, solve
from bubbleproof.solvers.bound_reason import bound_reason
from bubbleproof.solvers.repair_search import repair
from bubbleproof.theory.model.problem import Edges, Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.certificates.certificate_rule import deadlines, refusal, without_deadlines
from bubbleproof.verify.certificates.one_machine import OneMachine
from bubbleproof.verify.check import check
from bubbleproof.verify.finding import Rule
from bubbleproof.verify.whole import check_whole
from proofs_tests.patience import PATIENCE
from proofs_tests.sized import sized
from proofs_tests.solvers.exhaustive import Exhaustive, TooMuchWork
from proofs_tests.solvers.random_problems import random_problem
from proofs_tests.solvers.small import by_hand

MOST_STATES = sized(3_000, full=100_000)
ENGINES = ("auto", "cpsat", "z3", "pulp")


def within(problem: Problem, *rows: tuple[int, int, int]) -> Problem:
    """The problem with rows (task, other, ticks): the other starts at most so long after it."""
    edges, ticks = problem.edges, problem.duration
    task, other, most = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    more = Edges(
        before=np.concatenate([edges.before, other]),
        after=np.concatenate([edges.after, task]),
        lag=np.concatenate([edges.lag, -most - ticks[other]]),
    )
    return replace(problem, edges=more)


def on_one_rank(ticks: int) -> Problem:
    """Two microbatches of F and B, 1 tick each, B at least 2 ticks after F's end, and a deadline.

    B0 starts at most so many ``ticks`` after F0. In F0 F1 _ B0 B1 both B start 3 ticks after F.
    """
    problem = by_hand(
        [(f"0{kind}{j}", 1, (0,)) for j in range(2) for kind in "FB"],
        [(f"0F{j}", f"0B{j}", 2) for j in range(2)],
    )
    return within(problem, (problem.task("0F0"), problem.task("0B0"), ticks))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_deadline_is_kept_or_cannot_be(engine: str) -> None:
    options = SolveOptions(engine=engine, threads=1, time_limit=PATIENCE)
    kept = solve(on_one_rank(3), options)
    assert (kept.status, kept.makespan) == (Status.OPTIMAL, 5)
    assert kept.schedule is not None
    assert check(on_one_rank(3), kept.schedule).ok
    broken = solve(on_one_rank(2), options)
    assert broken.status is Status.INFEASIBLE
    assert broken.reason == "the precedences have a cycle: 0B0 waits for 0F0 waits for 0B0"


def test_deadlines_by_hand() -> None:
    """F0, F1 and B0 take 2, 1 and 3 ticks; B0 starts 4 ticks or more after the end of F1.

    With F1 at 0 and F0 at 1, B0 starts at 5 and ends at 8. That B0 starts at most 6 ticks after F0
    changes nothing; at most 2 after F1 cannot be. Where F0 goes first, by a precedence, F1 starts
    at 2, at most 9 after F0, and B0 at 7.
    """
    problem = by_hand(
        [("0F0", 2, (0,)), ("0F1", 1, (0,)), ("0B0", 3, (0,))],
        [("0F0", "0B0", 0), ("0F1", "0B0", 4)],
    )
    first, other, last = (problem.task(text) for text in ("0F0", "0F1", "0B0"))
    assert solve(problem).makespan == 8
    assert solve(within(problem, (first, last, 6))).makespan == 8
    assert solve(within(problem, (other, last, 2))).status is Status.INFEASIBLE
    behind = by_hand(
        [("0F0", 2, (0,)), ("0F1", 1, (0,)), ("0B0", 3, (0,))],
        [("0F0", "0B0", 0), ("0F1", "0B0", 4), ("0F0", "0F1", -2)],
    )
    assert solve(within(behind, (first, other, 9))).makespan == 10


def test_a_pipeline_whose_backwards_must_follow_in_time() -> None:
    """1F1B of two ranks, F of 1 and B of 2 ticks, 4 microbatches: (m + p - 1) (1 + 2) = 15.

    B on rank 0 starts 1 + 1 + 2 = 4 ticks after F's start at the earliest. If it must be so for
    each microbatch, one after the other begins when rank 1 has ended the one before: 4 * 3 on rank
    1, between 1 and 2 ticks of rank 0, which is no longer.
    """
    problem = Pipeline(num_ranks=2, num_microbatches=4, forward=1, backward=2).problem()
    rows = [(problem.task(f"0F{j}"), problem.task(f"0B{j}"), 4) for j in range(4)]
    plain, kept = solve(problem), solve(within(problem, *rows))
    assert (plain.makespan, kept.makespan) == (15, 15)
    assert kept.schedule is not None
    assert check(within(problem, *rows), kept.schedule).ok
    assert kept.certificate is not None
    assert refusal(within(problem, *rows), kept.certificate) is None


def test_certificates_do_without_deadlines_where_there_is_a_circle() -> None:
    problem = on_one_rank(3)
    assert deadlines(problem).tolist() == [False, False, True]
    assert without_deadlines(problem).edges.lag.tolist() == [2, 2]
    every = OneMachine(resource=0, tasks=(0, 1, 2, 3), bound=4)
    assert refusal(problem, every) is None
    assert refusal(problem, replace(every, bound=5)) is not None
    # Without a circle each precedence counts, whatever its lag: B0 ends 6 ticks after F1's start.
    waits = by_hand(
        [("0F1", 5, (0,)), ("0B0", 2, (1,))],
        [("0F1", "0B0", -5)],
        resources=Pipeline(num_ranks=2, num_microbatches=1).problem().resources[:2],
    )
    assert not deadlines(waits).any()
    assert without_deadlines(waits) is waits


def test_a_circle_that_takes_time_is_left() -> None:
    """F0 -> B0 -> F0, with 1 tick each and no lag: neither is a deadline."""
    problem = by_hand([("0F0", 1, (0,)), ("0B0", 1, (0,))], [("0F0", "0B0", 0), ("0B0", "0F0", 0)])
    assert not deadlines(problem).any()
    found = refusal(problem, OneMachine(resource=0, tasks=(0,), bound=1))
    assert found == "the problem's precedences have a cycle"


def with_random_deadlines(count: int) -> Iterator[tuple[int, Problem]]:
    """Random problems, with deadlines for one microbatch or for all that have the precedence."""
    for seed in range(count):
        rng = Random(seed)
        problem = random_problem(rng)
        edges, microbatch = problem.edges, problem.actions.microbatch
        if not len(edges):
            continue
        row = rng.randrange(len(edges))
        kind = problem.actions.kind, problem.actions.stage
        rows = [
            other
            for other in range(len(edges))
            if all(
                column[ends[other]] == column[ends[row]]
                for ends in (edges.before, edges.after)
                for column in kind
            )
        ]
        if rng.random() < 0.5:
            rows = [other for other in rows if microbatch[edges.before[other]] == 0]
        slack = rng.choice((0, 0, 1, 2))
        late = [
            (
                int(edges.before[other]),
                int(edges.after[other]),
                max(0, int(problem.duration[edges.before[other]] + edges.lag[other])) + slack,
            )
            for other in rows
        ]
        yield seed, within(problem, *late)


@pytest.mark.sweep
def test_random_deadlines_equal_exhaustive_search() -> None:
    """Optima, and what cannot be; bounds and certificates of the problem as it was given."""
    solved = infeasible = longer = 0
    for seed, problem in with_random_deadlines(sized(8, full=600)):
        try:
            optimum = Exhaustive(problem, MOST_STATES).optimum()
            free = Exhaustive(without_deadlines(problem), MOST_STATES).optimum()
        except TooMuchWork:
            continue
        result = solve(problem, SolveOptions(threads=1, time_limit=PATIENCE))
        assert result.makespan == optimum, seed
        assert result.status is (Status.INFEASIBLE if optimum is None else Status.OPTIMAL), seed
        if optimum is None:
            infeasible += 1
            continue
        assert result.schedule is not None
        assert check(problem, result.schedule).ok, seed
        assert result.lower_bound <= optimum
        if result.certificate is not None:
            assert refusal(problem, result.certificate) is None, seed
        solved += 1
        longer += free is not None and free < optimum
    assert min(solved, infeasible, longer) > 0, (solved, infeasible, longer)


def test_the_walk_lets_what_takes_no_time_wait_for_its_rank() -> None:
    """B may start a tick before the end of F by its lag, and has to wait for the rank."""
    problem = by_hand([("0F0", 3, (0,)), ("0B0", 0, (0,))], [("0F0", "0B0", -1)])
    assert Exhaustive(problem).optimum() == 3


def test_the_whole_of_a_schedule_with_a_deadline_holds() -> None:
    """No program waits for a deadline, so rule 6 knows of none; rule 3 does."""
    kept = solve(on_one_rank(3)).schedule
    assert kept is not None
    assert check_whole(on_one_rank(3), kept).ok
    assert [each.rule for each in check_whole(on_one_rank(2), kept).violations] == [
        Rule.DEPENDENCIES
    ]
    assert bound_reason(on_one_rank(3)).startswith("No schedule is below 5 ticks")


def test_a_repair_keeps_a_deadline() -> None:
    """B0 F0 F1 B1, where B0 has to come 3 ticks after F0: it moves to F0 F1 _ B0 B1, 5 ticks."""
    problem = on_one_rank(3)
    order = [problem.task(text) for text in ("0B0", "0F0", "0F1", "0B1")]
    rows = problem.actions.take(np.array(order))
    given = Program(actions=rows, resource=np.zeros(4, dtype=np.int64))
    found = repair(problem, given)
    assert found is not None
    assert found.result.schedule is not None
    assert check(problem, found.result.schedule).ok
    assert (found.result.makespan, found.num_moves) == (5, 1)
    with pytest.raises(ValueError, match="the precedences have a cycle"):
        repair(by_hand([("0F0", 1, (0,))], [("0F0", "0F0", 0)]), given)
