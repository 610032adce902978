"""Engines behind one interface; each is loaded when it is first asked for.

Every one takes any problem and finds the exact optimum, given time:

- ``cpsat``: OR-tools' CP-SAT, the fastest on most;
- ``sat``: an order encoding for python-sat, times quantised; gives DRUP proofs;
- ``z3``: difference logic, a binary search on the objective;
- ``pulp``: mixed-integer programs on HiGHS, for cross-checks on small instances;
- ``pulp-cbc``: the same on CBC.
"""

from __future__ import annotations

from importlib import import_module

from bubbleproof.solvers.engines.engine import Budget, Engine, Model, Outcome

_MODULES = {
    "cpsat": "cpsat",
    "sat": "sat",
    "z3": "z3_difference",
    "pulp": "pulp_milp",
    "pulp-cbc": "pulp_cbc",
}
ENGINES = tuple(_MODULES)


def engine(name: str) -> Engine:
    """The search of the engine called ``name``; raises ``KeyError`` for an unknown one."""
    found: Engine = import_module(f"{__name__}.{_MODULES[name]}").search
    return found


__all__ = ["ENGINES", "Budget", "Engine", "Model", "Outcome", "engine"]
