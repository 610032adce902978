"""Names of units in sentences: ticks have a plural, ``us`` and ``ns`` have none."""

from __future__ import annotations

_WORDS = frozenset({"tick", "activation", "unit", "sample", "byte"})  # those with an English plural


def plural(unit: str) -> str:
    """The unit after a number other than one, or on an axis.

    Parameters
    ----------
    unit
        The unit of one, such as ``tick`` or ``us``.

    Examples
    --------
    >>> plural("tick"), plural("ns"), plural("s")
    ('ticks', 'ns', 's')
    """
    return f"{unit}s" if unit in _WORDS else unit


def counted(number: int, unit: str) -> str:
    """A number with its unit.

    Parameters
    ----------
    number
        How many.
    unit
        The unit of one, such as ``tick`` or ``us``.

    Examples
    --------
    >>> counted(1, "tick"), counted(3, "tick"), counted(3, "us")
    ('1 tick', '3 ticks', '3 us')
    """
    return f"{number} {unit if number == 1 else plural(unit)}"
