"""Words that are not known, and the known ones that are most like them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from bubbleproof.formats.errors import LONGEST_QUOTE, UnusableInput, quoted


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word most like ``word``, or None when none is much like it."""
    close = difflib.get_close_matches(word[:LONGEST_QUOTE], list(known), n=1, cutoff=0.5)
    return close[0] if close else None


def unknown_key(where: str, key: str, known: Iterable[str]) -> UnusableInput:
    """The error for a key that is none of ``known``, naming the nearest one."""
    names = list(known)
    close = nearest(key, names)
    hint = f"; did you mean {close!r}?" if close else ""
    listed = ", ".join(names[:20])
    return UnusableInput(where, f"one of the keys {listed}", quoted(key) + hint)
