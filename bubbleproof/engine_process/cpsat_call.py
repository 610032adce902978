"""CP-SAT on a finished model: here, or in a process that knows nothing but OR-tools.

A model travels as text, which OR-tools writes and reads exactly. OR-tools' own ``CpSolver`` imports
pandas, which takes four times as long as all that a search needs.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass

from ortools.sat.python import cp_model_helper

from bubbleproof.engine_process.served import CallInside, watching

SOLVE = f"{__name__}:solve"


@dataclass(frozen=True, slots=True, kw_only=True)
class CpSatProgress:
    """What CP-SAT tells when it finds a better solution, a value per variable, or bound.

    ``values`` are empty, and the ``objective`` means nothing, for a bound alone.
    """

    values: array[int]
    objective: float
    bound: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CpSatAnswer:
    """``status`` is CP-SAT's, by its name; ``values`` are empty unless a solution was found.

    ``bound`` is that of the objective; ``work`` counts CP-SAT's deterministic seconds.
    """

    status: str
    values: array[int]
    bound: float
    work: float


OnProgress = Callable[[CpSatProgress], None]


class _Listener(cp_model_helper.SolutionCallback):
    def __init__(self, tell: OnProgress) -> None:
        super().__init__()
        self.tell = tell

    def OnSolutionCallback(self) -> None:  # noqa: N802 - OR-tools calls it by this name
        values = array("q", self.Response().solution)  # type: ignore[no-untyped-call]  # it has no annotations
        objective, bound = self.ObjectiveValue(), self.BestObjectiveBound()
        self.tell(CpSatProgress(values=values, objective=objective, bound=bound))


def search(
    wrapper: cp_model_helper.SolveWrapper,
    model: cp_model_helper.CpModelProto,
    parameters: cp_model_helper.SatParameters,
    on_solution: OnProgress | None,
) -> CpSatAnswer:
    """Search a model until it is done, at its limits, or ``wrapper`` was told to stop."""
    wrapper.set_parameters(parameters)
    listener = None if on_solution is None else _Listener(on_solution)
    if listener is not None:
        wrapper.add_solution_callback(listener)
    response = wrapper.solve(model)  # type: ignore[no-untyped-call]  # it has no annotations
    if listener is not None:
        wrapper.clear_solution_callback(listener)
    return CpSatAnswer(
        status=response.status.name,
        values=array("q", response.solution),
        bound=response.best_objective_bound,
        work=response.deterministic_time,
    )


def solve(inside: CallInside, model: str, parameters: str) -> CpSatAnswer:
    """In a process of its own: search a model that came as text, and tell of all progress."""
    read, how = cp_model_helper.CpModelProto(), cp_model_helper.SatParameters()
    if not (read.parse_text_format(model) and how.parse_text_format(parameters)):
        raise ValueError("OR-tools cannot read what it wrote: a model or its parameters")
    how.max_time_in_seconds = inside.seconds
    wrapper = cp_model_helper.SolveWrapper()
    wrapper.add_best_bound_callback(
        lambda bound: inside.tell(CpSatProgress(values=array("q"), objective=0.0, bound=bound))
    )
    with watching(lambda: inside.seconds, wrapper.stop_search):
        return search(wrapper, read, how, inside.tell)
