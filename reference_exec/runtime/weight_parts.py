"""What an I left for its W, or for the parts of it: the GEMMs of each share, and what has run.

The operands of a GEMM are let go when it has run; those that several read (queries, keys and values
have one input) with the last of them. Parts need nothing from each other, so that any order of them
gives the same gradients; that they run in theirs is ``verify``'s business.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from bubbleproof.reference_exec.broken import BrokenProgram, require
from bubbleproof.reference_exec.models.footprint import shares
from bubbleproof.reference_exec.models.linear import WeightGradStore
from bubbleproof.theory.model.actions import NONE


class DeferredWeight:
    """One W to come: whole, or in ``num_parts`` parts where that is not 0.

    ``weights`` are those of the stage's GEMMs, in the order of ``shares``.
    """

    def __init__(
        self, store: WeightGradStore, weights: Sequence[nn.Parameter], num_parts: int
    ) -> None:
        self._store = store
        self._num_parts = num_parts
        self._left = {NONE: list(weights)}
        if num_parts:
            cut = shares(len(weights), num_parts)
            self._left = {part: [weights[k] for k in share] for part, share in enumerate(cut)}

    @property
    def left(self) -> list[str]:
        """What is still to run: ``W``, or ``W#0`` and so on."""
        return ["W" if part == NONE else f"W#{part}" for part in self._left]

    def run(self, label: str, part: int) -> None:
        """Run one part (``NONE``: a W that is whole), called ``label`` in errors."""
        if (part == NONE) == bool(self._num_parts) or part >= max(self._num_parts, 1):
            cut = f"cut into {self._num_parts} parts" if self._num_parts else "whole"
            raise BrokenProgram(f"{label} of a weight gradient that is {cut}")
        require(part in self._left, f"{label} runs twice")
        if weights := self._left.pop(part):
            self._store.run(None if part == NONE else weights)
