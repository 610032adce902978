"""The drawing libraries, loaded when a picture is asked for and not before."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def need(module: str) -> ModuleType:
    """The drawing library's module of that name, loaded now.

    Raises ``ValueError`` with the repair when the library is not installed.
    """
    library = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] != library:
            raise
        raise ValueError(
            f"this picture needs {library}, which is not installed; "
            'run: pip install "bubbleproof[report]"'
        ) from None
