"""Rules 1 to 5 and 8 of a schedule, beside a plain pass of numpy over the same arrays."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from bubbleproof.theory.families import member
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.verify import check

T = TypeVar("T")


def timed(action: Callable[[], T], repeats: int) -> tuple[float, T]:
    """The least processor seconds of ``repeats`` runs, and the last result."""
    seconds = []
    for _ in range(repeats):
        gc.collect()
        begin = time.process_time()
        result = action()
        seconds.append(time.process_time() - begin)
    return min(seconds), result


def measure_check(
    tell: Callable[[dict[str, float]], None],
    ranks: int,
    microbatches: int,
    chunks: int,
    repeats: int,
) -> None:
    """Tell the seconds of ``check`` and of the plain pass; both must find the same makespan."""
    found = member("interleaved", p=ranks, m=microbatches, v=chunks)
    problem, schedule = found.problem, found.schedule
    checking, verdict = timed(lambda: check(problem, schedule), repeats)
    plain, makespan = timed(lambda: plain_pass(problem, schedule), repeats)
    assert verdict.ok, str(verdict)
    assert verdict.measured is not None
    assert verdict.measured.makespan == makespan
    tell({"check_s": checking, "plain_s": plain})


def plain_pass(problem: Problem, schedule: Schedule) -> int:
    """The makespan of a valid schedule, whose tasks occupy one resource each; else an assertion.

    No counterexample, no name, no case but this: what the arrays cost at the least.
    """
    rows, edges, events = schedule.program, problem.edges, problem.events
    wanted, known = rows.actions.keys(), problem.actions.keys()
    by_row, by_task = np.argsort(wanted), np.argsort(known)
    assert np.array_equal(wanted[by_row], known[by_task])
    task = np.empty_like(by_row)
    task[by_row] = by_task
    start = np.empty_like(by_row)
    start[task] = schedule.start
    end = start + problem.duration
    assert (rows.resource == problem.occupancy.resource[task]).all()
    assert (start[edges.after] >= end[edges.before] + edges.lag).all()
    assert start.min() >= 0
    same = rows.resource[1:] == rows.resource[:-1]
    assert (schedule.start[1:] >= end[task[:-1]])[same].all()
    when = np.where(events.at_end, end[events.task], start[events.task])
    order = np.lexsort((events.delta > 0, when, events.store))
    store, delta = events.store[order], events.delta[order]
    level = np.cumsum(delta)
    first = np.flatnonzero(np.diff(store, prepend=-1))
    level -= np.repeat(level[first] - delta[first], np.diff(first, append=len(store)))
    assert (level >= 0).all()
    assert (np.maximum.reduceat(level, first) >= 0).all()
    return int(end.max() - start.min())
