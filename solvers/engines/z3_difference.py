"""The z3 engine: difference logic, and a binary search on the objective.

Starts are integers. Dependencies and memory edges are differences; a pair of tasks of one resource
is a clause of two differences, a release in parts a clause of at most two; a load is a
pseudo-boolean sum over "this moment is not after that one", which are differences again. One solver
answers every probe ``goal <= value``, so that what it learns at one value serves the next.
"""

from __future__ import annotations

from math import gcd

import numpy as np
import z3  # type: ignore[import-untyped]  # z3 ships no annotations

from bubbleproof.engine_process.served import watching
from bubbleproof.faults import FaultError
from bubbleproof.solvers.encoding import Encoding, TaskMoment
from bubbleproof.solvers.engines.engine import (
    UNLIMITED,
    Budget,
    EngineOutcome,
    LoadModel,
    OutOfTimeError,
)
from bubbleproof.solvers.gate import checked_value
from bubbleproof.theory.model.actions import Ints

BELLMAN_FORD = 1  # z3's solver for difference logic on sparse graphs
LARGEST_WEIGHT = 1 << 31  # of a pseudo-boolean sum in z3's interface; larger ones are added up


class Z3Model(LoadModel[z3.BoolRef]):
    """The clauses of an encoding over integer starts, in a context of its own."""

    def __init__(self, encoding: Encoding, budget: Budget = UNLIMITED) -> None:
        super().__init__(encoding)
        self.budget = budget
        self.context = z3.Context()
        self.solver = z3.SimpleSolver(ctx=self.context)
        self.start = [z3.Int(f"s{task}", self.context) for task in range(self.problem.num_tasks)]
        self.spans: list[tuple[z3.ArithRef, list[int], int]] = []  # first start, tasks, work
        self.is_difference_logic = True
        for start, low, high in zip(
            self.start, encoding.earliest.tolist(), encoding.latest.tolist(), strict=True
        ):
            self.solver.add(start >= low, start <= high)

    def ordered(self, before: int, after: int, lag: int = 0) -> z3.BoolRef:
        """start(after) >= end(before) + lag.

        Parameters
        ----------
        before, after
            Numbers of tasks.
        lag
            Ticks, of either sign.
        """
        return self.start[after] - self.start[before] >= self.duration[before] + lag

    def precede(self, before: int, after: int, lag: int) -> None:
        """start(after) >= end(before) + lag."""
        self.solver.add(self.ordered(before, after, lag))

    def exclude(self, resource: int) -> None:
        """One task at a time on a resource."""
        for a, b in self.encoding.undecided_pairs(resource):
            self.budget.require()
            self.solver.add(z3.Or(self.ordered(a, b), self.ordered(b, a)))

    def not_after(self, moment: TaskMoment, at: TaskMoment) -> z3.BoolRef:
        """Whether a moment comes no later than another."""
        shift = [self.duration[m.task] if m.at_end else 0 for m in (moment, at)]
        return self.start[at.task] - self.start[moment.task] >= shift[0] - shift[1]

    def add_either(self, truths: list[z3.BoolRef]) -> None:
        """At least one of them holds."""
        self.solver.add(z3.Or(truths, self.context))

    def add_sum(self, terms: list[tuple[z3.BoolRef, int]], most: int) -> None:
        """The weights of those that hold add up to ``most`` or less."""
        self.budget.require()
        lifted = []
        for happens, weight in terms:  # a negative weight counts where it does not happen
            lifted.append((happens, weight) if weight > 0 else (z3.Not(happens), -weight))
            most += max(0, -weight)
        if most < 0:
            self.solver.add(z3.BoolVal(False, self.context))
        elif sum(weight for _, weight in lifted) > most:
            self.solver.add(self._sum_at_most(lifted, most))

    def _sum_at_most(self, terms: list[tuple[z3.BoolRef, int]], most: int) -> z3.BoolRef:
        unit = gcd(*(weight for _, weight in terms))
        terms = [(happens, weight // unit) for happens, weight in terms]
        if max(most // unit, *(weight for _, weight in terms)) < LARGEST_WEIGHT:
            return z3.PbLe(terms, most // unit)
        self.is_difference_logic = False
        zero = z3.IntVal(0, self.context)
        return z3.Sum([z3.If(happens, weight, zero) for happens, weight in terms]) <= most // unit

    def add_horizon(self) -> None:
        """The objective, last end - first start - work of each span, not above the limit."""
        for number, (tasks, work) in enumerate(self.encoding.spans):
            first = z3.IntVal(0, self.context)  # as the earliest start is
            if not self.encoding.starts_at_0:
                first = z3.Int(f"first{number}", self.context)
                for task in tasks:
                    self.solver.add(self.start[task] - first >= 0)
            self.spans.append((first, tasks, work))
        self.ask_for(self.encoding.limit)

    def ask_for(self, most: int) -> None:
        """An objective value of at most ``most`` ticks: every span holds within it.

        Parameters
        ----------
        most
            Ticks, 0 or more.
        """
        for first, tasks, work in self.spans:
            for task in tasks:
                latest = most + work - self.duration[task]
                self.solver.add(self.start[task] - first <= latest)


def search(encoding: Encoding, hint: Ints | None, budget: Budget) -> EngineOutcome:
    """The best starts within the limit that z3 finds in the time given.

    Parameters
    ----------
    hint
        Starts in ticks, one a task, to begin from; None for none.
    """
    if encoding.is_hopeless:
        return EngineOutcome(bound=encoding.limit + 1, is_refuted=True)
    model = Z3Model(encoding, budget)
    try:
        model.build()
    except OutOfTimeError:
        return EngineOutcome()
    with watching(lambda: budget.seconds, model.context.interrupt):
        return _Bisection(model, budget).run(hint)


class _Bisection:
    """No schedule is below ``low``, and ``best``, if any, has the value ``high``."""

    def __init__(self, model: Z3Model, budget: Budget) -> None:
        self.model, self.budget, encoding = model, budget, model.encoding
        model.solver.set(random_seed=budget.seed, ctrl_c=False)  # the caller watches for Ctrl-C
        if model.is_difference_logic:
            model.solver.set("arith.solver", BELLMAN_FORD)
        self.low = min(encoding.least, encoding.limit + 1)
        self.high = encoding.limit + 1
        self.best: Ints | None = None

    def run(self, hint: Ints | None) -> EngineOutcome:
        value = None if hint is None else checked_value(self.model.encoding, hint)
        if value is not None and value < self.high:
            self.best, self.high = hint, value
        while self.low < self.high:
            middle = self._next()
            try:
                answer = self._probe(middle)
            except z3.Z3Exception as error:
                if "out of memory" in str(error):
                    raise MemoryError from error
                if self.budget.seconds:
                    raise
                break  # an interruption that met z3 outside of its search
            if answer == z3.unknown:
                break
            if answer == z3.unsat:
                self.low = middle + 1
            if self.budget.report is not None:
                self.budget.report(None if self.best is None else self.high, self.low)
        return EngineOutcome(
            start=self.best,
            bound=self.low,
            is_refuted=self.best is None and self.low > self.model.encoding.limit,
        )

    def _next(self) -> int:
        """The next value to ask for: the limit first where no schedule is known, else halfway."""
        if self.best is None:
            return self.high - 1
        return (self.low + self.high - 1) // 2

    def _probe(self, most: int) -> z3.CheckSatResult:
        """Whether a schedule has a value of at most ``most``; the one found becomes the best."""
        solver = self.model.solver
        left = int(1000 * self.budget.seconds)
        if left <= 0:
            return z3.unknown
        solver.set(timeout=left)
        solver.push()
        self.model.ask_for(most)
        answer = solver.check()
        if answer == z3.sat:
            self._keep(solver.model())
        solver.pop()
        return answer

    def _keep(self, found: z3.ModelRef) -> None:
        starts = [found.eval(start, model_completion=True).as_long() for start in self.model.start]
        start = np.array(starts, dtype=np.int64)
        value = checked_value(self.model.encoding, start)
        if value is None:
            raise FaultError("z3", "a schedule", "the checker refuses it")
        if value >= self.high:
            raise FaultError("z3", f"a schedule of less than {self.high}", f"its value is {value}")
        self.best, self.high = start, value
        if self.budget.keep is not None:
            self.budget.keep(start)
