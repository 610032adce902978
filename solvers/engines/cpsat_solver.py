"""CP-SAT's search of a finished model within a budget, here or in a process of its own.

A search that may take long has a process of its own: CP-SAT's presolve does not look at its time
limit, and what needs too much memory or crashes takes its process along. A short one (``AWAY``),
which is stopped by CP-SAT's own count of work, is done here: a window of a schedule takes less than
sending it. With a memory limit all are sent.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from math import inf
from typing import cast

import numpy as np
from ortools.sat.python import cp_model
from ortools.sat.python import cp_model_helper as helper

from bubbleproof.engine_process.cpsat_call import SOLVE, CpSatAnswer, CpSatProgress, search
from bubbleproof.engine_process.served import watching
from bubbleproof.solvers.engines.apart import answered
from bubbleproof.solvers.engines.engine import Budget
from bubbleproof.theory.model.actions import Ints

WHO = "cpsat"
AWAY = 2.0  # seconds, or CP-SAT's deterministic ones: a search of more has its own process
FOUND, INFEASIBLE, INVALID = ("OPTIMAL", "FEASIBLE"), "INFEASIBLE", "MODEL_INVALID"


class CpSatSolver:
    """One search: set ``parameters``, call ``solve``, ask for the values that were found."""

    def __init__(self) -> None:
        self.parameters = helper.SatParameters()
        self.answer = CpSatAnswer(status="UNKNOWN", values=array("q"), bound=-inf, work=0.0)

    @property
    def is_found(self) -> bool:
        """Whether a solution was found."""
        return self.answer.status in FOUND

    @property
    def is_refuted(self) -> bool:
        """Whether CP-SAT says that there is none."""
        return self.answer.status == INFEASIBLE

    @property
    def bound(self) -> int:
        """The bound on the objective, a whole number."""
        return 0 if self.is_refuted else rounded_up(self.answer.bound)

    def value(self, literal: cp_model.IntVar) -> int:
        """The value of a variable or of a negated one. Precondition: a solution was found."""
        at = literal.index
        return self.answer.values[at] if at >= 0 else 1 - self.answer.values[-at - 1]

    def values(self, variables: Sequence[cp_model.IntVar]) -> Ints:
        """The values of variables. Precondition: a solution was found."""
        return np.array([self.value(variable) for variable in variables], dtype=np.int64)

    def solve(self, model: cp_model.CpModel, budget: Budget) -> None:
        """Search within the budget.

        Raises ``ValueError`` where CP-SAT refuses a model, as it does numbers that are too large.
        """
        self._limit(budget)
        take = self._away if is_long(self.parameters, budget) else self._here
        self.answer = take(model, budget)
        budget.meter.spend(self.answer.work)
        if self.answer.status == INVALID:
            why = " ".join(model.validate().split())
            raise ValueError(f"cpsat cannot take this problem, choose another engine: {why}")

    def _limit(self, budget: Budget) -> None:
        self.parameters.max_time_in_seconds = budget.seconds
        self.parameters.num_workers = budget.threads
        if budget.is_counted:
            left = max(0.0, budget.work - budget.meter.units)
            most = self.parameters.max_deterministic_time
            self.parameters.max_deterministic_time = min(most, left)
            self.parameters.interleave_search = budget.threads > 1
        self.parameters.random_seed = budget.seed
        self.parameters.catch_sigint_signal = False  # the caller watches for Ctrl-C

    def _here(self, model: cp_model.CpModel, budget: Budget) -> CpSatAnswer:
        wrapper = helper.SolveWrapper()
        tell = None if budget.report is None else _Told(budget)
        with watching(lambda: budget.seconds, wrapper.stop_search):
            return search(wrapper, model.proto, self.parameters, tell)

    def _away(self, model: cp_model.CpModel, budget: Budget) -> CpSatAnswer:
        """In a process of its own; where that is lost, what it had told."""
        given = str(model.proto), str(self.parameters)
        told = _Told(budget)
        answer = answered(SOLVE, given, budget, WHO, told)
        return told.so_far if answer is None else cast(CpSatAnswer, answer)


class _Told:
    """What was told so far; the budget's report hears of solutions."""

    def __init__(self, budget: Budget) -> None:
        self.budget, self.values, self.bound = budget, array("q"), -inf

    def __call__(self, told: object) -> None:
        progress = cast(CpSatProgress, told)
        self.bound = progress.bound
        if progress.values:
            self.values = progress.values
            if self.budget.report is not None:
                self.budget.report(round(progress.objective), rounded_up(progress.bound))

    @property
    def so_far(self) -> CpSatAnswer:
        status = "FEASIBLE" if self.values else "UNKNOWN"
        return CpSatAnswer(status=status, values=self.values, bound=self.bound, work=0.0)


def is_long(parameters: helper.SatParameters, budget: Budget) -> bool:
    """Whether a search is to have a process of its own."""
    most = min(parameters.max_deterministic_time, budget.seconds)
    return budget.memory is not None or most > AWAY


def rounded_up(bound: float) -> int:
    """A bound as the whole number that it shows; 0 for none.

    Parameters
    ----------
    bound
        Ticks; -inf where there is none.
    """
    return int(np.ceil(bound - 1e-6)) if bound > -inf else 0
