"""The sweep of solvers and certificates over random small problems with events anywhere.

Each problem goes to ``solve`` as a user would call it, and every few to each engine alone; every
few numbers stand for open choices as well, and the smallest problems are solved for span_idle too
(``brute_force`` knows that truth). What is claimed is held against ``exhaustive``,
which knows no classes and no order. ``python -m proofs_tests.solvers.random_optima 20000`` prints
the counts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

import numpy as np

from bubbleproof.solvers import ENGINES, Result, SolveOptions, Status, solve
from bubbleproof.solvers.choices.solving_choices import solve_variants
from bubbleproof.solvers.choices.variants import Variants
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.index_order import index_order
from proofs_tests.solvers.brute_force import brute_force, least_span_idle
from proofs_tests.solvers.derived_floor import choices_of
from proofs_tests.solvers.exhaustive import Exhaustive, TooMuchWork, obeys
from proofs_tests.solvers.random_problems import random_problem
from proofs_tests.solvers.random_variants import random_variants

EVERY = 100  # problems of which one goes to each engine alone
EVERY_CHOICE = 40  # problems to one with open choices
SECONDS = 20.0  # for one solve


@dataclass(slots=True, kw_only=True)
class Counts:
    """What was tried, and what was wrong (none of it should be).

    ``refused``: certificates of ours that their checker refused, so that they were not used.
    ``undecided`` are answers without an optimum, of which the bounds were held against the truth;
    ``given_up`` are problems too large for the walk.
    """

    problems: int = 0
    optimal: int = 0
    infeasible: int = 0
    undecided: int = 0
    given_up: int = 0
    by_engine: int = 0
    variants: int = 0
    spans: int = 0
    refused: int = 0
    wrong_optima: list[str] = field(default_factory=list)
    wrong_infeasible: list[str] = field(default_factory=list)
    wrong_bounds: list[str] = field(default_factory=list)
    wrong_orders: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> list[str]:
        """Every wrong answer, by the number of its problem."""
        return self.wrong_optima + self.wrong_infeasible + self.wrong_bounds + self.wrong_orders

    def __str__(self) -> str:
        return (
            f"{self.problems} random problems ({self.optimal} optimal, {self.infeasible} "
            f"infeasible, {self.undecided} undecided, {self.given_up} too large to walk; "
            f"{self.by_engine} more by one engine alone, {self.variants} with choices, "
            f"{self.spans} for span_idle): "
            f"{len(self.wrong_optima)} wrong optima, {len(self.wrong_infeasible)} wrong "
            f"INFEASIBLE, {len(self.wrong_bounds)} bounds above the optimum, "
            f"{len(self.wrong_orders)} false edges; {self.refused} certificates that were refused "
            "and not used"
        )


def sweep(
    count: int,
    seed: int = 0,
    progress: Callable[[Counts], None] | None = None,
    make: Callable[[Random], Problem] = random_problem,
) -> Counts:
    """Problems ``seed`` .. ``seed + count - 1``."""
    counts = Counts()
    for number in range(seed, seed + count):
        problem = make(Random(number))
        counts.problems += 1
        _judge(counts, problem, f"{number}", SolveOptions(threads=1, time_limit=SECONDS))
        if _is_small(problem):
            _judge_span(counts, problem, f"{number} for span_idle")
        if number % EVERY == 0:
            for engine in ENGINES:
                counts.by_engine += 1
                options = SolveOptions(threads=1, time_limit=SECONDS, engine=engine)
                _judge(counts, problem, f"{number} by {engine}", options)
        if number % EVERY_CHOICE == 0:
            _judge_variants(counts, random_variants(Random(number)), f"variants {number}")
        if progress is not None:
            progress(counts)
    return counts


def _judge(counts: Counts, problem: Problem, name: str, options: SolveOptions) -> None:
    result = solve(problem, options)
    counts.refused += "was refused and is not used" in result.reason
    _hold_against(counts, [Exhaustive(problem)], result, name)
    if result.schedule is not None:
        start = _starts(problem, result)
        if not obeys(problem, start):
            counts.wrong_optima.append(f"{name}: the schedule breaks a rule")
        if not _keeps_index_order(problem, start):
            counts.wrong_orders.append(name)


def _is_small(problem: Problem) -> bool:
    """Whether ``brute_force`` may be asked: lags of 0 or more, all tasks on ranks."""
    on_ranks = (problem.occupancy.resource < problem.num_ranks).all()
    return problem.num_tasks <= 8 and bool((problem.edges.lag >= 0).all() and on_ranks)


def _judge_span(counts: Counts, problem: Problem, name: str) -> None:
    """The least idle time within a rank's span, by a search of its own."""
    counts.spans += 1
    options = SolveOptions(threads=1, time_limit=SECONDS, objective="span_idle")
    result = solve(problem, options)
    if result.status is Status.INFEASIBLE and brute_force(problem, every_tick=True) is not None:
        counts.wrong_infeasible.append(name)
    if result.status is Status.OPTIMAL and result.measured is not None:
        value = result.measured.span_idle
        if value > 0 and least_span_idle(problem, most=value - 1) is not None:
            counts.wrong_optima.append(f"{name}: {value} is claimed")


def _judge_variants(counts: Counts, variants: Variants, name: str) -> None:
    """Hold the answer over all choices against the walks of all choices."""
    counts.variants += 1
    result = solve_variants(variants, SolveOptions(threads=1, time_limit=SECONDS)).result
    walks = [Exhaustive(variants.taken(choice)) for choice in choices_of(variants)]
    _hold_against(counts, walks, result, name)


def _hold_against(counts: Counts, walks: Sequence[Exhaustive], result: Result, name: str) -> None:
    """Whether any of the walks, one per choice, does better than is claimed."""

    def is_beaten(limit: int) -> bool:
        return any(walk.schedule(limit) is not None for walk in walks)

    claimed = max(result.lower_bound, result.engine_bound or 0)
    try:
        if result.status is Status.INFEASIBLE:
            counts.infeasible += 1
            if is_beaten(max(walk.longest for walk in walks)):
                counts.wrong_infeasible.append(name)
        elif result.status is Status.OPTIMAL and result.makespan is not None:
            counts.optimal += 1
            if is_beaten(result.makespan - 1):
                counts.wrong_optima.append(f"{name}: {result.makespan} is claimed")
            claimed = 0 if claimed <= result.makespan else claimed
        else:
            counts.undecided += 1
        if claimed and is_beaten(claimed - 1):
            counts.wrong_bounds.append(f"{name}: {claimed} is claimed")
    except TooMuchWork:
        counts.given_up += 1


def _starts(problem: Problem, result: Result) -> list[int]:
    assert result.schedule is not None
    start = np.zeros(problem.num_tasks, dtype=np.int64)
    start[problem.locate(result.schedule.program.actions)] = result.schedule.start
    return [int(value) for value in start]


def _keeps_index_order(problem: Problem, start: list[int]) -> bool:
    """Whether the schedule, sorted class by class, has all edges and chains that are claimed."""
    order = index_order(problem)
    begin = np.array(start, dtype=np.int64)
    for group in order.groups:
        begin[group] = np.sort(begin[group], axis=1)
    end = begin + problem.duration
    for edges in (problem.edges, order.order_edges, order.memory_edges):
        if (begin[edges.after] < end[edges.before] + edges.lag).any():
            return False
    return all(
        (end if one[1] else begin)[one[0]] <= (end if other[1] else begin)[other[0]]
        for chains in order.chains.values()
        for chain in chains
        for (one, _), (other, _) in pairwise(chain)
    )


if __name__ == "__main__":
    sys.stdout.write(str(sweep(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)) + "\n")
