"""Measures: makespan, the four bubbles and the memory peaks, each defined once.

For p ranks, with ``work`` the ticks of compute on all ranks together and ``work_r`` those on r:

- ``makespan``: last end - first start over all ranks;
- ``rank_span(r)``: last end - first start on rank r;
- ``idle_ratio`` = 1 - work / (p * makespan);
- ``idle_over_work`` = (p * makespan - work) / work;
- ``idle_ticks(r)`` = makespan - work_r;
- ``span_idle`` = max over r of (rank_span(r) - work_r), the zero-bubble papers' bubble: the
  optimizer step needs no barrier across ranks;
- ``peak_memory(r)``: the highest load of rank r's store, base included, in memory units;
- ``peak_activations(r)``: the same above the base load.

Transfers on links, NICs and copy engines are no work and do not stretch a span.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from bubbleproof.theory.model.actions import NONE, Ints
from bubbleproof.theory.model.memory import MemoryProfile, memory_profile
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """What a schedule costs: ticks and memory units as int, ratios exact, lists by rank."""

    makespan: int
    work: int
    idle_ratio: Fraction
    idle_over_work: Fraction
    idle_ticks: tuple[int, ...]
    rank_spans: tuple[int, ...]
    span_idle: int
    peak_memory: tuple[int, ...]
    peak_activations: tuple[int, ...]


def measure(problem: Problem, schedule: Schedule) -> Measures:
    """Measure a schedule; rows that are no task of the problem, or repeat one, do not count."""
    task, resource, start = known_rows(problem, schedule)
    return measure_rows(problem, task, resource, start)


def known_rows(problem: Problem, schedule: Schedule) -> tuple[Ints, Ints, Ints]:
    """The rows (task, resource, start) that name a task of the problem, each pair once."""
    task = problem.locate(schedule.program.actions)
    known = task != NONE
    resource = schedule.program.resource
    key = task * (int(resource.max(initial=0)) + 1) + resource
    once = np.zeros(len(task), dtype=bool)
    once[np.unique(key, return_index=True)[1]] = True
    rows = np.flatnonzero(known & once)
    return task[rows], resource[rows], schedule.start[rows]


def measure_rows(
    problem: Problem,
    task: Ints,
    resource: Ints,
    start: Ints,
    *,
    profile: MemoryProfile | None = None,
) -> Measures:
    """Measure rows that are known to be tasks of the problem (see ``known_rows``).

    Parameters
    ----------
    task
        The task of each row, as an index into the problem.
    resource
        The resource that each row stands on; those below ``num_ranks`` are ranks.
    start
        The tick at which each row starts, of the same shape (rows,).
    profile
        Their ``memory_profile``, where it is known.

    Returns
    -------
    Measures
        Times are in ticks, and a rank's peak load in units of memory.
    """
    p = problem.num_ranks
    compute = resource < p
    rank, begin = resource[compute], start[compute]
    duration = problem.duration[task[compute]]
    first = np.full(p, np.iinfo(np.int64).max)
    last = np.full(p, np.iinfo(np.int64).min)
    np.minimum.at(first, rank, begin)
    np.maximum.at(last, rank, begin + duration)
    work = np.zeros(p, dtype=np.int64)
    np.add.at(work, rank, duration)
    spans = np.where(first <= last, last - first, 0)
    makespan = int(last.max() - first.min()) if len(rank) else 0
    total, area = int(work.sum()), p * makespan
    peaks = (profile or memory_profile(problem, task, start)).peaks(problem)[:p]
    base = np.array([store.base for store in problem.stores[:p]], dtype=np.int64)
    return Measures(
        makespan=makespan,
        work=total,
        idle_ratio=Fraction(area - total, area) if area else Fraction(0),
        idle_over_work=Fraction(area - total, total) if total else Fraction(0),
        idle_ticks=tuple((makespan - work).tolist()),
        rank_spans=tuple(spans.tolist()),
        span_idle=int((spans - work).max()),
        peak_memory=tuple(peaks.tolist()),
        peak_activations=tuple((peaks - base).tolist()),
    )
