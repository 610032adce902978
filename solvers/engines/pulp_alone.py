"""PuLP, imported without the highspy that it loads where one is installed.

highspy and OR-tools each bring a shared library of HiGHS with the same name and another version,
and one process can load only one of them.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING


def _without_highs() -> ModuleType:
    loaded = sys.modules.get("highspy")
    sys.modules["highspy"] = None  # type: ignore[assignment]  # PuLP's import of it then fails
    try:
        return import_module("pulp")
    finally:
        del sys.modules["highspy"]
        if loaded is not None:
            sys.modules["highspy"] = loaded


if TYPE_CHECKING:
    import pulp  # type: ignore[import-untyped]  # PuLP ships no annotations
else:
    pulp = _without_highs()

__all__ = ["pulp"]
