"""Microbatches whose schedule is to repeat (``cpsat_periodic``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bubbleproof.solvers.memory_rules import LimitedStore
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cycle:
    """``few`` microbatches that repeat, with their ``heads`` (ticks).

    ``repeats`` are precedences to a task so many periods later; ``held`` what is kept in stores
    whose room these precedences do not say. ``longest``: no span is longer.
    """

    few: Problem
    heads: Ints
    repeats: Sequence[tuple[int, int, int]]
    held: Sequence[LimitedStore]
    longest: int
