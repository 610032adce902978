"""What pictures need beyond the core, loaded where it is asked for and not before.

Pictures need a drawing library, a notebook's viewer anywidget, and pages nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

INSTALL = 'pip install "bubbleproof[report]"'
_DRAWN, _LIBRARY = (".svg", ".png", ".pdf"), "matplotlib"


def absent(*endings: str) -> tuple[str, ...]:
    """The libraries that files of these endings need and lack here."""
    return (_LIBRARY,) if {*endings} & {*_DRAWN} and find_spec(_LIBRARY) is None else ()


def require_drawing(targets: Iterable[str]) -> None:
    """Raise ``ValueError``, before any work is done, where a target could not be drawn."""
    for target in targets:
        if libraries := absent(f".{target.rpartition('.')[2]}"):
            raise ValueError(
                f"{target} needs {' and '.join(libraries)}, which is not installed; run: {INSTALL}"
            )


def has_notebook() -> bool:
    """Whether the viewer can be a notebook's widget here."""
    return find_spec("anywidget") is not None


def require_notebook() -> None:
    """Raise ``ValueError`` with the repair where the viewer cannot be a notebook's widget."""
    if not has_notebook():
        raise ValueError(
            "a notebook's viewer needs anywidget, which is not installed; run: "
            'pip install "bubbleproof[notebook]"'
        )


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
            f"this picture needs {library}, which is not installed; run: {INSTALL}"
        ) from None
