"""The frontier of slices: its closed form against the checker, SVPP's orders and a solver."""

from __future__ import annotations

import numpy as np
import pytest

import bubbleproof as bp
from bubbleproof.papers.mepipe import svpp_frontier as frontier
from bubbleproof.papers.theorems.closed_form import I as RANK
from bubbleproof.solvers.result import Status
from bubbleproof.theory.families import member
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.check import check
from proofs_tests.sized import sized

SIZES = [
    (p, m, s, k)
    for p in range(1, 17)
    for s in (1, 2, 3, 5, 8)
    for k in range(min(p, s))
    for m in (1, 2, 3, 7)
]
FEW = [size for size in SIZES if size[0] <= 4 and size[2] <= 3 and size[1] != 7]
FORM = frontier.SliceFrontier()
TERMS = {
    Kind.F: FORM.forward(RANK, frontier.HERE),
    Kind.B: FORM.backward(RANK, frontier.HERE),
}


def least(p: int, m: int, s: int, k: int, pair: int) -> int:
    """The statement, spelled out apart from the theorem's terms."""
    return (m * (s + p - 1 - k) + k) * pair


def timed(pipeline: Pipeline, k: int, ticks: tuple[int, int]) -> Schedule:
    """The closed form's starts, and the order of each rank by them."""
    problem = pipeline.problem()
    p, m, s = pipeline.num_ranks, pipeline.num_microbatches, pipeline.num_slices
    sizes = {"p": p, "m": m, "s": s, "k": k, "tF": ticks[0], "tB": ticks[1]}
    starts = []
    for action, rank in zip(problem.actions, problem.rank_of_task.tolist(), strict=True):
        place = action.slice if action.kind is Kind.F else s - 1 - action.slice
        at = {**sizes, "i": rank, "j": action.microbatch, "x": place}
        starts.append(int(TERMS[action.kind].value(at)))
    order = np.lexsort((np.array(starts), problem.rank_of_task))
    program = Program.grouped(
        actions=problem.actions.take(order), resource=problem.rank_of_task[order]
    )
    return Schedule(program=program, start=np.array(starts)[order])


@pytest.mark.sweep
@pytest.mark.parametrize("ticks", [(1, 2), (3, 1)])
def test_the_closed_form_is_a_schedule_within_the_memory(ticks: tuple[int, int]) -> None:
    for p, m, s, k in sized(FEW, full=SIZES):
        pipeline = Pipeline(
            num_ranks=p,
            num_microbatches=m,
            num_slices=s,
            forward=ticks[0],
            backward=ticks[1],
            capacity=s + k,
        )
        found = timed(pipeline, k, ticks)
        assert check(pipeline.problem(), found).ok, (p, m, s, k)
        assert measure(pipeline.problem(), found).makespan == least(p, m, s, k, sum(ticks))


@pytest.mark.sweep
@pytest.mark.parametrize("ticks", sized([(2, 5)], full=[(1, 2), (1, 1), (2, 5)]))
def test_svpp_is_on_the_frontier_where_backwards_are_no_shorter(ticks: tuple[int, int]) -> None:
    for p, m, s, k in sized(FEW, full=SIZES):
        if s + k > m * s:
            continue  # no rank has so many forwards
        found = member("svpp", p=p, m=m, s=s, f=s + k, tF=ticks[0], tB=ticks[1])
        told = least(p, m, s, k, sum(ticks))
        assert measure(found.problem, found.schedule).makespan == told, (p, m, s, k)


SMALL = [(2, 2, 2, 0, (2, 1)), (2, 2, 2, 1, (1, 2)), (2, 3, 1, 0, (1, 1)), (3, 2, 2, 1, (1, 2))]


@pytest.mark.parametrize(("p", "m", "s", "k", "ticks"), SMALL)
def test_no_schedule_of_small_problems_is_shorter(
    p: int, m: int, s: int, k: int, ticks: tuple[int, int]
) -> None:
    pipeline = Pipeline(
        num_ranks=p,
        num_microbatches=m,
        num_slices=s,
        forward=ticks[0],
        backward=ticks[1],
        capacity=s + k,
    )
    result = bp.solve(pipeline)
    assert (result.status, result.makespan) == (Status.OPTIMAL, least(p, m, s, k, sum(ticks)))


def test_more_than_two_samples_at_once_is_another_frontier() -> None:
    # p = 4, s = 2: with k = 2 = s two samples fit, and m = 2 of them end at (m*s + p-1)P = 7P,
    # where the formula would be (2(2+4-1-2) + 2)P = 8P: so k < s is needed.
    found = member("svpp", p=4, m=2, s=2, f=4)
    assert measure(found.problem, found.schedule).makespan < least(4, 2, 2, 2, 3)
