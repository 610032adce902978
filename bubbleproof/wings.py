"""What wings give: rooms that the core never imports, found by entry points of our distribution.

=====================  =============================  =============================================
group                  name of an entry               what it loads
=====================  =============================  =============================================
bubbleproof.names      of ``bubbleproof.NAME``        what stands there, such as a function
bubbleproof.commands   of ``bubbleproof NAME``        a ``typer.Typer`` that has the command
bubbleproof.planners   of an option of ``plan``       a module with ``OtherPlanners``' functions
bubbleproof.tables     of a table of problem files    its ``Layout``
=====================  =============================  =============================================

Nothing is loaded before it is asked for. An entry whose module is not there is absent: not listed,
and one line to who asks for it. Without an installation there is no entry at all.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from bubbleproof.error_base import Error

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

NAMES, COMMANDS = "bubbleproof.names", "bubbleproof.commands"
PLANNERS, FILE_TABLES = "bubbleproof.planners", "bubbleproof.tables"
INSTALL = "pip install . (or -e .) in a checkout"


class AbsentWingError(Error, ValueError):
    """What was asked for is of a wing that is not there; the text says which, in one line."""


@cache
def entries(group: str) -> dict[str, EntryPoint]:
    """The entries of a group by their names, those whose modules are absent too."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        found = distribution("bubbleproof").entry_points.select(group=group)
    except PackageNotFoundError:
        return {}
    return {point.name: point for point in found}


def present(group: str) -> list[str]:
    """The names of a group whose modules are there."""
    return [name for name, point in entries(group).items() if _is_there(point)]


def given(group: str, name: str, asker: str) -> object:
    """What an entry loads.

    Parameters
    ----------
    asker
        What needs it, as the error begins.

    Raises
    ------
    AbsentWingError
        Where there is no such entry, or its module is not there.
    """
    point = entries(group).get(name)
    if point is None:
        raise AbsentWingError(
            f"{asker} needs a wing, found by the entry point {name!r} of {group}, which the "
            f"installation of bubbleproof has not; {INSTALL}"
        )
    if not _is_there(point):
        room = ".".join(point.module.split(".")[:2])
        raise AbsentWingError(f"{asker} needs {room}, which this installation has not")
    return point.load()


def _is_there(point: EntryPoint) -> bool:
    try:
        return find_spec(point.module) is not None
    except ModuleNotFoundError:  # a package in which it would lie
        return False
