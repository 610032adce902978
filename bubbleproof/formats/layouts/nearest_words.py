"""Words that are not known, and the known ones that are most like them."""

from __future__ import annotations

from collections.abc import Iterable

from bubbleproof.formats.errors import UnusableInput, quoted
from bubbleproof.theory.near_names import nearest_name


def unknown_key(where: str, key: str, known: Iterable[str]) -> UnusableInput:
    """The error for a key that is none of ``known``, naming the nearest one."""
    names = list(known)
    close = nearest_name(key, names)
    hint = f"; did you mean {close!r}?" if close else ""
    listed = ", ".join(names[:20])
    return UnusableInput(where, f"one of the keys {listed}", quoted(key) + hint)
