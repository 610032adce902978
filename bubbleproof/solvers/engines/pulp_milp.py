"""The PuLP engine: a mixed-integer program on HiGHS or CBC, for cross-checks on small instances.

Unless told otherwise it takes the disjunctive formulation (``milp_big_m``), and the time-indexed
one (``milp_time_indexed``) where start windows are so short that it has at most twice as many 0-1
variables; on such instances (microbatches that differ, parked activations) it was as fast.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import numpy as np

from bubbleproof.solvers.encoding import Encoding
from bubbleproof.solvers.engines import cbc, highs
from bubbleproof.solvers.engines.deadline import OutOfTimeError
from bubbleproof.solvers.engines.engine import Budget, Outcome
from bubbleproof.solvers.engines.judged import value_of
from bubbleproof.solvers.engines.milp import TRUSTED_HORIZON, Answer, MilpModel, Values
from bubbleproof.solvers.engines.milp_big_m import BigMModel
from bubbleproof.solvers.engines.milp_time_indexed import TimeIndexedModel
from bubbleproof.solvers.engines.pulp_alone import pulp
from bubbleproof.theory.model.actions import Ints

Solver = Literal["HiGHS", "CBC"]
MINIMIZE = {"HiGHS": highs.minimize, "CBC": cbc.minimize}
Formulation = Literal["big-M", "time-indexed"]
MODELS: dict[Formulation, type[MilpModel]] = {
    "big-M": BigMModel,
    "time-indexed": TimeIndexedModel,
}
TOLERANCE = 1e-4  # a dual bound this little above a whole number is taken for that number


def search(encoding: Encoding, hint: Ints | None, budget: Budget) -> Outcome:
    """The best starts within the limit that HiGHS finds in the time given."""
    return search_with("HiGHS", chosen_formulation(encoding), encoding, hint, budget)


def search_with_cbc(encoding: Encoding, hint: Ints | None, budget: Budget) -> Outcome:
    """The same with CBC."""
    return search_with("CBC", chosen_formulation(encoding), encoding, hint, budget)


def chosen_formulation(encoding: Encoding) -> Formulation:
    """Time-indexed where its steps are at most twice what the disjunctive one has to decide."""
    steps = int(np.maximum(encoding.latest - encoding.earliest, 0).sum())
    resources = range(len(encoding.problem.resources))
    decisions = sum(len(encoding.undecided_pairs(resource)) for resource in resources)
    decisions += sum(len(load.undecided) for load in encoding.loads)
    return "time-indexed" if steps <= 2 * decisions else "big-M"


def search_with(
    solver: Solver,
    formulation: Formulation,
    encoding: Encoding,
    hint: Ints | None,
    budget: Budget,
) -> Outcome:
    """The best starts within the limit that a solver finds on a formulation."""
    if encoding.is_hopeless:
        return Outcome(bound=encoding.limit + 1, is_refuted=True)
    try:
        model = MODELS[formulation](encoding, budget)
        model.build()
    except OutOfTimeError:
        return Outcome()
    value = None if hint is None else value_of(encoding, hint)
    if hint is None or value is None or value > encoding.limit:
        return _judged(model, _run(solver, model, None, budget))
    answer = _run(solver, model, _known(model, hint, value), budget)
    if answer.is_infeasible:  # a numerical accident, for the hint is a solution
        return Outcome()
    return _judged(model, answer)


def _run(solver: Solver, model: MilpModel, known: Values | None, budget: Budget) -> Answer:
    return MINIMIZE[solver](model.program, known, budget) if budget.seconds else Answer()


def _known(model: MilpModel, start: Ints, value: int) -> Values | None:
    """The values of a schedule, or None where it does not keep to the windows."""
    encoding = model.encoding
    if (start < encoding.earliest).any() or (start > encoding.latest).any():
        return None
    return model.values_of(start) | model.common_values(start, value)


def _judged(model: MilpModel, answer: Answer) -> Outcome:
    """What may be said: checked starts, and a bound or a refutation that rounding cannot make."""
    encoding = model.encoding
    is_trusted = encoding.horizon <= TRUSTED_HORIZON
    if answer.is_infeasible:
        return Outcome(bound=encoding.limit + 1, is_refuted=True) if is_trusted else Outcome()
    bound = None
    if answer.bound is not None and is_trusted:
        bound = math.ceil(answer.bound - TOLERANCE)
    start = None if answer.values is None else _rounded(model, answer.values)
    if start is None or value_of(encoding, start) is None:
        return Outcome(bound=bound)
    return Outcome(start=start, bound=bound)


def _rounded(model: MilpModel, values: Mapping[pulp.LpVariable, float]) -> Ints:
    """The starts in a solution, to the nearest tick."""
    found = []
    for task in range(model.problem.num_tasks):
        terms, constant = model.start_of(task)
        found.append(constant + sum(weight * round(values[v]) for weight, v in terms))
    return np.array(found, dtype=np.int64)
