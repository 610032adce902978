"""Timing noise: makespans under random durations (``theory.pipelines.programs.spread``).

The orders of a schedule are kept and its times are not: in each sampled step every action starts as
early as its inputs and its resources allow, with the durations of that step. All schedules of a
plan are timed with one seed, so that a slow rank is slow for all of them. Memory is that of the
orders where only a rank's own actions change what it holds; transfers may shift against them.

``expected`` is the mean of the sampled makespans and ``p95`` the least makespan that 95 % of the
samples stay within, both in ticks.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import inf

import numpy as np
import numpy.typing as npt

from bubbleproof.planners.planned import NoPlanFound, Plan, SolvedCandidate
from bubbleproof.planners.search_budget import LateError, Pace
from bubbleproof.theory.model.actions import NONE, Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.programs.acyclic import acyclic_order
from bubbleproof.theory.pipelines.programs.spread import Spread
from bubbleproof.theory.pipelines.timing import waiting_edges

Floats = npt.NDArray[np.float64]
MOST_NUMBERS = 4_000_000  # starts that are held at once
WALKED, DRAWN = 1e-5, 5e-8  # seconds for a task at each walk through the order, and for each start

MOST_TIMED = 24  # candidates, the shortest schedules first
MOST_COUNTED = 60.0  # seconds, by their estimate, where no clock is to decide


@dataclass(frozen=True, slots=True, kw_only=True)
class Jitter:
    """Makespans in ticks over the samples: the mean, and the 5 %, 50 % and 95 % quantiles."""

    expected: float
    p5: float
    median: float
    p95: float


AnyPlan = Plan | NoPlanFound
Timed = Mapping[str, Jitter]  # by the candidate's text


def jitter_seconds(num_tasks: int, spread: Spread) -> float:
    """Seconds, about, to sample a schedule of so many tasks.

    Parameters
    ----------
    num_tasks
        Tasks of the schedule.
    """
    walks = -(-spread.samples // _steps_at_once(num_tasks))
    return num_tasks * (walks * WALKED + spread.samples * DRAWN)


def _steps_at_once(num_tasks: int) -> int:
    return max(1, MOST_NUMBERS // max(1, num_tasks))


def jitter(problem: Problem, schedule: Schedule, spread: Spread, deadline: float = inf) -> Jitter:
    """How long the schedule takes where durations spread.

    Parameters
    ----------
    deadline
        A moment of ``time.perf_counter``.

    Raises
    ------
    LateError
        Where it is past before all steps are drawn.
    """
    size = _steps_at_once(problem.num_tasks)
    streams = np.random.default_rng(spread.seed).spawn(-(-spread.samples // size))
    left, found = spread.samples, []
    for stream in streams:
        found.append(_makespans(problem, schedule, spread, min(size, left), stream, deadline))
        left -= size
    spans = np.concatenate(found)
    p5, median, p95 = (float(np.quantile(spans, part)) for part in (0.05, 0.5, 0.95))
    return Jitter(expected=float(spans.mean()), p5=p5, median=median, p95=p95)


def timed_candidates(found: AnyPlan, spread: Spread, seconds: float = inf) -> Timed:
    """How long the best candidates' schedules take where durations spread.

    A cost that has more than the makespan is not sampled. Those that the seconds do not suffice for
    are left out, by an estimate that those before correct; without a limit the estimate decides.

    Parameters
    ----------
    seconds
        For which is sampled at most.
    """
    timed: dict[str, Jitter] = {}
    estimated = 0.0 if seconds == inf else -inf
    deadline, pace = time.perf_counter() + seconds, Pace()
    for one in found.ranked()[:MOST_TIMED]:
        if isinstance(one, SolvedCandidate) and not one.has_more:
            needed = jitter_seconds(len(one.schedule), spread)
            estimated += needed
            began = time.perf_counter()
            if estimated <= MOST_COUNTED and began + needed * pace.factor <= deadline:
                problem = one.pipeline.problem()
                with suppress(LateError):
                    timed[str(one.candidate)] = jitter(problem, one.schedule, spread, deadline)
                pace.measure(needed, time.perf_counter() - began)
    return timed


def _makespans(
    problem: Problem,
    schedule: Schedule,
    spread: Spread,
    size: int,
    stream: np.random.Generator,
    deadline: float,
) -> Floats:
    """The makespan of each of ``size`` sampled steps."""
    durations = _durations(problem, spread, size, stream)
    task = problem.locate(schedule.program.actions)
    before, after, lag = waiting_edges(problem, schedule.program, task)
    lags = lag * _link_factors(problem, before, after, spread)
    order = acyclic_order(problem.num_tasks, before, after)
    by_task = np.argsort(after, kind="stable")
    first = np.searchsorted(after[by_task], np.arange(problem.num_tasks + 1))
    ends = np.zeros_like(durations)
    for one in order:
        if time.perf_counter() > deadline:
            raise LateError
        rows = by_task[first[one] : first[one + 1]]
        ends[one] = durations[one]
        if len(rows):
            ends[one] += (ends[before[rows]] + lags[rows, None]).max(axis=0)
    ranked = problem.rank_of_task != NONE
    starts = ends[ranked] - durations[ranked]
    return np.asarray(ends[ranked].max(axis=0) - starts.min(axis=0), dtype=np.float64)


def _durations(problem: Problem, spread: Spread, size: int, stream: np.random.Generator) -> Floats:
    """Ticks of each task in each step, shape (num_tasks, size)."""
    of_rank = _factors(spread.rank_percent, (problem.num_ranks + 1, size), stream)
    of_rank[-1] = 1.0  # what runs on no rank: NONE is the last place
    if spread.straggler is not None:
        rank, percent = spread.straggler
        of_rank[rank] *= 1 + percent / 100
    of_action = _factors(spread.action_percent, (problem.num_tasks, size), stream)
    factors = of_action * of_rank[problem.rank_of_task]
    if spread.slow_link is not None:
        factors[_on_slow_link(problem, spread.slow_link)] *= 1 + spread.slow_link[2] / 100
    return np.asarray(problem.duration[:, None] * factors, dtype=np.float64)


def _factors(percent: int, shape: tuple[int, int], stream: np.random.Generator) -> Floats:
    """Log-normal factors of mean 1 and of that standard deviation."""
    variance = np.log1p((percent / 100) ** 2)
    return stream.lognormal(-variance / 2, np.sqrt(variance), shape)


def _on_slow_link(problem: Problem, slow_link: tuple[int, int, int]) -> Ints:
    """The tasks that occupy the slow link, in either direction."""
    one, other = sorted(slow_link[:2])
    names = {f"link {one}-{other}", f"link {one}>{other}", f"link {other}>{one}"}
    slow = [i for i, home in enumerate(problem.resources) if home.name in names]
    return problem.occupancy.task[np.isin(problem.occupancy.resource, slow)]


def _link_factors(problem: Problem, before: Ints, after: Ints, spread: Spread) -> Floats:
    """By what the lag of each edge grows: those between the ranks of the slow link, or after it."""
    factors = np.ones(len(before))
    if spread.slow_link is not None:
        one, other, percent = spread.slow_link
        ranks = np.sort(
            np.stack([problem.rank_of_task[before], problem.rank_of_task[after]]), axis=0
        )
        between = (ranks[0] == min(one, other)) & (ranks[1] == max(one, other))
        between |= np.isin(before, _on_slow_link(problem, spread.slow_link))
        factors[between] += percent / 100
    return factors
