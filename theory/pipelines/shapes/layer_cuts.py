"""A model as layers: what a stage takes and holds that computes so many of them.

The layers are *runs* of layers alike, the first run first. The embedding before the first layer and
the head after the last take and hold something of their own. A *cut* tells how many layers each
stage has, in stage order: stage g of n takes what its layers do, stage 0 the embedding beside,
stage n-1 the head. A stage may be without layers where it has an embedding or a head that takes or
holds something. Which cuts are tried tells a ``CutRule`` (``cut_lists`` has those of files).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import accumulate
from operator import add, attrgetter, sub
from typing import Protocol

Cut = tuple[int, ...]
COUNTLESS = 5_000_000  # cuts, or sums to add up to count them


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPart:
    """Ticks of each action of one layer, embedding or head, and memory units of one microbatch.

    ``static`` are weights and optimizer state; ``released`` the part of ``activation`` that a split
    backward gives back after its input part.
    """

    forward: int = 0
    backward: int = 0
    input_backward: int = 0
    weight_backward: int = 0
    activation: int = 0
    released: int = 0
    static: int = 0


PARTS = tuple(field.name for field in fields(LayerPart))
NOTHING = LayerPart()
Runs = tuple[tuple[LayerPart, int], ...]


class CutRule(Protocol):
    """Which cuts are tried; those that have a name by their ``kinds``.

    ``is_uneven``: layers need not divide by the stages. ``is_any``: all other cuts are meant too.
    """

    @property
    def kinds(self) -> tuple[str, ...]: ...
    @property
    def is_uneven(self) -> bool: ...
    @property
    def is_any(self) -> bool: ...

    def number(self, layers: Layers, stages: int) -> int:
        """How many cuts there are at most, without making them.

        Parameters
        ----------
        stages
            Those of the whole pipeline.
        """

    def cuts(
        self, layers: Layers, stage_ranks: Sequence[int], microbatches: int, room: int | None = None
    ) -> tuple[Cut, ...]:
        """Those of stages on these ranks of so much memory; none where there is none.

        Parameters
        ----------
        stage_ranks
            The rank of each stage.
        microbatches
            Those of one step.
        room
            Memory units of each rank; None: without limit.
        """


@dataclass(frozen=True, kw_only=True)
class Layers:
    """``runs`` of layers alike, each with how many, the embedding before them and the head behind.

    ``rule`` says which cuts are tried. Without slots: sums are kept, since thousands of cuts ask.
    """

    runs: Runs
    rule: CutRule
    embedding: LayerPart = NOTHING
    head: LayerPart = NOTHING

    @cached_property
    def number(self) -> int:
        """How many layers there are."""
        return sum(number for _, number in self.runs)

    def least(self, stages: int) -> Cut:
        """The least that each stage has: a layer, or none beside an embedding or a head.

        Parameters
        ----------
        stages
            Those of the whole pipeline, 1 or more.
        """
        found = [1] * stages
        found[0] -= self.embedding != NOTHING
        found[-1] -= self.head != NOTHING and stages > 1
        return tuple(found)

    def has(self, cut: Cut, stages: int) -> bool:
        """Whether it cuts all the layers into so many stages.

        Parameters
        ----------
        stages
            Those of the whole pipeline, 1 or more.
        """
        return len(cut) == stages and min(cut) >= 0 and sum(cut) == self.number

    @cached_property
    def sums(self) -> dict[str, list[int]]:
        """Before the embedding, each layer and the head, and behind: of each of ``PARTS``, of the
        ``ticks`` of a forward and a backward, of what weights and one microbatch have ``held``."""
        parts = [part for part, number in self.runs for _ in range(number)]
        every = [self.embedding, *parts, self.head]
        found = {name: [0, *accumulate(map(attrgetter(name), every))] for name in PARTS}
        found["ticks"] = list(map(add, found["forward"], found["backward"]))
        return found | {"held": list(map(add, found["activation"], found["static"]))}

    def of_stages(self, name: str, cut: Cut) -> list[int]:
        """One of ``sums`` of each stage of the cut.

        Parameters
        ----------
        name
            Which one.
        """
        found = [self.sums[name][mark] for mark in self.marks(cut)]
        return list(map(sub, found[1:], found))

    def stages(self, cut: Cut) -> list[LayerPart]:
        """What each stage of the cut takes and holds.

        Returns
        -------
        list[LayerPart]
            Ticks and units of memory of all its layers, with the embedding in stage 0 and the head
            in the last one.
        """
        columns = zip(*(self.of_stages(name, cut) for name in PARTS), strict=True)
        return [LayerPart(**dict(zip(PARTS, row, strict=True))) for row in columns]

    def marks(self, cut: Cut) -> list[int]:
        """Which of ``sums`` each stage of the cut begins with, and the last."""
        return [0, *(1 + end for end in accumulate(cut[:-1])), self.number + 2]
