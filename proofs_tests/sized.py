"""How long a sweep is: a reduced form by default, the whole with ``BUBBLEPROOF_SWEEP=full``."""

from __future__ import annotations

import os
from typing import TypeVar

Size = TypeVar("Size")
VARIABLE = "BUBBLEPROOF_SWEEP"


def sized(usual: Size, *, full: Size) -> Size:
    """The usual size (a count, a range, some cases), or the full one where it is asked for.

    Raises
    ------
    ValueError
        The variable holds another word: nobody is to believe that a reduced sweep was the whole.
    """
    asked = os.environ.get(VARIABLE, "")
    if asked not in ("", "full"):
        raise ValueError(f"{VARIABLE} must be 'full' or not set, got {asked!r}")
    return full if asked else usual
