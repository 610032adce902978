"""Index order within groups: no optimum is lost, in stores that groups share neither.

The lemma is held against an exhaustive walk that knows no microbatches, with its edges and without.
What a careless grouping would lose is in ``test_hypotheses``, case by case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from bubbleproof.solvers import ProofOrigin, SolveOptions, Status, solve
from bubbleproof.theory.model.problem import Edges, Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.certificates.index_order import index_order
from proofs_tests.patience import PATIENCE
from proofs_tests.sized import sized
from proofs_tests.solvers import random_optima
from proofs_tests.solvers.differences import with_edges
from proofs_tests.solvers.exhaustive import Exhaustive
from proofs_tests.solvers.plain_model import optimum
from proofs_tests.solvers.random_groups import random_groups

NUMBERS = sized(range(8), full=range(3000))


def ordered(problem: Problem) -> Problem:
    order = index_order(problem)
    return with_edges(problem, order.order_edges, order.memory_edges)


def test_the_edges_within_groups_change_no_optimum() -> None:
    wrong = [
        number
        for number in NUMBERS
        for problem in [random_groups(Random(number))]
        if Exhaustive(problem).optimum() != Exhaustive(ordered(problem)).optimum()
    ]
    assert wrong == []


def test_those_problems_have_groups_of_all_kinds() -> None:
    orders = [index_order(random_groups(Random(number))) for number in range(80)]
    sizes = [sorted(group.shape[1] for group in order.groups) for order in orders]
    assert sum(max(of) > 1 for of in sizes) > 40
    assert sum(len(of) > 1 and of[-2] > 1 for of in sizes) > 10  # two groups of several
    assert sum(len(order.memory_edges) > 0 for order in orders) > 20


def test_one_group_for_all_would_lose_optima() -> None:
    """The control of the first test: all tasks of a name in the order of their microbatches."""

    def careless(problem: Problem) -> Problem:
        by_name: dict[tuple[int, ...], list[int]] = {}
        actions = problem.actions
        for task in np.argsort(actions.microbatch, kind="stable").tolist():
            by_name.setdefault((actions.kind[task], actions.stage[task]), []).append(task)
        pairs = [pair for row in by_name.values() for pair in pairwise(row)]
        before, after = (np.array([pair[side] for pair in pairs], dtype=int) for side in (0, 1))
        return with_edges(problem, Edges(before=before, after=after, lag=np.zeros_like(before)))

    problems = [random_groups(Random(number)) for number in range(sized(16, full=40))]
    lost = [Exhaustive(p).optimum() != Exhaustive(careless(p)).optimum() for p in problems]
    assert sum(lost) > sized(1, full=5)


def test_what_is_solved_with_groups_is_right() -> None:
    counts = random_optima.sweep(sized(5, full=len(NUMBERS)), make=random_groups)
    assert counts.wrong == []
    assert counts.optimal > counts.problems / 2


def sizes(problem: Problem) -> list[int]:
    return [group.shape[1] for group in index_order(problem).groups]


BOTH_WAYS = Pipeline(num_ranks=2, num_microbatches=4, placement="bidirectional", capacity=2)


@pytest.mark.parametrize("capacity", [1, 2, 3, None])
@pytest.mark.parametrize("m", [2, 3, 4])
def test_each_direction_is_a_group(capacity: int | None, m: int) -> None:
    problem = BOTH_WAYS.with_changes(num_microbatches=m, capacity=capacity).problem()
    assert sizes(problem) == [(m + 1) // 2, m // 2]
    # A second route that knows no order at all.
    expected = optimum(problem, "makespan", PATIENCE)
    assert expected == optimum(ordered(problem), "makespan", PATIENCE)
    result = solve(problem, SolveOptions(threads=1))
    if expected is None:
        assert result.status is Status.INFEASIBLE
    else:
        assert (result.status, result.makespan) == (Status.OPTIMAL, expected)
        assert result.proof is ProofOrigin.CERTIFICATE


def test_both_directions_together_fill_a_rank() -> None:
    # Four microbatches, room for one: those of the other direction fill the rank as well, which no
    # edge says: the edges of each direction alone leave one of each in flight.
    problem = BOTH_WAYS.with_changes(capacity=1).problem()
    order = index_order(problem)
    pairs = {
        (problem.label(a), problem.label(b))
        for a, b in zip(
            order.memory_edges.before.tolist(), order.memory_edges.after.tolist(), strict=True
        )
    }
    # Microbatches 0 and 1 go down, 2 and 3 up; each waits for the one before it, on both stages.
    assert pairs == {(f"{g}B{j}", f"{g}F{j + 1}") for g in (0, 1) for j in (0, 2)}
    held = optimum(problem, "makespan")
    free = optimum(ordered(problem).with_capacity(None), "makespan")
    assert held is not None
    assert free is not None
    assert free < held


def test_lengths_are_groups() -> None:
    problem = with_lengths(Pipeline(num_ranks=2, num_microbatches=5).problem(), (1, 3, 1, 3, 2))
    assert [group[0].tolist() for group in index_order(problem).groups] == [
        [problem.task("0F0"), problem.task("0F2")],
        [problem.task("0F1"), problem.task("0F3")],
        [problem.task("0F4")],
    ]
    assert len(index_order(problem).order_edges) == 2 * 4


def with_lengths(problem: Problem, lengths: Sequence[int]) -> Problem:
    """Ticks of each microbatch times its length."""
    of_task = np.array(lengths)[problem.actions.microbatch]
    return replace(problem, duration=problem.duration * of_task)
