"""``repair`` says that there is no schedule where ``solve`` does, and accuses no engine of it."""

from __future__ import annotations

from random import Random

import pytest

from bubbleproof.solvers import SolveOptions, Status, solve
from bubbleproof.solvers.repair_search import repair
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.activation_offload import ActivationOffload
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.patience import PATIENCE
from proofs_tests.sized import sized


def drawn(random: Random) -> Pipeline:
    """A tight pipeline: one task may need more than a store has, or its weights alone do."""
    p, m = random.choice([1, 2]), random.choice([1, 2, 3])
    offloads = tuple(
        ActivationOffload(
            stage=random.randrange(p), microbatch=j, offload=random.randint(0, 2), reload=1
        )
        for j in range(m)
        if random.random() < 0.4
    )
    return Pipeline(
        num_ranks=p,
        num_microbatches=m,
        forward=random.randint(1, 2),
        backward=random.randint(1, 3),
        activation=random.randint(1, 4),
        static=random.choice([0, 0, 1, 5]),
        capacity=random.choice([None, 1, 4, 8]),
        offloads=offloads,
        host_capacity=random.choice([1, 2, 3, 4, None]),
    )


def shuffled(problem: Problem, random: Random) -> Program:
    """The tasks of each resource in any order."""
    orders: list[list[str]] = [[] for _ in problem.resources]
    homes = problem.occupancy
    for task, resource in zip(homes.task.tolist(), homes.resource.tolist(), strict=True):
        orders[resource].append(problem.label(task))
    return Program.from_orders([random.sample(order, len(order)) for order in orders])


@pytest.mark.sweep
def test_repair_and_solve_say_the_same_of_a_problem() -> None:
    random, seen = Random(5), {Status.INFEASIBLE: 0, Status.OPTIMAL: 0}
    for _ in range(sized(25, full=400)):
        problem = drawn(random).problem()
        options = SolveOptions(time_limit=PATIENCE)
        status = solve(problem, options).status
        found = repair(problem, shuffled(problem, random), options)
        assert (found is None) == (status is Status.INFEASIBLE)
        seen[status] += 1
    assert min(seen.values()) > 5
