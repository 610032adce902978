"""Destructive improvement: the largest objective that propagation refutes, with its proof.

Suppose that the objective were at most T. Windows shrink (``solvers.windows``) along paths, on each
resource (``solvers.sequencing``) and by what the stores can hold (``solvers.holding``) until
nothing changes; an empty window proves objective >= T + 1. What is left undecided is probed
(``solvers.probing``).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from bubbleproof.solvers.bounds import Bounds
from bubbleproof.solvers.probing import probe
from bubbleproof.solvers.propagator import OutOfTime, Propagator
from bubbleproof.solvers.windows import UNKNOWN, Windows
from bubbleproof.theory.actions import Ints
from bubbleproof.theory.problem import Problem
from bubbleproof.verify.certificate import Propagation

Attempt = Callable[[Windows], bool]
MOST_TASKS = 4096  # windows keep a relation between all pairs of tasks
ENDLESS = 1 << 60


def longest(problem: Problem) -> int:
    """A value that some schedule does not exceed on either objective, if there is a schedule.

    All durations and lags together: in a shortest schedule something always runs or is under way.
    """
    return int(problem.duration.sum() + np.maximum(problem.edges.lag, 0).sum())


def windows(problem: Problem, bounds: Bounds, limit: int) -> tuple[Ints, Ints] | None:
    """(earliest start, latest start) per task, in ticks, for makespans of at most ``limit``.

    Time 0 is the first start of a computation. None if there is no such schedule. A task that no
    path ties to a computation has no bounds: its window is -2**60 or to 2**60.
    """
    if problem.num_tasks > MOST_TASKS:
        return bounds.heads, limit - bounds.tails - problem.duration
    state = Windows(problem, bounds, limit)
    if Propagator(problem, bounds).run(state):
        return None
    low, high = (
        np.array([max(value, UNKNOWN // 2) for value in side[: problem.num_tasks]], dtype=np.int64)
        for side in state.bounds
    )
    return low, np.minimum(-high - problem.duration, ENDLESS)


def decide(
    problem: Problem, bounds: Bounds, limit: int, deadline: float
) -> Propagation | Ints | None:
    """Is there a schedule with a makespan of at most ``limit``? A proof, starts, or out of time.

    Starts (ticks per task) are for ``verify`` to judge: not all uses of memory are reasoned about.
    Preconditions: every task runs on a rank, and the bounds are not cyclic.
    """
    if problem.num_tasks > MOST_TASKS:
        return None
    state = Windows(problem, bounds, limit)
    try:
        starts = probe(Propagator(problem, bounds, deadline), state, deadline)
    except OutOfTime:
        return None
    return Propagation(bound=limit + 1, steps=state.proof()) if starts is None else starts


def improve(
    problem: Problem, bounds: Bounds, upper: int | None, deadline: float
) -> Propagation | None:
    """The best bound that is proved beyond ``bounds.best``, on the same objective; None if none is.

    ``upper`` (ticks) is the best known value, which no bound exceeds; ``deadline`` a moment of
    ``time.perf_counter``. Where no schedule exists and ``upper`` is None, the bound may reach
    ``longest(problem) + 1``, which proves just that. Precondition: the bounds are not cyclic.
    """
    if problem.num_tasks > MOST_TASKS:
        return None
    search = _Improvement(problem, bounds, upper, deadline)
    for attempt in (search.by_rules, search.by_probing):
        if upper is None or not search.reach(upper, attempt):
            search.climb(attempt)
    return search.proof


class _Improvement:
    """The best bound so far (``bound``, by ``proof``) and how it grows."""

    def __init__(
        self, problem: Problem, bounds: Bounds, upper: int | None, deadline: float
    ) -> None:
        self.problem, self.bounds, self.deadline = problem, bounds, deadline
        self.upper = longest(problem) + 1 if upper is None else upper
        self.is_span = bounds.best.objective == "span_idle"
        self.bound = bounds.best.bound
        self.proof: Propagation | None = None
        self.propagator = Propagator(problem, bounds, deadline)

    def climb(self, attempt: Attempt) -> None:
        """Refute ever larger values: in doubled steps, then again in steps of one.

        ``attempt`` says whether it refutes the windows of a value.
        """
        step, ceiling = 1, self.upper
        while self.bound < ceiling:
            target = min(self.bound + step, ceiling)
            if self.reach(target, attempt):
                step *= 2
            elif step == 1:
                return
            else:
                step, ceiling = 1, target - 1

    def reach(self, target: int, attempt: Attempt) -> bool:
        """Whether the attempt raises the bound to ``target``, if it is not there."""
        if self.bound >= target:
            return True
        ranks = range(self.problem.num_ranks) if self.is_span else (None,)
        return any(self._is_refuted(target, rank, attempt) for rank in ranks)

    def _is_refuted(self, target: int, rank: int | None, attempt: Attempt) -> bool:
        state = Windows(self.problem, self.bounds, target - 1, span=rank)
        try:
            if not attempt(state):
                return False
        except OutOfTime:
            return False
        self.bound = target
        self.proof = Propagation(
            bound=target, steps=state.proof(), objective=self.bounds.best.objective, rank=rank or 0
        )
        return True

    def by_rules(self, state: Windows) -> bool:
        return self.propagator.run(state)

    def by_probing(self, state: Windows) -> bool:
        now = time.perf_counter()
        return probe(self.propagator, state, now + (self.deadline - now) / 2) is None
