"""Windows arranged anew: every schedule is checked, and better than the one before."""

from __future__ import annotations

import time
from functools import cache
from random import Random

import numpy as np
import pytest

from bubbleproof.solvers import SolveOptions
from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.engines.engine import Budget
from bubbleproof.solvers.lists.greedy import greedy_programs
from bubbleproof.solvers.search import Search
from bubbleproof.solvers.starts import schedule_of_starts, shifted, starts_by_task
from bubbleproof.solvers.window_search import WindowSearch
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift
from proofs_tests.judged import accepted
from proofs_tests.patience import PATIENCE
from proofs_tests.sized import sized
from proofs_tests.solvers.small import UNEVEN, V_SHAPE, split
from proofs_tests.zeros import zeros_or

# Half of an activation goes back at I: the store's clauses, not its edges, say what fits.
IN_PARTS = split(4, sized(8, full=16), 6, UNEVEN, part=True)
LOOP = Pipeline(num_ranks=4, num_microbatches=12, num_chunks=2, capacity=7, latency=1)


def listed(problem: Problem) -> Schedule:
    """The first listed schedule."""
    return left_shift(problem, next(greedy_programs(problem, lower_bounds(problem))))


def improved(problem: Problem, least: int = 0) -> list[Schedule]:
    """What windows make of the first listed schedule."""
    bounds, first = lower_bounds(problem), listed(problem)
    budget = Budget(deadline=time.perf_counter() + PATIENCE, threads=2)
    found = []
    for schedule in WindowSearch(problem, bounds, budget).improve(first, least):
        found.append(schedule)
        if len(found) == sized(1, full=5):
            break
    return found


@cache
def improved_once(pipeline: Pipeline) -> list[Schedule]:
    return improved(pipeline.problem())


def makespan(problem: Problem, schedule: Schedule) -> int:
    return accepted(problem, schedule).makespan


@pytest.mark.sweep
@pytest.mark.parametrize("pipeline", [V_SHAPE, IN_PARTS, LOOP], ids=["V", "in parts", "loop"])
def test_each_schedule_is_accepted_and_shorter(pipeline: Pipeline) -> None:
    problem = pipeline.problem()
    found = [listed(problem), *improved_once(pipeline)]
    values = [makespan(problem, schedule) for schedule in found]
    assert len(values) > 1
    assert values == sorted(set(values), reverse=True)
    assert values[-1] >= lower_bounds(problem).best.bound


def test_the_same_work_finds_the_same_schedules() -> None:
    once, again = improved_once(V_SHAPE), improved(V_SHAPE.problem())
    assert len(once) == len(again)
    assert all(np.array_equal(a.start, b.start) for a, b in zip(once, again, strict=True))


def test_nothing_is_tried_below_the_least_value() -> None:
    problem = LOOP.problem()
    assert improved(problem, makespan(problem, listed(problem))) == []


def test_microbatches_may_stand_in_any_order_in_what_is_improved() -> None:
    """A published order may run a later microbatch first; edges are of those in index order."""
    problem = LOOP.problem()
    listed_start = starts_by_task(problem, listed(problem))
    actions, turned = problem.actions, np.empty_like(listed_start)
    kinds = (actions.stage, actions.kind)
    turned[np.lexsort((actions.microbatch, *kinds))] = listed_start[
        np.lexsort((-actions.microbatch, *kinds))
    ]
    given = schedule_of_starts(problem, turned)
    assert makespan(problem, given) == makespan(problem, listed(problem))
    budget = Budget(deadline=time.perf_counter() + PATIENCE, threads=2)
    found = next(WindowSearch(problem, lower_bounds(problem), budget).improve(given))
    assert makespan(problem, found) < makespan(problem, given)


@pytest.mark.parametrize(
    ("value", "within", "calls"),
    [(None, None, 0), (105, None, 0), (106, None, 1), (120, 105, 0), (120, 106, 1)],
)
def test_far_from_the_bound_windows_come_before_further_bounds(
    monkeypatch: pytest.MonkeyPatch, value: int | None, within: int | None, calls: int
) -> None:
    options = SolveOptions(within=within)
    search = Search(Pipeline(num_ranks=2, num_microbatches=2).problem(), options)
    monkeypatch.setattr(Search, "value", value)
    monkeypatch.setattr(Search, "lower_bound", 100)
    shares: list[float] = []
    monkeypatch.setattr(search, "_improve", shares.append)
    search._improve_far()
    assert len(shares) == calls


@pytest.mark.parametrize(
    "changes",
    [
        {"forward": 0, "backward": 0, "latency": 0},
        {"forward": (0, 1) * 4, "backward": (1, 0, 0, 0) * 2, "latency": 0},
        {"backward": 0, "capacity": 1 << 70},
        {"capacity": (1 << 63) - 1},
    ],
)
def test_windows_of_instants_and_of_endless_room(changes: dict[str, int | tuple[int, ...]]) -> None:
    problem = LOOP.with_changes(**changes).problem()
    values = [makespan(problem, schedule) for schedule in improved(problem)]
    assert values == sorted(set(values), reverse=True)


def test_instants_stand_behind_what_they_wait_for() -> None:
    """The order that is read off starts can be timed, however many of them are at one instant."""
    for seed in range(sized(40, full=400)):
        random = Random(seed)
        stages = 2 * random.randint(1, 3)
        pipeline = Pipeline(
            num_ranks=stages // 2,
            num_microbatches=random.randint(1, 5),
            num_chunks=2,
            num_slices=random.randint(1, 2),
            placement=random.choice(["loop", "wave"]),
            forward=zeros_or(random, 1, 3, stages),
            backward=zeros_or(random, 1, 3, stages),
        )
        problem = pipeline.problem()
        schedule = listed(problem)
        (again,) = shifted(problem, starts_by_task(problem, schedule))
        assert makespan(problem, again) <= makespan(problem, schedule)
