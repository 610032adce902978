"""What was probably meant: the known name nearest to one that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

LONGEST = 60  # of a name that is looked for


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name most like this one, whatever its case; None when none is much like it.

    Parameters
    ----------
    name
        Of any length; its first 60 characters are looked at.
    known
        The names that there are.

    Examples
    --------
    >>> nearest_name("1f1v", ["gpipe", "1f1b"]), nearest_name("x", ["gpipe"])
    ('1f1b', None)
    """
    names = {each.lower(): each for each in known}
    close = get_close_matches(name[:LONGEST].lower(), names, n=1, cutoff=0.5)
    return names[close[0]] if close else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question that names the nearest name, with a blank before it; empty when there is none.

    Parameters
    ----------
    name
        Of any length; its first 60 characters are looked at.
    known
        The names that there are.

    Examples
    --------
    >>> did_you_mean("bpip", ["bpipe", "tpipe"])
    " (did you mean 'bpipe'?)"
    """
    close = nearest_name(name, known)
    return f" (did you mean {close!r}?)" if close else ""
