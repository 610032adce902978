"""Problem files that say what each GEMM of W holds while it runs."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from bubbleproof.formats import read_problem
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.prediction import in_bytes
from bubbleproof.solvers import SolveOptions, Status, solve
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.certificates.index_order import index_order
from proofs_tests.sized import sampled
from proofs_tests.solvers.exhaustive import Exhaustive
from proofs_tests.solvers.small import UNIT, split

FILE = """
ranks = 2
microbatches = 2
split_backward = true
[durations]
forward = [1, 2]
input = 1
weight_parts = [2, 1]
[memory]
capacity = 3
activation = 2
released_at_input = 1
weight_workspace = [1, 2]
[links]
latency = 1
"""


def test_a_file_with_workspace_is_solved_to_its_optimum(tmp_path: Path) -> None:
    path = tmp_path / "workspace.toml"
    path.write_text(FILE)
    pipeline = read_problem(path).pipeline
    assert pipeline.weight_workspace == ((1, 2), (1, 2))
    assert_solved(pipeline.problem())


@pytest.mark.parametrize(
    ("workspace", "capacity", "released"),
    sampled([*product((((3,), (0,)), ((1,), (2,)), ((2,), (2,))), (3, 4), (0, 1))], every=7),
)
def test_workspace_of_whole_weights_is_solved(
    workspace: tuple[tuple[int, ...], ...], capacity: int, released: int
) -> None:
    pipeline = Pipeline(
        num_ranks=2,
        num_microbatches=2,
        split_backward=True,
        forward=(2, 1),
        activation=2,
        released_at_input=released,
        weight_workspace=workspace,
        capacity=capacity,
    )
    assert_solved(pipeline.problem())


def assert_solved(problem: Problem) -> None:
    order = index_order(problem)
    assert len(order.lifecycles) == 2  # its moments stand in a forced row, and are reasoned about
    result, optimum = solve(problem, SolveOptions(threads=1)), Exhaustive(problem).optimum()
    if optimum is None:
        assert result.status is Status.INFEASIBLE
    else:
        assert (result.status, result.makespan) == (Status.OPTIMAL, optimum)


def test_workspace_costs_time() -> None:
    # F holds 2, of which I gives 1 back, and W holds 2 of its own: 3 units, which is all there is.
    # So no second microbatch is on a rank while a W runs, and rank 0 waits for rank 1's backward.
    plain = split(2, 2, 3, UNIT, part=True)
    held = plain.with_changes(weight_workspace=2)
    free, bound = Exhaustive(plain.problem()).optimum(), Exhaustive(held.problem()).optimum()
    assert free is not None
    assert bound is not None
    assert free < bound


def test_replays_do_not_count_workspace() -> None:
    """Neither the prediction nor the measurement does; every report says so."""
    plain = Pipeline(
        num_ranks=2, num_microbatches=2, split_backward=True, weight_backward=2, weight_parts=(1, 1)
    )
    held = plain.with_changes(weight_workspace=(5, 6))
    spec = ModelSpec()
    assert in_bytes(held, spec) == in_bytes(plain, spec)
