"""Orders merged anew: what comes out is a schedule, and of a loop with room enough the best one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from bubbleproof.solvers import SolveOptions, Status, solve
from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.lists.merging import Merging, grouped, merged_programs, steady
from bubbleproof.solvers.shortening.known_orders import known_orders
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift
from proofs_tests.judged import accepted
from proofs_tests.sized import sized
from proofs_tests.solvers.small import split


def loop(p: int, v: int, m: int, ticks: tuple[int, int, int], room: int) -> Pipeline:
    """A split backward, no latency, room for ``room`` activations."""
    return split(p, m, room, ticks, v=v).with_changes(latency=0)


def makespan(problem: Problem, program: Program) -> int:
    return accepted(problem, left_shift(problem, program)).makespan


# With room for p v activations rank 0 is idle for (p - 1) tI and no longer: until the first I comes
# back, p v forwards are all that it has room for (test_one_store.py derives it). No schedule is
# shorter than m v (tF + tI + tW) + (p - 1) tI, the certificate says.
@pytest.mark.parametrize(
    ("p", "v", "m", "ticks"),
    [(4, 3, 16, (10, 11, 10)), (8, 4, 24, (49, 50, 50)), (3, 2, 6, (8, 12, 11)),
     (6, 2, 18, (11, 11, 12))],
)  # fmt: skip
def test_a_loop_with_room_for_all_its_stages_is_solved(
    p: int, v: int, m: int, ticks: tuple[int, int, int]
) -> None:
    problem = loop(p, v, m, ticks, p * v).problem()
    least = m * v * sum(ticks) + (p - 1) * ticks[1]
    assert lower_bounds(problem).best.bound == least
    values = [makespan(problem, program) for program in merged_programs(problem, least)]
    assert min(values) == least


def test_a_solve_needs_nothing_else() -> None:
    problem = loop(8, 4, 24, (49, 50, 50), 32).problem()
    result = solve(problem, SolveOptions(threads=1))
    assert (result.status, result.origin) == (Status.OPTIMAL, "merging")


def test_who_never_waits_is_longer() -> None:
    """With no ticks to spare each I that comes a tick after a forward began is late."""
    problem = loop(8, 4, 24, (49, 50, 50), 32).problem()
    merging = Merging(problem, grouped(problem, 8))
    patient, hasty = merging.program(24, 24 * 4 * 149 + 7 * 50), merging.program(24, 0)
    assert patient is not None
    assert hasty is not None
    assert makespan(problem, patient) < makespan(problem, hasty)


def test_groups_are_those_of_interleaved_1f1b() -> None:
    """The forwards and the backwards of each rank, as the published order has them."""
    pipeline = Pipeline(num_ranks=4, num_chunks=2, num_microbatches=8)
    problem = pipeline.problem()
    order = grouped(problem, 4)
    published = dict(known_orders(pipeline))["interleaved"]
    for rank in range(4):
        known = problem.locate(published.actions)[published.resource == rank]
        for kind in (Kind.F, Kind.B):
            of_kind = known[problem.actions.kind[known] == kind]
            here = (problem.rank_of_task[order] == rank) & (problem.actions.kind[order] == kind)
            assert order[here].tolist() == of_kind.tolist()


def test_a_steady_order_enters_a_microbatch_per_interval() -> None:
    """Two ranks, two chunks in a loop: stage g of microbatch j at g + 3 j / 2."""
    problem = Pipeline(num_ranks=2, num_chunks=2, num_microbatches=3).problem()
    order = steady(problem, Fraction(3, 2))
    forwards = order[problem.actions.kind[order] == Kind.F]
    names = [problem.label(task) for task in forwards.tolist()]
    # Times 0 1 2 3, 1.5 2.5 3.5 4.5 and 3 4 5 6; at 3 microbatch 0 comes before 2.
    wanted = "0F0 1F0 0F1 2F0 1F1 3F0 0F2 2F1 1F2 3F1 2F2 3F2"
    assert names == wanted.split()


@pytest.mark.parametrize("placement", ["loop", "wave"])
@pytest.mark.parametrize("is_split", [False, True])
def test_every_program_is_a_schedule_of_the_problem(placement: str, is_split: bool) -> None:
    rng, found = np.random.default_rng(5), 0
    for _ in range(sized(4, full=12)):
        p, v = int(rng.integers(2, 5)), int(rng.integers(2, 4))
        pipeline = Pipeline(
            num_ranks=p,
            num_chunks=v,
            num_microbatches=int(rng.integers(2, 9)),
            num_slices=int(rng.integers(1, 3)),
            placement=placement,
            split_backward=is_split,
            latency=int(rng.integers(0, 3)),
            forward=int(rng.integers(0, 5)),
            backward=int(rng.integers(0, 9)),
            input_backward=int(rng.integers(0, 5)),
            capacity=int(rng.integers(v, 3 * p * v)),
            activation=int(rng.integers(0, 3)),
        )
        problem = pipeline.problem()
        least = lower_bounds(problem).best.bound
        for program in merged_programs(problem, least):
            assert makespan(problem, program) >= least
            found += 1
    assert found > 20


def test_work_and_wishes_are_kept() -> None:
    problem = loop(4, 3, 16, (10, 11, 9), 12).problem()
    assert len(list(merged_programs(problem, 1473, most_tasks=3 * problem.num_tasks))) <= 3
    assert list(merged_programs(problem, 1473, lambda: True)) == []
    one_chunk = loop(4, 1, 16, (10, 11, 9), 12).problem()
    assert list(merged_programs(one_chunk, 1473)) == []
