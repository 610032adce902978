"""Families that are not ours: registered by a program, or by an installed package.

``register(MyFamily())`` makes a family known to every command of this process. A package announces
one to all processes by an entry point, in its ``pyproject.toml``::

    [project.entry-points."bubbleproof.families"]
    mine = "my_package.schedules:MyFamily"

which names a subclass of ``Family`` or an instance of one. What a family orders is judged like
anything else: ``verify`` knows no family.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from typing import TYPE_CHECKING

from bubbleproof.theory.families.base import Family

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "bubbleproof.families"
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_own: dict[str, Family] = {}


def register(family: Family) -> Family:
    """Make a family known by its name; registering the name again replaces the family.

    Parameters
    ----------
    family
        An instance; its ``name`` is made of lower-case letters, digits and hyphens.

    Returns
    -------
    Family
        The same.

    Raises
    ------
    TypeError
        For what is no family.
    ValueError
        For another name. (That it is not one of ours is asked when the families are listed.)
    """
    _own[family.name] = _checked(family, "register")
    return family


def is_name(name: object) -> bool:
    """Whether a family may have that name."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def own(*, reserved: Collection[str]) -> dict[str, Family]:
    """The families of ``register`` by name.

    Parameters
    ----------
    reserved
        The names of our own families.

    Raises
    ------
    ValueError
        Where one has a ``reserved`` name.
    """
    return _unreserved(_own, reserved)


def announced(*, reserved: Collection[str]) -> dict[str, Family]:
    """The families of entry points by name.

    Parameters
    ----------
    reserved
        The names of our own families.

    Raises
    ------
    ValueError
        Where one has a ``reserved`` name, or does not load.
    """
    return _unreserved(_announced(), reserved)


def _unreserved(found: dict[str, Family], reserved: Collection[str]) -> dict[str, Family]:
    for name in found:
        if name in reserved:
            raise ValueError(
                f"the name {name!r} is taken by a family of bubbleproof; choose another"
            )
    return found


@cache
def _announced() -> dict[str, Family]:
    """The families of installed packages. Raises ``ValueError`` naming one that does not load."""
    from importlib.metadata import entry_points

    families = [_loaded(point) for point in entry_points(group=GROUP)]
    return {family.name: family for family in families}


def _loaded(point: EntryPoint) -> Family:
    where = f"entry point {point.name} = {point.value} of {GROUP}"
    try:
        found = point.load()
        family = found() if isinstance(found, type) else found
    except Exception as error:  # a stranger's code may raise anything
        raise ValueError(f"{where} does not load: {type(error).__name__}: {error}") from error
    return _checked(family, where)


def _checked(family: object, where: str) -> Family:
    """What was given, if it is a family with a name; ``TypeError`` or ``ValueError`` if not."""
    if not isinstance(family, Family):
        raise TypeError(
            f"{where}: expected an instance of bubbleproof.theory.families.Family, "
            f"got {type(family).__name__}"
        )
    name = getattr(family, "name", None)
    if not is_name(name):
        raise ValueError(f"{where}: a family's name is made of a-z, 0-9 and hyphens, got {name!r}")
    return family
