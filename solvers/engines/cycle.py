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


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A few neighbouring ranks that each do the same ``count`` microbatches in every period.

    ``ticks[r]`` are those of F, of B or I, and of W where there is one; ``down[r]`` and ``up[r]``
    the lags of the link behind rank r. ``below`` are the starts of F and ends of B or I on the rank
    behind the block, ``count`` of each; None where the pipeline ends. ``is_first``: it begins with
    rank 0, which holds most, so that the wait for W counts there. ``chunks``: of how many unlike
    chunks the microbatches are, the k-th of chunk k modulo ``chunks``; 1 where they are alike.
    """

    ticks: tuple[tuple[int, ...], ...]
    down: tuple[int, ...]
    up: tuple[int, ...]
    count: int
    below: tuple[tuple[int, ...], tuple[int, ...]] | None
    is_first: bool
    chunks: int = 1

    @property
    def shares(self) -> list[int]:
        """For each microbatch, how many chunks have F before it and B behind it, its own too."""
        return [1 + k % self.chunks for k in range(self.count)]
