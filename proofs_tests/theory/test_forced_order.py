"""The moments of a microbatch are in the order that precedences force, and in no other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bubbleproof.formats.schedule_json import read_schedule
from bubbleproof.solvers import SolveOptions, Status, solve
from bubbleproof.solvers.memory_rules import exact_stores
from bubbleproof.theory.model.problem import Edges, Problem, Store
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.certificates.chains import ForcedOrder
from bubbleproof.verify.certificates.index_order import index_order
from proofs_tests.judged import accepted
from proofs_tests.solvers.exhaustive import Exhaustive, obeys
from proofs_tests.solvers.small import by_hand

CASES = Path(__file__).parents[2].parent / "shared" / "cases"
STARTS_AT_13 = (0, 1, 2, 10, 3, 4, 5, 9, 6, 7, 8, 12)


def workspace() -> Problem:
    """One rank: F, I and two GEMMs of W of one tick each, the second 3 ticks behind the first.

    F acquires 2; each GEMM acquires 1 when it starts and releases 2 when it ends. Capacity 5.
    """
    rows = [
        (f"0{kind}{j}{part}", 1, (0,))
        for j in range(3)
        for kind, part in (("F", ""), ("I", ""), ("W", "#0"), ("W", "#1"))
    ]
    edges = [
        edge
        for j in range(3)
        for edge in (
            (f"0F{j}", f"0I{j}", 0),
            (f"0I{j}", f"0W{j}#0", 0),
            (f"0W{j}#0", f"0W{j}#1", 3),
        )
    ]
    events = [(f"0F{j}", False, 0, 2) for j in range(3)]
    for j in range(3):
        for part in range(2):
            events += [(f"0W{j}#{part}", False, 0, 1), (f"0W{j}#{part}", True, 0, -2)]
    return by_hand(rows, edges, stores=[Store(name="memory", capacity=5)], events=events)


def test_a_part_that_acquires_after_an_earlier_one_released_is_solved() -> None:
    # 12 ticks of work. The last GEMM is 3 ticks behind its first, which leaves one idle tick at
    # least; STARTS_AT_13 has no more, and the exhaustive search finds no schedule of 12.
    assert Exhaustive(workspace()).optimum() == 13
    result = solve(workspace(), SolveOptions(threads=1))
    assert (result.status, result.makespan, result.lower_bound) == (Status.OPTIMAL, 13, 13)


def test_the_reported_case_has_its_schedule() -> None:
    """The same from the files it was reported with, where they are there."""
    files = CASES / "workspace-p1m3.json", CASES / "workspace-p1m3-at-13.json"
    if not all(file.exists() for file in files):
        pytest.skip("the files of the reported case are not here")
    problem = read_schedule(files[0]).problem
    schedule = read_schedule(files[1]).schedule
    assert problem is not None
    assert schedule is not None
    measured = accepted(problem, schedule)
    assert measured.makespan == 13
    result = solve(problem, SolveOptions(threads=1))
    assert (result.status, result.makespan) == (Status.OPTIMAL, 13)


def test_index_order_leaves_that_schedule_alone() -> None:
    problem = workspace()
    start = np.array(STARTS_AT_13)
    assert obeys(problem, STARTS_AT_13)
    assert max(start + 1) == 13
    order = index_order(problem)
    # After F 2, then 3, 1, 2, 0: at most (5 - 2) div 1 + 1 = 4 at once, more than there are.
    assert [(life.acquired, life.held) for life in order.lifecycles] == [(2, 1)]
    assert len(order.memory_edges) == 0
    start[order.groups[0]] = np.sort(start[order.groups[0]], axis=1)
    assert obeys(problem, start.tolist())


SPLIT = Pipeline(num_ranks=4, num_microbatches=8, split_backward=True)


@pytest.mark.parametrize(
    ("pipeline", "order_edges", "memory_edges", "exact"),
    [
        # Two classes per stage with 7 edges each; room for 4 of 8 microbatches: 4 edges per rank.
        (Pipeline(num_ranks=4, num_microbatches=8, capacity=4), 4 * 2 * 7, 4 * 4, 4),
        (SPLIT.with_changes(capacity=3), 4 * 3 * 7, 4 * 5, 4),
        # The same with W in two: nothing happens to the memory between, and F that take no time.
        (
            SPLIT.with_changes(weight_backward=3, weight_parts=(1, 2), capacity=3),
            4 * 4 * 7,
            4 * 5,
            4,
        ),
        (Pipeline(num_ranks=4, num_microbatches=8, forward=0, capacity=3), 4 * 2 * 7, 4 * 5, 4),
        # Held 2, then 1: K = (8 - 2) div 1 + 1 = 7; or 2, then 3: K = (8 - 2) div 2 + 1 = 4.
        (SPLIT.with_changes(activation=2, released_at_input=1, capacity=8), 4 * 3 * 7, 4, 0),
        (SPLIT.with_changes(activation=2, released_at_input=-1, capacity=8), 4 * 3 * 7, 4 * 4, 0),
        # Two chunks share a store: K = 5 for each of the 8 stages.
        (
            Pipeline(num_ranks=4, num_microbatches=8, num_chunks=2, capacity=5),
            8 * 2 * 7,
            8 * 3,
            0,
        ),
        # Workspace of 1 in a whole W: 2, 3 and 0 at last. K = (4 - 2) div 2 + 1 = 2.
        (SPLIT.with_changes(activation=2, weight_workspace=1, capacity=4), 4 * 3 * 7, 4 * 6, 0),
    ],
)
def test_edges_and_exact_stores_of_ordinary_pipelines(
    pipeline: Pipeline, order_edges: int, memory_edges: int, exact: int
) -> None:
    order = index_order(pipeline.problem())
    counts = len(order.order_edges), len(order.memory_edges), len(exact_stores(order))
    assert counts == (order_edges, memory_edges, exact)


def test_what_another_stage_forces_is_no_chain() -> None:
    # 0F0 waits for nothing and 0B0 for 0F0 only by way of stage 1, without the edge between them.
    problem = Pipeline(num_ranks=2, num_microbatches=1).problem()
    tasks = np.arange(problem.num_tasks)
    forward, backward = problem.task("0F0"), problem.task("0B0")
    assert ForcedOrder(problem, tasks).chains[0, 0, 0, 0] == [
        ((forward, False), 1),
        ((backward, True), 0),
    ]
    edges = problem.edges
    kept = (edges.before != forward) | (edges.after != backward)
    assert not kept.all()
    without = replace(
        problem,
        edges=Edges(before=edges.before[kept], after=edges.after[kept], lag=edges.lag[kept]),
    )
    assert ForcedOrder(without, tasks).chains[0, 0, 0, 0] is None


def parts_of_a_backward(*edges: tuple[str, str, int]) -> Problem:
    """F acquires 2 at its start; I releases 1 at its end; W acquires 1 at its start, releases 2."""
    rows = [(name, 1, (0,)) for name in ("0F0", "0I0", "0W0")]
    events = [
        ("0F0", False, 0, 2),
        ("0I0", True, 0, -1),
        ("0W0", False, 0, 1),
        ("0W0", True, 0, -2),
    ]
    return by_hand(rows, list(edges), stores=[Store(name="memory", capacity=2)], events=events)


def test_a_path_of_0_ticks_forces_and_each_moment_must_be_forced() -> None:
    whole = parts_of_a_backward(("0F0", "0I0", 0), ("0I0", "0W0", 0))
    chain = ForcedOrder(whole, np.arange(3)).chains[0, 0, 0, 0]
    # I ends when W may start: nothing lies between, and the order is forced all the same.
    assert chain == [((0, False), 2), ((1, True), 1), ((2, False), 2), ((2, True), 0)]
    loose = parts_of_a_backward(("0F0", "0I0", 0), ("0F0", "0W0", 0))
    assert ForcedOrder(loose, np.arange(3)).chains[0, 0, 0, 0] is None
