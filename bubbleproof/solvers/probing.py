"""Search for a refutation: of two tasks of a resource either comes first.

The most constrained pair is tried in its tighter order; if that is refuted the other order holds,
and the search goes on with it. A refutation that does not need the supposed order refutes what
stood before it, too (``Windows.refute``).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from bubbleproof.solvers.propagator import OutOfTime, Propagator
from bubbleproof.solvers.windows import UNKNOWN, Windows

MOST_DEEP = 200  # suppositions open at once


@dataclass(slots=True)
class Budget:
    """When to stop: at a moment of ``time.perf_counter``, or after so many suppositions."""

    deadline: float
    nodes: int = 1 << 40
    used: int = field(default=0)

    def spend(self) -> None:
        """Count one supposition. Raises ``OutOfTime``."""
        self.used += 1
        if self.used > self.nodes or time.perf_counter() > self.deadline:
            raise OutOfTime


def refute(propagator: Propagator, windows: Windows, budget: Budget) -> bool:
    """Whether the windows were refuted; False leaves them as they are. Raises ``OutOfTime``."""
    while not propagator.run(windows):
        pair = tightest_pair(propagator, windows)
        if pair is None or len(windows.suppositions) >= MOST_DEEP:
            return False
        budget.spend()
        windows.suppose(*pair)
        if not refute(propagator, windows, budget):
            windows.retract()
            return False
        windows.refute()
    return True


def tightest_pair(propagator: Propagator, windows: Windows) -> tuple[int, int] | None:
    """The pair in no order yet that leaves the least slack, its tighter order first."""
    best, chosen = -UNKNOWN, None
    for tasks in propagator.tasks:
        if len(tasks) < 2:
            continue
        near = np.array([windows.bounds[0][t] for t in tasks.tolist()], dtype=np.int64)
        far = np.array([windows.bounds[1][t] for t in tasks.tolist()], dtype=np.int64)
        ticks = windows.problem.duration[tasks]
        slack = -((near + ticks)[:, None] + (ticks + far)[None, :])
        prior = windows.prior[np.ix_(tasks, tasks)]
        settled = prior | prior.T | (slack < 0) | (slack.T < 0)
        np.fill_diagonal(settled, True)
        score = np.where(settled, -UNKNOWN, slack + np.maximum(slack.T, slack))
        at = int(score.argmin())
        if score.flat[at] < best:
            best = int(score.flat[at])
            chosen = tuple(int(tasks[k]) for k in divmod(at, len(tasks)))
    return None if chosen is None else (chosen[0], chosen[1])
