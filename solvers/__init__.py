"""Finds schedules and lower bounds. Everything it returns has passed ``verify``.

Each name is loaded when it is first asked for: a bound in milliseconds (``solvers.bounds``) needs
no engine, and who draws one need not wait until OR-tools is loaded.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bubbleproof.solvers.choices.solving_choices import ChoiceResult, solve_choices
    from bubbleproof.solvers.engines import ENGINES
    from bubbleproof.solvers.options import OBJECTIVES, SolveOptions
    from bubbleproof.solvers.result import MeasuredSchedule, ProofOrigin, Result, Status
    from bubbleproof.solvers.solving import solve

__all__ = [
    "ENGINES",
    "OBJECTIVES",
    "ChoiceResult",
    "MeasuredSchedule",
    "ProofOrigin",
    "Result",
    "SolveOptions",
    "Status",
    "solve",
    "solve_choices",
]

_HOMES = {
    "ENGINES": "engines",
    "OBJECTIVES": "options",
    "ChoiceResult": "choices.solving_choices",
    "MeasuredSchedule": "result",
    "ProofOrigin": "result",
    "Result": "result",
    "SolveOptions": "options",
    "Status": "result",
    "solve": "solving",
    "solve_choices": "choices.solving_choices",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


if __name__ == "solvers":  # imported from the top of a checkout
    raise ImportError("import bubbleproof.solvers: solvers/ is one with it")
