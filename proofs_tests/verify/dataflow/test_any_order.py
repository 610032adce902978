"""Whatever order the precedences of a pipeline allow, its data flow is right, and vice versa.

The precedences come from ``theory``, rule 7 from its own definitions. Random orders that respect
all precedences must pass; where one precedence that carries data is taken away, some order of what
is left must not.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from bubbleproof.theory.model.actions import Action
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.verify.dataflow.dataflow_rule import check_dataflow, check_dataflow_of_program
from proofs_tests.cases import Case, all_family_cases
from proofs_tests.sized import sized
from proofs_tests.verify.dataflow.samples import all_samples, without_edge

SAMPLES = all_samples()


def random_orders(problem: Problem, random: Random, late: str = "") -> list[list[Action]]:
    """Orders per resource of a random sequence of tasks that respects every precedence.

    The task named ``late`` comes as late as it can.
    """
    edges, actions = problem.edges, list(problem.actions)
    waits = np.bincount(edges.after, minlength=problem.num_tasks).tolist()
    after: list[list[int]] = [[] for _ in actions]
    for before, later in zip(edges.before.tolist(), edges.after.tolist(), strict=True):
        after[before].append(later)
    homes: list[list[int]] = [[] for _ in actions]
    for task, resource in zip(
        problem.occupancy.task.tolist(), problem.occupancy.resource.tolist(), strict=True
    ):
        homes[task].append(resource)
    ready = [task for task, count in enumerate(waits) if not count]
    orders: list[list[Action]] = [[] for _ in problem.resources]
    while ready:
        choice = [task for task in ready if str(actions[task]) != late] or ready
        task = random.choice(choice)
        ready.remove(task)
        for resource in homes[task]:
            orders[resource].append(actions[task])
        for later in after[task]:
            waits[later] -= 1
            if not waits[later]:
                ready.append(later)
    return orders


def require_right(case: Case, random: Random) -> None:
    program = Program.from_orders(random_orders(case.problem, random))
    for finding in (
        check_dataflow(case.problem, left_shift(case.problem, program)),
        check_dataflow_of_program(case.problem, program),
    ):
        assert finding.ok, f"{case.name}\n{finding.violations[0]}"


@pytest.mark.parametrize("case", SAMPLES, ids=lambda case: case.name)
def test_every_order_that_the_precedences_allow_is_right(case: Case) -> None:
    if case.name == "stepped":
        pytest.skip("this sample has no precedences before STEP")
    for seed in range(sized(3, full=8)):
        require_right(case, Random(f"{case.name} {seed}"))


def test_every_allowed_order_of_every_family_is_right() -> None:
    for members in all_family_cases((2, 3), (2, 3, 4), per_family=sized(1, full=2)).values():
        for case in members:
            require_right(case, Random(case.name))


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("svpp", "0F0", "0F0.1"),
        ("svpp", "0F0", "1F0"),
        ("svpp", "1B0.1", "0B0.1"),
        ("svpp", "0B0.2", "0B0.1"),
        ("svpp-w", "0I0", "0W0"),
        ("bpipe", "0F1", "0EVICT1"),
        ("chosen", "0EVICT1", "0LOAD1"),
        ("bpipe", "0LOAD1", "0B1"),
        ("hosted", "0F1", "0R1"),
        ("hosted", "0R1", "0B1"),
        ("hosted", "3RELOAD0", "3F0"),
        ("hosted", "3B3", "3OFFLOAD3"),
        ("hosted", "3OFFLOAD3", "3STEP"),
        ("chosen", "0F2", "0OFFLOAD2"),
        ("chosen", "0OFFLOAD2", "0RELOAD2"),
        ("chosen", "0RELOAD2", "0B2"),
        ("zero 1", "0UNSHARD", "0F0"),
        ("zero 1", "0B7", "0REDUCE_GRAD.3"),
        ("zero 3", "0F3", "0RESHARD"),
    ],
)
def test_each_precedence_that_carries_data_is_needed(name: str, before: str, after: str) -> None:
    case = next(case for case in SAMPLES if case.name == name)
    problem = without_edge(case.problem, before, after)
    ticks = problem.duration.copy()
    ticks[problem.task(before)] = 30  # so that left-shifting does not hide what came too late
    problem = replace(problem, duration=ticks)
    for seed in range(40):
        random, late = Random(f"{before} {after} {seed}"), before if seed % 2 else ""
        orders = random_orders(problem, random, late=late)
        if not check_dataflow(problem, left_shift(problem, Program.from_orders(orders))).ok:
            return
    pytest.fail(f"{before} may come after {after}")
