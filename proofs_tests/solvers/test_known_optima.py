"""Known optima: ``solve`` reaches every listed value, and says OPTIMAL exactly where it may.

The values were measured elsewhere by two exact engines (CP-SAT and an order encoding in SAT) on
models written independently of this project; here our checked result must equal them, and a
checked certificate must prove each. Column ``machine`` is the one-machine bound with memory edges
measured there (equal to the optimum where no other value stands).
"""

from __future__ import annotations

import pytest

from bubbleproof.solvers import ProofOrigin, SolveOptions, Status, solve
from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.patience import PATIENCE
from proofs_tests.solvers.best_machine import best_machine
from proofs_tests.solvers.small import UNEVEN, UNIT, Times, split

# Unsplit, tF = 1, tB = 2, room for `cap` activations: (p, m, cap, optimum). No bound leaves a gap.
UNSPLIT = [
    (2, 4, 2, 15), (2, 4, 1, 24),
    (4, 4, 4, 21), (4, 4, 3, 24), (4, 4, 2, 27),
    (4, 8, 4, 33), (4, 8, 3, 39), (4, 8, 2, 51),
    (4, 16, 4, 57), (4, 16, 3, 72), (4, 16, 2, 99),
    (8, 8, 8, 45), (8, 8, 6, 51), (8, 8, 4, 57),
    (8, 16, 8, 69), (8, 16, 6, 81), (8, 16, 4, 105),
]  # fmt: skip
# Unsplit, tF = 2, tB = 4, latency 1, room for p: (p, m, optimum, machine).
LATE = [
    (2, 4, 34, 34), (4, 4, 48, 48), (4, 8, 80, 78), (4, 16, 142, 138), (8, 8, 104, 104),
    (8, 16, 172, 166),
]  # fmt: skip
# Split, (tF, tI, tW), latency 1 where uneven, room for `cap`: (p, m, cap, times, optimum).
SPLIT = [
    (4, 8, 4, UNIT, 27), (4, 8, 8, UNIT, 27),
    (4, 8, 4, UNEVEN, 283), (4, 8, 8, UNEVEN, 265),
    (4, 12, 4, UNIT, 39), (4, 12, 8, UNIT, 39),
    (4, 12, 4, UNEVEN, 399), (4, 12, 8, UNEVEN, 381),
    (8, 24, 8, UNEVEN, 815), (8, 32, 8, UNEVEN, 1047),
]  # fmt: skip


@pytest.mark.parametrize(("p", "m", "cap", "optimum"), UNSPLIT)
def test_unsplit(p: int, m: int, cap: int, optimum: int) -> None:
    result = solve(Pipeline(num_ranks=p, num_microbatches=m, capacity=cap).problem())
    assert (result.status, result.makespan) == (Status.OPTIMAL, optimum)
    assert (result.lower_bound, result.origin) == (optimum, "greedy")


@pytest.mark.parametrize(("p", "m", "optimum", "machine"), LATE)
def test_unsplit_with_latency(p: int, m: int, optimum: int, machine: int) -> None:
    pipeline = Pipeline(
        num_ranks=p, num_microbatches=m, forward=2, backward=4, latency=1, capacity=p
    )
    assert lower_bounds(pipeline.problem()).best.bound == machine
    result = solve(pipeline.problem())
    assert (result.makespan, result.lower_bound) == (optimum, optimum)
    assert (result.status, result.proof) == (Status.OPTIMAL, ProofOrigin.CERTIFICATE)


@pytest.mark.parametrize(("p", "m", "cap", "times", "optimum"), SPLIT)
def test_split(p: int, m: int, cap: int, times: Times, optimum: int) -> None:
    result = solve(split(p, m, cap, times).problem())
    assert (result.status, result.makespan) == (Status.OPTIMAL, optimum)


def test_released_in_parts() -> None:
    # Of 2 units 1 is released after I, room for 8: 283, where the one-machine bound ends at 265.
    problem = split(4, 8, 8, UNEVEN, part=True).problem()
    result = solve(problem)
    assert best_machine(problem, lower_bounds(problem)).bound == 265
    assert (result.status, result.makespan) == (Status.OPTIMAL, 283)
    assert (result.lower_bound, result.proof) == (283, ProofOrigin.CERTIFICATE)


@pytest.mark.parametrize(
    ("microbatches", "chunks", "cap", "optimum"), [(8, 2, 11, 57), (8, 2, 8, 57), (8, 4, None, 105)]
)
def test_interleaved(microbatches: int, chunks: int, cap: int | None, optimum: int) -> None:
    pipeline = Pipeline(num_ranks=4, num_microbatches=microbatches, num_chunks=chunks, capacity=cap)
    result = solve(pipeline.problem(), SolveOptions(time_limit=PATIENCE))
    assert (result.status, result.makespan) == (Status.OPTIMAL, optimum)
