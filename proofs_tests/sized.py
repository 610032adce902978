"""How long a sweep is: a reduced form by default, the whole with ``BUBBLEPROOF_SWEEP=full``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import accumulate, product
from operator import mul
from typing import TypeVar

Case = TypeVar("Case")
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


def sampled(cases: Sequence[Case], *, every: int) -> Sequence[Case]:
    """Each ``every``-th of the cases, beginning with the first; all where the whole is asked for.

    Of a product with ``k`` values in its last place, ``every = k + 1`` takes each first value once
    with another last one.

    Raises
    ------
    ValueError
        From :func:`sized`; or ``every`` is below 2, which would leave nothing out.
    """
    if every < 2:
        raise ValueError(f"a sample leaves cases out: every must be at least 2, got {every}")
    return sized(cases[::every], full=cases)


def paired(cases: Sequence[object], *forms: Sequence[object]) -> list[tuple[object, ...]]:
    """Each case once, with forms in turn; every combination where the whole is asked for.

    Of a second kind of forms the next is taken as the first kind begins anew.
    """
    sizes = [1, *accumulate(map(len, forms), mul)]
    turns = [
        (case, *(form[place // size % len(form)] for form, size in zip(forms, sizes, strict=False)))
        for place, case in enumerate(cases)
    ]
    return sized(turns, full=[*product(cases, *forms)])
