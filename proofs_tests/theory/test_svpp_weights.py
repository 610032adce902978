"""SVPP with W apart: W fills the waits, within the same memory."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from bubbleproof.theory.families import member
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.measures import Measures, measure
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift
from proofs_tests.sized import sized

SHAPES = [(p, m, v, s) for p, m, v, s in product((1, 2, 3, 4), (1, 2, 4, 7), (1, 2), (1, 2, 4))]


def waits_with_a_weight_at_hand(problem: Problem, schedule: Schedule) -> int:
    """Ticks in which a rank runs nothing although a W could run. Precondition: unit ticks."""
    start = np.empty(problem.num_tasks, dtype=np.int64)
    start[problem.locate(schedule.program.actions)] = schedule.start
    rank, edges = problem.rank_of_task, problem.edges
    is_weight = problem.actions.kind[edges.after] == Kind.W
    busy = set(zip(rank.tolist(), start.tolist(), strict=True))
    return sum(
        (int(rank[weight]), tick) not in busy
        for gradient, weight in zip(edges.before[is_weight], edges.after[is_weight], strict=True)
        for tick in range(int(start[gradient]) + 1, int(start[weight]))
    )


def test_no_rank_waits_while_it_has_a_weight_gradient_to_compute() -> None:
    for p, m, v, s in SHAPES:
        made = member("svpp-w", p=p, m=m, v=v, s=s)
        assert waits_with_a_weight_at_hand(made.problem, made.schedule) == 0


def test_the_search_for_such_waits_finds_them() -> None:
    # Rank 1: 1F0 at 1, 1I0 at 2, 1W0 at 3, 1F1 at 4, 1I1 at 5. Rank 0: 0I0 at 3, 0I1 at 6 and
    # nothing at 4 and 5, although 0W0 could run.
    problem = Pipeline(num_ranks=2, num_microbatches=2, split_backward=True).problem()
    orders = ["0F0 0F1 0I0 0I1 0W0 0W1", "1F0 1I0 1W0 1F1 1I1 1W1"]
    schedule = left_shift(problem, Program.from_orders([order.split() for order in orders]))
    assert waits_with_a_weight_at_hand(problem, schedule) == 2


def test_weights_fill_the_waits_of_whole_backwards() -> None:
    # tB = 2 = tI + tW and the same f: never longer, and shorter wherever a rank has to wait.
    for p, m, v, s in SHAPES:
        whole, apart = member("svpp", p=p, m=m, v=v, s=s), member("svpp-w", p=p, m=m, v=v, s=s)
        before = measure(whole.problem, whole.schedule)
        after = measure(apart.problem, apart.schedule)
        assert before.work == after.work
        assert after.makespan <= before.makespan
        if p > 1:
            assert after.makespan < before.makespan
        assert max(after.peak_activations) <= max(before.peak_activations)


def test_one_slice_and_one_chunk_takes_as_long_as_zb_h1() -> None:
    # ZB-H1 holds p units and takes 3m + p-1 ticks where m >= p (its own test).
    for p in range(1, 6):
        for m in range(p, 2 * p + 2):
            made = member("svpp-w", p=p, m=m)
            assert measure(made.problem, made.schedule).makespan == 3 * m + p - 1


def figure_7(name: str, **params: int) -> Measures:
    """p=4, s=2, v=1, n=4 at Figure 7's ticks: F and I are 3 for slice 0 and 4 for slice 1, W 3."""
    made = member(name, p=4, m=4, s=2, **params)
    actions = made.problem.actions
    main = np.where(actions.slice == 0, 3, 4)
    ticks = np.where(actions.kind == Kind.W, 3, main + 3 * (actions.kind == Kind.B))
    problem = replace(made.problem, duration=ticks)
    return measure(problem, left_shift(problem, made.schedule.program))


def test_delayed_weights_shorten_figure_7_and_more_memory_does_again() -> None:
    # W at once (as part of B) against W in the waits, 7(a), against more memory than SVPP's largest
    # f of 5 units, 7(b). Every rank works 8 slices of 3.5 + 3.5 + 3 ticks on average: 80. Rank 3
    # starts after 3 forwards, of 3 ticks at least: no schedule takes fewer than 89.
    whole, filled, roomy = figure_7("svpp"), figure_7("svpp-w"), figure_7("svpp-w", f=7)
    assert whole.work == filled.work == roomy.work == 4 * 80
    assert whole.makespan > filled.makespan > roomy.makespan >= 89
    assert max(whole.peak_activations) == max(filled.peak_activations) == 5
    assert max(roomy.peak_activations) == 7


def test_p_minus_1_more_units_leave_no_wait_inside_a_ranks_span() -> None:
    # At unit ticks rank 0 waits for the first gradient until tick v max(p,s) + min(p,s) - 1 + p-1
    # (the first sample's forwards to the last rank, and p-1 ranks back), so this many forwards fill
    # the wait. At s = v = 1 it is ZB-H2's 2p-1.
    for p, s, v in product(range(1, sized(4, full=6)), range(1, 5), (1, 2)):
        for m in range(1, 3 * p + 1, sized(2, full=1)):
            f = v * max(p, s) + min(p, s) - 1 + p - 1
            full_groups = m % max(1, p // s) == 0
            if f <= m * v * s and full_groups and m * s >= (3 * p if v > 1 else 2 * p - 1):
                made = member("svpp-w", p=p, m=m, v=v, s=s, f=f)
                assert measure(made.problem, made.schedule).span_idle == 0


def test_f_may_be_all_forwards_there_are_and_no_more() -> None:
    made = member("svpp-w", p=2, m=3, s=2, f=6)
    assert max(measure(made.problem, made.schedule).peak_activations) <= 6
    with pytest.raises(ValueError, match=r"svpp-w runs f = 2 \(v\*s\) to 6 forwards .* use f=6"):
        member("svpp-w", p=2, m=3, s=2, f=7)
    assert member("svpp-w", p=2, m=3, s=2).params["f"] == 3
