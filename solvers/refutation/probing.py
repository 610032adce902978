"""Search for a refutation or a schedule: of two tasks of a resource either comes first.

A pair in no order yet is tried in its tighter order; if that is refuted the other order holds, and
the search goes on with it. A refutation that does not need the supposed order refutes what stood
before it, too (``Windows.refute``). With all pairs in order the earliest starts are a schedule,
but for uses of memory that no rule covers. No rule for choosing the pair is good everywhere, so
several take turns, each time with a larger budget; what was refuted at the top stays known.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import numpy as np

from bubbleproof.solvers.refutation.propagator import OutOfTime, Propagator
from bubbleproof.solvers.refutation.windows import UNKNOWN, Event, Windows
from bubbleproof.theory.model.actions import Ints

MOST_DEEP = 200  # suppositions open at once
FIRST_BUDGET = 40  # suppositions in the first round

Score = Callable[[Ints, Ints], Ints]

# From the slack that "i before u" and "u before i" would leave, shapes [tasks, tasks]; the least
# wins. In turn: tight either way; tight one way, then the other; tight one way and loose the other.
SCORES: tuple[Score, ...] = (
    lambda slack, reverse: slack + np.maximum(slack, reverse),
    lambda slack, reverse: slack * (1 << 20) + reverse,
    lambda slack, reverse: slack * (1 << 20) - reverse,
)


def probe(propagator: Propagator, windows: Windows, deadline: float) -> Ints | Event:
    """What refutes the windows, or earliest starts in which no two tasks overlap.

    Parameters
    ----------
    deadline
        A moment of the propagator's budget.

    Raises
    ------
    OutOfTime
        When that moment has come.
    """
    depth = len(windows.suppositions)
    for turn in count():
        budget = FIRST_BUDGET << turn // len(SCORES)
        search = _Search(propagator, windows, SCORES[turn % len(SCORES)], budget, deadline)
        try:
            return search.run()
        except _BudgetSpent:
            while len(windows.suppositions) > depth:
                windows.retract()
    raise AssertionError("the turns have no end")


class _BudgetSpent(Exception):  # noqa: N818 - ends a turn, not an error of the caller
    pass


class _Search:
    """One turn: one rule of choice and a number of suppositions."""

    def __init__(
        self, propagator: Propagator, windows: Windows, score: Score, budget: int, deadline: float
    ) -> None:
        self.propagator, self.windows, self.score = propagator, windows, score
        self.budget, self.deadline = budget, deadline

    def run(self) -> Ints | Event:
        """What refutes the windows; or starts, and the windows are as before."""
        windows = self.windows
        while (failure := self.propagator.run(windows)) is None:
            pair = self._next_pair()
            if pair is None:
                return np.array(windows.bounds[0][: windows.num_tasks], dtype=np.int64)
            if self.propagator.budget.is_past(self.deadline):
                raise OutOfTime
            if not self.budget or len(windows.suppositions) >= MOST_DEEP:
                raise _BudgetSpent
            self.budget -= 1
            windows.suppose(*pair)
            found = self.run()
            if not isinstance(found, Event):
                windows.retract()
                return found
            windows.refute(found)
        return failure

    def _next_pair(self) -> tuple[int, int] | None:
        """The pair in no order yet that the score prefers, the order to suppose."""
        windows, best = self.windows, -UNKNOWN
        chosen: tuple[int, int] | None = None
        for tasks in self.propagator.tasks:
            near, far = (
                np.array([side[t] for t in tasks.tolist()], dtype=np.int64)
                for side in windows.bounds
            )
            ticks = windows.problem.duration[tasks]
            slack = -((near + ticks)[:, None] + (ticks + far)[None, :])
            prior = windows.prior[np.ix_(tasks, tasks)]
            settled = prior | prior.T | (slack < 0) | (slack.T < 0)
            np.fill_diagonal(settled, True)
            score = np.where(settled, -UNKNOWN, self.score(slack, slack.T))
            at = int(score.argmin())
            if score.flat[at] < best:
                best = int(score.flat[at])
                first, second = divmod(at, len(tasks))
                chosen = int(tasks[first]), int(tasks[second])
        return chosen
