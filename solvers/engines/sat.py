"""The SAT engine (python-sat, Glucose 4): an order encoding, for times of a few thousand ticks.

Each trial limit is a formula of its own, since tighter windows make smaller formulas. Without a
schedule the limits climb from the bound in doubling steps, with one they halve the gap. A formula
that would be too large ends the search with what is known.
"""

from __future__ import annotations

from pysat.solvers import Solver

from bubbleproof.engine_process.served import watching
from bubbleproof.faults import FaultError
from bubbleproof.solvers.encoding import Encoding
from bubbleproof.solvers.engines.engine import Budget, EngineOutcome
from bubbleproof.solvers.engines.sat_clauses import TooLargeError
from bubbleproof.solvers.engines.sat_model import SatModel
from bubbleproof.solvers.gate import checked_value
from bubbleproof.theory.model.actions import Ints

SOLVER = "glucose4"
PROPAGATIONS = 3_000_000  # are a unit of work: about a second's
MOST_PROPAGATIONS = 1 << 60  # that the solver can count


def search(encoding: Encoding, hint: Ints | None, budget: Budget) -> EngineOutcome:
    """The best starts within the limit, and the bound below which every limit was refuted.

    Parameters
    ----------
    hint
        Starts in ticks, one a task, to begin from; None for none.
    """
    if encoding.is_hopeless:
        return EngineOutcome(bound=encoding.limit + 1, is_refuted=True)
    return _Search(encoding, budget).run(hint)


class _Search:
    def __init__(self, encoding: Encoding, budget: Budget) -> None:
        self.encoding, self.budget = encoding, budget
        self.least = self.bound = 0
        if encoding.objective == "makespan":
            self.least = self.bound = min(encoding.bounds.best.bound, encoding.limit)
        self.best: int | None = None
        self.start: Ints | None = None

    def run(self, hint: Ints | None) -> EngineOutcome:
        if hint is not None:
            self.best = checked_value(self.encoding, hint)
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
                return EngineOutcome(bound=self.bound, is_refuted=self.best is None)
            step *= 2
        is_known = self.start is not None or self.bound > self.least
        return EngineOutcome(start=self.start, bound=self.bound if is_known else None)

    def satisfy(self, limit: int) -> bool | None:
        """Whether some schedule is within the limit, kept if so; None without an answer in time."""
        model = SatModel(self.encoding, limit, self.budget)
        model.build()
        with Solver(name=SOLVER, bootstrap_with=model.cnf.clauses) as solver:
            found = solved(solver, self.budget)
            if found:
                self.start = model.starts(solver.get_model())
                self.best = checked_value(self.encoding, self.start)
                if self.best is None:
                    raise FaultError("sat", "a schedule", "the checker refuses it")
                if self.budget.keep is not None:
                    self.budget.keep(self.start)
            elif found is not None:
                self.bound = (limit // model.size + 1) * model.size
        return found

    def _report(self) -> None:
        if self.budget.report is not None:
            self.budget.report(self.best, self.bound)


def solved(solver: Solver, budget: Budget) -> bool | None:
    """The solver's answer; None once the budget is spent."""
    if budget.is_counted:
        left = max(0.0, budget.work - budget.meter.units)
        solver.prop_budget(int(min(left * PROPAGATIONS, MOST_PROPAGATIONS)) + 1)
    before = solver.accum_stats()["propagations"]
    with watching(lambda: budget.seconds, solver.interrupt):
        answer: bool | None = solver.solve_limited(expect_interrupt=True)
    done = solver.accum_stats()["propagations"] - before
    budget.meter.spend(done / PROPAGATIONS)
    return answer
