"""The PuLP engine: a mixed-integer program on HiGHS or CBC, for cross-checks on small instances."""

from __future__ import annotations

import math
from functools import partial
from typing import Literal

import numpy as np

from bubbleproof.solvers.encoding import Encoding
from bubbleproof.solvers.engines import cbc, highs
from bubbleproof.solvers.engines.engine import Budget, EngineOutcome, OutOfTimeError
from bubbleproof.solvers.engines.milp import TRUSTED_HORIZON, MilpModel, MilpSolution, Values
from bubbleproof.solvers.gate import checked_value
from bubbleproof.theory.model.actions import Ints

Solver = Literal["HiGHS", "CBC"]
MINIMIZE = {"HiGHS": highs.minimize, "CBC": cbc.minimize}
TOLERANCE = 1e-4  # a dual bound this little above a whole number is taken for that number


def search_with(
    solver: Solver, encoding: Encoding, hint: Ints | None, budget: Budget
) -> EngineOutcome:
    """The best starts within the limit that a solver finds in the time given.

    Parameters
    ----------
    hint
        Starts in ticks, one a task, to begin from; None for none.
    """
    if encoding.is_hopeless:
        return EngineOutcome(bound=encoding.limit + 1, is_refuted=True)
    try:
        model = MilpModel(encoding, budget)
        model.build()
    except OutOfTimeError:
        return EngineOutcome()
    value = None if hint is None else checked_value(encoding, hint)
    if hint is None or value is None or value > encoding.limit:
        return _judged(model, _run(solver, model, None))
    answer = _run(solver, model, _known(model, hint, value))
    if answer.is_infeasible:  # a numerical accident, for the hint is a solution
        return EngineOutcome()
    return _judged(model, answer)


search = partial(search_with, "HiGHS")
search_with_cbc = partial(search_with, "CBC")


def _run(solver: Solver, model: MilpModel, known: Values | None) -> MilpSolution:
    if not model.budget.seconds:
        return MilpSolution()
    return MINIMIZE[solver](model.program, known, model.budget)


def _known(model: MilpModel, start: Ints, value: int) -> Values | None:
    """The values of a schedule, or None where it does not keep to the windows."""
    encoding = model.encoding
    if (start < encoding.earliest).any() or (start > encoding.latest).any():
        return None
    return model.values_of(start, value)


def _judged(model: MilpModel, answer: MilpSolution) -> EngineOutcome:
    """What may be said: checked starts, and a bound or a refutation that rounding cannot make."""
    encoding = model.encoding
    is_trusted = encoding.horizon <= TRUSTED_HORIZON
    if answer.is_infeasible:
        return (
            EngineOutcome(bound=encoding.limit + 1, is_refuted=True)
            if is_trusted
            else EngineOutcome()
        )
    bound = None
    if answer.bound is not None and is_trusted:
        bound = math.ceil(answer.bound - TOLERANCE)
    start = None if answer.values is None else _rounded(model, answer)
    if start is None or checked_value(encoding, start) is None:
        return EngineOutcome(bound=bound)
    return EngineOutcome(start=start, bound=bound)


def _rounded(model: MilpModel, answer: MilpSolution) -> Ints:
    """The starts in a solution, to the nearest tick."""
    values = answer.values or {}
    return np.array([round(values[start]) for start in model.start], dtype=np.int64)
