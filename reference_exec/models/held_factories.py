"""Factories of a user's model that are held as functions: each gets a name, as ``ModelSpec`` wants.

One that a process can import or load by its file is named so. Any other (a lambda, a function of a
notebook or within another one) is kept here under a name of its own, which only this process knows:
it serves ``virtual``, and a process of ``gloo`` says that it cannot be found.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

HELD = "held in this process"
_held: dict[str, Callable[[], object]] = {}


def name_of(factory: Callable[[], object]) -> str:
    """``MODULE:FUNCTION`` or ``FILE.py:FUNCTION`` where that finds the same, else a name here."""
    module, name = getattr(factory, "__module__", ""), getattr(factory, "__qualname__", "")
    home = sys.modules.get(module or "")
    if home is not None and name.isidentifier() and getattr(home, name, None) is factory:
        file = getattr(home, "__file__", None)
        if module != "__main__":
            return f"{module}:{name}"
        if file is not None and Path(file).suffix == ".py":
            return f"{file}:{name}"
    known = next((key for key, one in _held.items() if one is factory), None)
    key = known or f"{HELD} ({len(_held)}):{name.rpartition('.')[2] or 'factory'}"
    _held[key] = factory
    return key


def held_factory(path: str) -> Callable[[], object] | None:
    """The function of a name that was given here; None for any other.

    Raises ``ValueError`` where the name is one of another process.
    """
    if not path.startswith(HELD):
        return None
    if path not in _held:
        raise ValueError(
            f"model factory {path}: other processes cannot find it; put it into a module or a file"
        )
    return _held[path]
