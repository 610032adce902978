"""Destructive improvement: the largest objective that propagation refutes, with its proof.

Suppose that the objective were at most T. Windows shrink (``solvers.refutation.windows``) along
paths, on each resource (``solvers.refutation.propagator``) and by what the stores can hold
(``solvers.refutation.overloads``) until nothing changes; an empty window proves objective >= T + 1.

What is left undecided is probed: of two tasks of a resource either comes first. A pair in no order
yet is tried in its tighter order; if that is refuted the other order holds, and the search goes on
with it. A refutation that does not need the supposed order refutes what stood before it, too
(``Windows.refute``). With all pairs in order the earliest starts are a schedule, but for uses of
memory that no rule covers. No rule for choosing the pair is good everywhere, so several take turns,
each time with a larger budget; what was refuted at the top stays known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from math import inf

import numpy as np

from bubbleproof.solvers.bounds import Bounds
from bubbleproof.solvers.engines.engine import UNLIMITED, Budget
from bubbleproof.solvers.refutation.propagator import OutOfTime, Propagator
from bubbleproof.solvers.refutation.windows import UNKNOWN, Event, Windows
from bubbleproof.solvers.starts import schedule_of_starts
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.verify.certificates.certificate import Drup
from bubbleproof.verify.check import check

Attempt = Callable[[Windows], Event | None]  # what refutes the windows, if it does
RefutedWindows = tuple[Windows, Event, int]  # the windows, what refutes them, and the rank
MOST_TASKS = 4096  # windows keep a relation between all pairs of tasks
ENDLESS = 1 << 60


def longest(problem: Problem) -> int:
    """A value that some schedule does not exceed on either objective, if there is a schedule.

    All durations and lags together: in a shortest schedule something always runs or is under way.
    """
    return int(problem.duration.sum() + np.maximum(problem.edges.lag, 0).sum())


def windows(
    problem: Problem, bounds: Bounds, limit: int, budget: Budget = UNLIMITED, units: float = inf
) -> tuple[Ints, Ints] | None:
    """(earliest start, latest start) per task, in ticks, for makespans of at most ``limit``.

    Time 0 is the first start of a computation. None if there is no such schedule. A task that no
    path ties to a computation has no bounds: its window is -2**60 or to 2**60. After so many
    ``units`` of the budget windows are as far as they have shrunk.

    Parameters
    ----------
    limit
        The largest makespan, in ticks.
    units
        Work of the budget after which the windows are taken as they are.

    Returns
    -------
    tuple[Ints, Ints] | None
        Earliest and latest starts in ticks, of one shape (num_tasks,).
    """
    if problem.num_tasks > MOST_TASKS:
        return bounds.heads, limit - bounds.tails - problem.duration
    state = Windows(problem, bounds, limit)
    try:
        if Propagator(problem, bounds, budget.after(units), budget).run(state):
            return None
    except OutOfTime:
        pass
    low, high = (
        np.array([max(value, UNKNOWN // 2) for value in side[: problem.num_tasks]], dtype=np.int64)
        for side in state.bounds
    )
    return low, np.minimum(-high - problem.duration, ENDLESS)


def decide(problem: Problem, bounds: Bounds, limit: int, deadline: float) -> Drup | Ints | None:
    """Is there a schedule with a makespan of at most ``limit``? A proof, starts, or out of time.

    Starts (ticks per task) are for ``verify`` to judge: not all uses of memory are reasoned about.
    Preconditions: every task runs on a rank, and the bounds are not cyclic.

    Parameters
    ----------
    limit
        The largest makespan, in ticks.
    deadline
        Seconds of ``time.perf_counter``.
    """
    if problem.num_tasks > MOST_TASKS:
        return None
    state = Windows(problem, bounds, limit)
    try:
        found = probe(Propagator(problem, bounds, deadline), state, deadline)
    except OutOfTime:
        return None
    if isinstance(found, Event):
        return Drup(bound=limit + 1, lemmas=state.proof(found))
    return found


def improve(problem: Problem, bounds: Bounds, upper: int | None, deadline: float) -> Drup | None:
    """The best bound that is proved beyond ``bounds.best``, on the same objective; None if none is.

    ``upper`` (ticks) is the best known value, which no bound exceeds; ``deadline`` a moment of
    ``time.perf_counter``. Where no schedule exists and ``upper`` is None, the bound may reach
    ``longest(problem) + 1``, which proves just that. Precondition: the bounds are not cyclic.

    Parameters
    ----------
    upper
        The best known value in ticks, which no bound exceeds; None for none.
    deadline
        Seconds of ``time.perf_counter``.
    """
    return narrow(problem, bounds, upper, deadline).certificate


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PropagationResult:
    """What closes in on the optimum: a bound with its proof, and a schedule that was checked."""

    certificate: Drup | None
    schedule: Schedule | None


def narrow(
    problem: Problem,
    bounds: Bounds,
    upper: int | None,
    deadline: float,
    *,
    known: int = 0,
    budget: Budget = UNLIMITED,
) -> PropagationResult:
    """As ``improve``, with the best schedule below ``upper`` that the search met on its way.

    Parameters
    ----------
    upper
        The best known value in ticks, which no bound exceeds; None for none.
    deadline
        A moment of ``budget``.
    known
        A bound that is proved already, in ticks: the search goes on from there.
    """
    if problem.num_tasks > MOST_TASKS:
        return PropagationResult(certificate=None, schedule=None)
    search = _Improvement(problem, bounds, upper, deadline, budget)
    search.bound = max(search.bound, known)
    if upper is None or not search.reach(upper, search.by_rules):
        search.climb(search.by_rules)
    if upper is not None and not search.reach(search.upper, search.by_probing):
        search.bisect()
    search.climb(search.by_probing)
    return PropagationResult(certificate=search.proof, schedule=search.schedule)


class _Improvement:
    """The best bound so far (``bound``, by ``proof``), the best value, and how they approach."""

    def __init__(
        self,
        problem: Problem,
        bounds: Bounds,
        upper: int | None,
        deadline: float,
        budget: Budget,
    ) -> None:
        self.problem, self.bounds, self.deadline = problem, bounds, deadline
        self.upper = longest(problem) + 1 if upper is None else upper
        self.is_span = bounds.best.objective == "span_idle"
        self.bound = bounds.best.bound
        self.refuted: RefutedWindows | None = None  # of the bound
        self.schedule: Schedule | None = None
        self.propagator = Propagator(problem, bounds, deadline, budget)

    @property
    def proof(self) -> Drup | None:
        """The proof of the bound, if it was raised."""
        if self.refuted is None:
            return None
        state, failure, rank = self.refuted
        lemmas, objective = state.proof(failure), self.bounds.best.objective
        return Drup(bound=self.bound, lemmas=lemmas, objective=objective, rank=rank)

    def climb(self, attempt: Attempt) -> None:
        """Refute ever larger values: in doubled steps, then by halving what is open.

        ``attempt`` says by what it refutes the windows of a value, if it does.
        """
        step, ceiling, is_doubling = 1, self.upper, True
        while self.bound < ceiling:
            target = min(self.bound + step, ceiling)
            if not self.reach(target, attempt):
                ceiling, is_doubling = target - 1, False
            step = 2 * step if is_doubling else (ceiling - self.bound + 1) // 2

    def bisect(self) -> None:
        """Probe the middle of what is open, until nothing is or a probe remains without answer."""
        while self.bound < self.upper:
            before = (self.bound, self.upper)
            self.reach((self.bound + self.upper + 1) // 2, self.by_probing)
            if (self.bound, self.upper) == before:
                return

    def reach(self, target: int, attempt: Attempt) -> bool:
        """Whether the attempt raises the bound to ``target``, if it is not there."""
        if self.bound >= target:
            return True
        ranks = range(self.problem.num_ranks) if self.is_span else (None,)
        for rank in ranks:
            if self._is_refuted(target, rank, attempt):
                return True
            if self.upper < target:  # a schedule was found instead
                break
        return False

    def _is_refuted(self, target: int, rank: int | None, attempt: Attempt) -> bool:
        state = Windows(self.problem, self.bounds, target - 1, span=rank)
        try:
            failure = attempt(state)
        except OutOfTime:
            return False
        if failure is None:
            return False
        self.bound, self.refuted = target, (state, failure, rank or 0)
        return True

    def by_rules(self, state: Windows) -> Event | None:
        return self.propagator.run(state)

    def by_probing(self, state: Windows) -> Event | None:
        now = self.propagator.budget.now()
        found = probe(self.propagator, state, now + (self.deadline - now) / 2)
        if isinstance(found, Event):
            return found
        self._offer(found)
        return None

    def _offer(self, starts: Ints) -> None:
        """Keep a schedule that ``verify`` accepts and that is better than the best known."""
        if starts.min() < UNKNOWN // 2:
            return  # some transfer has no earliest start
        schedule = schedule_of_starts(self.problem, starts - starts.min())
        verdict = check(self.problem, schedule)
        if not verdict.ok or verdict.measured is None:
            return
        value = verdict.measured.span_idle if self.is_span else verdict.measured.makespan
        if value < self.upper:
            self.upper, self.schedule = value, schedule


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
