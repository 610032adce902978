"""Shard layouts: where each parameter of a stage lies in flat buffers, and which member has what.

The parameters of one level lie one after another, in the module's order, in one flat buffer of
``size`` elements. Of D members of a data-parallel group, member d has the elements ``bounds(d)``:
size // D of them, the first size mod D members one more. Nothing is padded. Bytes follow from the
shapes alone; with b bytes per element and n1, n2, n3 parameters of each level, one member holds

    state      its shards of parameters and of reduced gradients, whole parameters of levels 1 and
               2, whole gradients of level 1: (2 shards + (n1 + n2) + n1) b, all the time
    parameter  n3 b from an UNSHARD's start to its RESHARD's end
    gradient   (n2 + n3) b from a visit's first B to the end of its REDUCE_GRAD
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import torch

from bubbleproof.reference_exec.plans.zero_levels import LEVELS, ZeroLevels

TensorShape = tuple[int, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Segment:
    """The parameters of one level: their names and shapes, in order, shared by D members."""

    shapes: Mapping[str, TensorShape]
    members: int

    @cached_property
    def ends(self) -> list[int]:
        """Where each parameter begins, and the last one ends."""
        total = [0]
        for shape in self.shapes.values():
            total.append(total[-1] + math.prod(shape))
        return total

    @property
    def size(self) -> int:
        """The elements of all parameters."""
        return self.ends[-1]

    def bounds(self, member: int) -> tuple[int, int]:
        """The first element of a member and the one after its last."""
        length, longer = divmod(self.size, self.members)
        begin = member * length + min(member, longer)
        return begin, begin + length + (member < longer)

    def parts(self, flat: torch.Tensor) -> list[torch.Tensor]:
        """A flat buffer of all, cut into what each member has."""
        bounds = (self.bounds(member) for member in range(self.members))
        return [flat[begin:end] for begin, end in bounds]

    def views(self, flat: torch.Tensor) -> dict[str, torch.Tensor]:
        """The parameters in a flat buffer of all."""
        spans = zip(self.shapes.items(), pairwise(self.ends), strict=True)
        return {name: flat[begin:end].view(shape) for (name, shape), (begin, end) in spans}

    def pieces(self, shard: torch.Tensor, member: int) -> dict[str, torch.Tensor]:
        """What of each parameter lies in the shard of a member, as one row each, perhaps empty."""
        first, last = self.bounds(member)
        return {
            name: shard[max(begin, first) - first : max(min(end, last), first) - first].clone()
            if max(begin, first) < min(end, last)
            else shard[:0].clone()
            for name, (begin, end) in zip(self.shapes, pairwise(self.ends), strict=True)
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StageLayout:
    """The segments of one stage by level; a level without parameters has none."""

    segments: Mapping[int, Segment]
    element_bytes: int = 1

    @classmethod
    def of(
        cls,
        shapes: Mapping[str, TensorShape],
        levels: ZeroLevels,
        members: int,
        element_bytes: int = 1,
    ) -> StageLayout:
        """The layout of parameters with these shapes, in this order."""
        named = {
            level: {name: shape for name, shape in shapes.items() if levels.of(name) == level}
            for level in LEVELS
        }
        segments = {n: Segment(shapes=own, members=members) for n, own in named.items() if own}
        return cls(segments=segments, element_bytes=element_bytes)

    def size(self, *levels: int) -> int:
        """The elements of the parameters of some levels."""
        return sum(self.segments[level].size for level in levels if level in self.segments)

    def bytes(self, *levels: int) -> int:
        """The bytes of the parameters of some levels."""
        return self.element_bytes * self.size(*levels)

    def shards(self, member: int) -> list[int]:
        """The elements of each level that are a member's own."""
        bounds = (segment.bounds(member) for segment in self.segments.values())
        return [end - begin for begin, end in bounds]

    def kept(self, member: int) -> tuple[int, int]:
        """The elements of parameters, and of gradients, that a member holds all the time."""
        own = sum(self.shards(member))
        return own + self.size(1, 2), own + self.size(1)
