"""The SAT engine (python-sat, Glucose 4): an order encoding, for times of a few thousand ticks.

Each trial limit is a formula of its own, since tighter windows make smaller formulas. Without a
schedule the limits climb from the bound in doubling steps, with one they halve the gap. A formula
that would be too large ends the search with what is known.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from pysat.solvers import Solver

from bubbleproof.solvers.encoding import Encoding
from bubbleproof.solvers.engines.engine import Budget, Outcome
from bubbleproof.solvers.engines.sat_clauses import TooLargeError
from bubbleproof.solvers.engines.sat_model import SatModel
from bubbleproof.theory.model.actions import NONE, Ints

SOLVER = "glucose4"
POLL_SECONDS = 0.05


def search(encoding: Encoding, hint: Ints | None, budget: Budget) -> Outcome:
    """The best starts within the limit, and the bound below which every limit was refuted."""
    if encoding.is_hopeless:
        return Outcome(bound=encoding.limit + 1, is_refuted=True)
    return _Search(encoding, budget).run(hint)


class _Search:
    def __init__(self, encoding: Encoding, budget: Budget) -> None:
        self.encoding, self.budget = encoding, budget
        self.least = self.bound = 0
        if encoding.objective == "makespan":
            self.least = self.bound = min(encoding.bounds.best.bound, encoding.limit)
        self.best: int | None = None
        self.start: Ints | None = None

    def run(self, hint: Ints | None) -> Outcome:
        if hint is not None:
            self.best = objective_value(self.encoding, hint)
        step = 1
        while self.best is None or self.bound < self.best:
            limit = min(self.encoding.limit, self.bound + step - 1)
            if self.best is not None:
                limit = (self.bound + self.best - 1) // 2
            try:
                found = self.satisfy(limit)
            except TooLargeError:
                break
            if found is None:
                break
            self._report()
            if self.bound > self.encoding.limit:
                return Outcome(bound=self.bound, is_refuted=self.best is None)
            step *= 2
        is_known = self.start is not None or self.bound > self.least
        return Outcome(start=self.start, bound=self.bound if is_known else None)

    def satisfy(self, limit: int) -> bool | None:
        """Whether some schedule is within the limit, kept if so; None without an answer in time."""
        model = SatModel(self.encoding, limit, lambda: not self.budget.seconds)
        model.build()
        with Solver(name=SOLVER, bootstrap_with=model.cnf.clauses) as solver:
            found = solved(solver, self.budget)
            if found:
                self.start = model.starts(solver.get_model())
                self.best = objective_value(self.encoding, self.start)
            elif found is not None:
                self.bound = (limit // model.size + 1) * model.size
        return found

    def _report(self) -> None:
        if self.budget.report is not None:
            self.budget.report(self.best, self.bound)


def objective_value(encoding: Encoding, start: Ints) -> int:
    """The makespan or ``span_idle`` of starts per task (ticks)."""
    problem = encoding.problem
    end = start + problem.duration
    if encoding.objective == "makespan":
        compute = problem.rank_of_task != NONE
        return int(end[compute].max() - start[compute].min())
    tasks = [encoding.tasks_on(rank) for rank in encoding.ranks]
    idle = [end[t].max() - start[t].min() - problem.duration[t].sum() for t in tasks if len(t)]
    return int(np.max(idle))


def solved(solver: Solver, budget: Budget) -> bool | None:
    """The solver's answer; None once the budget is spent."""
    with _interrupting(solver, budget):
        answer: bool | None = solver.solve_limited(expect_interrupt=True)
    return answer


@contextmanager
def _interrupting(solver: Solver, budget: Budget) -> Iterator[None]:
    """Interrupt the solver when the budget is spent, as long as the context lasts."""
    is_done = threading.Event()

    def watch() -> None:
        while not is_done.wait(min(POLL_SECONDS, budget.seconds)):
            if not budget.seconds:
                solver.interrupt()
                is_done.wait()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_done.set()
        watcher.join()
