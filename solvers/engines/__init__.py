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
from importlib.util import find_spec

from bubbleproof.solvers.engines.engine import Budget, Engine, EngineOutcome, Model

_SEARCHES = {
    "cpsat": ("cpsat", "search"),
    "sat": ("sat", "search"),
    "z3": ("z3_difference", "search"),
    "pulp": ("pulp_milp", "search"),
    "pulp-cbc": ("pulp_milp", "search_with_cbc"),
}
ENGINES = tuple(_SEARCHES)
# Engines whose whole search may have a process of its own, and whether it has where it is large.
# CP-SAT's models are sent there one by one, CBC is a program; sat stops wherever it is asked to.
_APART = {"sat": False, "z3": True, "pulp": True}
UNTOLD = {"sat": ("threads", "seed"), "z3": ("threads",), "pulp-cbc": ("threads",)}  # by engine
_EXTRAS = {"sat": ("pysat", "python-sat")}  # module, distribution


def engine(name: str) -> Engine:
    """The search of the engine called ``name``; raises ``KeyError`` for an unknown one.

    Parameters
    ----------
    name
        One of ``ENGINES``.
    """
    module, search = _SEARCHES[name]
    if name not in _APART:
        found: Engine = getattr(import_module(f"{__name__}.{module}"), search)
        return found
    from bubbleproof.solvers.engines.apart import ApartEngine

    function, is_heavy = f"{__name__}.{module}:{search}", _APART[name]
    return ApartEngine(name=name, function=function, is_heavy=is_heavy)


def has_sat() -> bool:
    """Whether python-sat, an extra, is installed: for engine ``sat`` and DRUP certificates."""
    return is_installed("sat")


def is_installed(name: str) -> bool:
    """Whether the engine called ``name`` is here: ``sat`` is an extra.

    Parameters
    ----------
    name
        One of ``ENGINES``.
    """
    return name not in _EXTRAS or find_spec(_EXTRAS[name][0]) is not None


def require_engine(name: str) -> None:
    """Raise ``ValueError`` for an engine (or ``auto``) that there is not, or not here.

    Parameters
    ----------
    name
        Any text; ``auto`` and ``ENGINES`` are known.
    """
    names = ("auto", *ENGINES)
    if name not in names:
        raise ValueError(f"engine must be one of {' '.join(names)}, got {name!r}")
    if not is_installed(name):
        why = f"engine {name} needs {_EXTRAS[name][1]}, which is not installed"
        raise ValueError(f'{why}; run: pip install "bubbleproof[{name}]"')


__all__ = [
    "ENGINES",
    "UNTOLD",
    "Budget",
    "Engine",
    "EngineOutcome",
    "Model",
    "engine",
    "has_sat",
    "is_installed",
    "require_engine",
]
