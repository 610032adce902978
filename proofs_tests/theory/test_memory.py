"""The load of a store over time, against adding up from scratch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubbleproof.theory.model import memory
from bubbleproof.theory.model.memory import memory_profile
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.drawn_programs import ordered_pipelines

Ordered = tuple[Pipeline, Problem, Program]
some_starts = st.lists(st.integers(-5, 30), min_size=200, max_size=200)


def load_at(problem: Problem, begin: list[int], store: int, now: int) -> int:
    """The load of a store after all changes up to and at an instant."""
    events, load = problem.events, problem.stores[store].base
    for i in range(len(events)):
        task = int(events.task[i])
        when = begin[task] + (int(problem.duration[task]) if events.at_end[i] else 0)
        if events.store[i] == store and when <= now:
            load += int(events.delta[i])
    return load


@given(ordered_pipelines(), some_starts)
def test_curves_are_the_load_at_every_instant(made: Ordered, drawn: list[int]) -> None:
    _, problem, _ = made
    begin = [drawn[t % len(drawn)] for t in range(problem.num_tasks)]
    profile = memory_profile(problem, np.arange(problem.num_tasks), np.array(begin))
    for store in range(len(problem.stores)):
        times, loads = profile.curve(problem, store)
        assert (np.diff(times) > 0).all()
        staircase = dict(zip(times.tolist(), loads.tolist(), strict=True))
        level = problem.stores[store].base
        for now in range(-6, 50):
            level = staircase.get(now, level)
            assert level == load_at(problem, begin, store, now)


@given(ordered_pipelines(), some_starts)
def test_peaks_are_the_highest_load_of_any_instant(made: Ordered, drawn: list[int]) -> None:
    _, problem, _ = made
    begin = [drawn[t % len(drawn)] for t in range(problem.num_tasks)]
    profile = memory_profile(problem, np.arange(problem.num_tasks), np.array(begin))
    for store, peak in enumerate(profile.peaks(problem).tolist()):
        every = [load_at(problem, begin, store, now) for now in range(-6, 50)]
        assert peak == max(problem.stores[store].base, *every)


def test_releases_come_first_at_equal_times() -> None:
    # 0B0 ends at 3 and 0F1 starts at 3: the load stays 1.
    problem = Pipeline(num_ranks=1, num_microbatches=2).problem()
    tasks = [problem.task(text) for text in ("0F0", "0B0", "0F1", "0B1")]
    profile = memory_profile(problem, np.array(tasks), np.array([0, 1, 3, 4]))
    assert profile.peaks(problem).tolist() == [1]
    assert profile.level.tolist() == [1, 0, 1, 0]
    assert profile.is_settled.tolist() == [True, False, True, True]


def test_a_repeated_task_counts_by_its_first_row() -> None:
    problem = Pipeline(num_ranks=1, num_microbatches=1).problem()
    profile = memory_profile(problem, np.array([0, 1, 1]), np.array([0, 5, 99]))
    assert profile.time.tolist() == [0, 7]


def test_tasks_that_do_not_run_change_nothing() -> None:
    problem = Pipeline(num_ranks=2, num_microbatches=1, static=(3, 4)).problem()
    none = np.zeros(0, dtype=np.int64)
    profile = memory_profile(problem, none, none)
    assert profile.peaks(problem).tolist() == [3, 4]
    assert profile.is_settled.tolist() == []
    times, loads = profile.curve(problem, 1)
    assert (times.tolist(), loads.tolist()) == ([0], [4])


# Two stores and 7 ticks at most: a packed key (2 stores, 6 scale + 1 ticks, release or not) stays
# below 24 scale + 4, which is beyond 2**63 from 2**59 on, and below it at 2**58.
@pytest.mark.parametrize("scale", [1, 1 << 58, 1 << 59])
def test_times_too_long_for_a_packed_key_sort_alike(scale: int) -> None:
    sort: Callable[..., np.ndarray[tuple[int], np.dtype[np.int64]]] = memory._by_store_and_time
    store = np.array([1, 0, 1, 0, 1])
    time = np.array([4, 7, 4, 2, 1]) * scale
    delta = np.array([1, 1, -1, 1, 1])
    assert sort(store, time, delta).tolist() == [3, 1, 4, 2, 0]


def test_times_before_zero_sort_by_store_first() -> None:
    sort: Callable[..., np.ndarray[tuple[int], np.dtype[np.int64]]] = memory._by_store_and_time
    assert sort(np.array([0, 1]), np.array([5, -10]), np.array([1, 1])).tolist() == [0, 1]
