"""What a measurement rests on: a schedule, a problem's precedences, or arithmetic alone.

A claim is worth more where its measured side builds a schedule and measures it than where both
sides are sums over a table. Nobody types that in: ``watched`` runs the measurement and looks which
functions it enters, those that time an order (``timing.left_shift``) or measure one
(``measures.measure_rows``), or those that make a problem. Results that an earlier case left behind
would hide them, so meanwhile all that remembers results (``lru_cache``) has an empty memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from enum import Enum
from fractions import Fraction
from functools import _lru_cache_wrapper, lru_cache
from types import CodeType, FrameType

from bubbleproof.papers.claims.domain import Params
from bubbleproof.theory.families import registration
from bubbleproof.theory.model.measures import measure_rows
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines import value_types
from bubbleproof.theory.pipelines.timing import left_shift


class EvidenceKind(Enum):
    """What a claim's measured side rests on; the values are the sentences shown to the reader."""

    MEASURED = "a schedule was built and measured"
    COUNTED = "counted on a problem's tasks and precedences, for any order"
    ARITHMETIC = "arithmetic alone: no schedule was built"


_OF_A_SCHEDULE = {left_shift.__code__, measure_rows.__code__}
_OF_A_PROBLEM = Problem.__post_init__.__code__
_WATCHED = {*_OF_A_SCHEDULE, _OF_A_PROBLEM}
_ROOMS = ("bubbleproof.theory.", "bubbleproof.papers.")
# What these remember is told by classes and by installed packages, whatever is measured.
_OF_CODE = {registration.__name__, value_types.__name__}
Measurement = Callable[[Params], int | Fraction]
_known: dict[tuple[Measurement, tuple[tuple[str, int], ...]], EvidenceKind] = {}


def watched(measured: Measurement, params: Params) -> EvidenceKind:
    """What the measurement of one case rests on, found by running it; each case is run once."""
    key = measured, tuple(params.items())
    if key not in _known:
        _known[key] = fresh_standing(measured, params)
    return _known[key]


def fresh_standing(measured: Measurement, params: Params) -> EvidenceKind:
    """``watched``, whatever is known."""
    entered: set[CodeType] = set()
    before = sys.getprofile()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code in _WATCHED:
            entered.add(frame.f_code)
            if frame.f_code in _OF_A_SCHEDULE:
                sys.setprofile(before)  # all is known; the rest runs at its own speed

    with without_memories():
        sys.setprofile(note)
        try:
            measured(params)
        finally:
            sys.setprofile(before)
    if entered & _OF_A_SCHEDULE:
        return EvidenceKind.MEASURED
    return EvidenceKind.COUNTED if _OF_A_PROBLEM in entered else EvidenceKind.ARITHMETIC


@contextmanager
def without_memories() -> Iterator[None]:
    """A context in which ``theory`` and the papers remember nothing, to go on as before after it.

    Each ``lru_cache`` at the top of their modules is replaced by an empty one, but for what is read
    off the code itself.
    """
    with ExitStack() as stack:
        fresh: dict[object, object] = {}
        for name, module in list(sys.modules.items()):
            if name.startswith(_ROOMS) and name not in _OF_CODE:
                for known, value in list(vars(module).items()):
                    if isinstance(value, _lru_cache_wrapper):
                        again = lru_cache(**value.cache_parameters())(value.__wrapped__)
                        setattr(module, known, fresh.setdefault(value, again))
                        stack.callback(setattr, module, known, value)
        yield
