"""What a limit on activations costs a pipeline in ticks, whatever the order: theorems 1 and 2 of
docs/paper/frontier.md.

Rank c has room for K(c) activations. With the ticks F(i) and B(i) of a stage and those of a message
down and up, for every rank r >= c and every q with q K(c) < m

    makespan >= q trip(c) + (m - q K(c)) (F(r) + B(r)) + head(r) + tail(r)      (``stages_bound``)

where head(r) leads from the first rank to r, tail(r) back from it, and trip(c) from rank c to the
last and back. The bound is linear in q, so its ends are the best. Where all stages are alike and
messages take a whole number c of stages' work there and back it is the least makespan
(``frontier``), if each rank i has room for min(K(0), p - i + (p - 1 - i) c).
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bubbleproof.report.amounts import time
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.stage_numbers import column


@dataclass(frozen=True, kw_only=True)
class MemoryPrice:
    """The least ticks of a pipeline of one chunk, by what its ranks have room for.

    ``rooms`` are activations of each rank, as many as microbatches where it has no limit.
    """

    pipeline: Pipeline
    rooms: tuple[int, ...]

    @cached_property
    def _ways(self) -> tuple[Ints, Ints, Ints]:
        """Work of each stage, the way to it and back, and the round trip from it, in ticks."""
        ticks, between = self.pipeline.ticks, self.pipeline.boundaries
        work = (ticks.forward + ticks.backward)[:, 0]
        message = 2 * (between.ticks + between.latency)[:, 0]
        ends = np.append(0, np.cumsum(work[:-1] + message))
        return work, ends, ends[-1] + work[-1] - ends

    def least(self, more: int = 0) -> int:
        """Ticks that no order is below, with room for so many activations more on each rank."""
        m, (work, ends, trip) = self.pipeline.num_microbatches, self._ways
        found = int((m * work + ends).max())
        for c, room in enumerate(self.rooms):
            q = (m - 1) // (room + more)
            late = (m - q * (room + more)) * work[c:] + ends[c:]
            found = max(found, int(q * trip[c] + late.max()))
        return found

    def is_exact(self, more: int = 0) -> bool:
        """Whether a schedule takes as long as the bound."""
        p, (work, ends, _) = self.pipeline.num_ranks, self._ways
        ticks, between = self.pipeline.ticks, self.pipeline.boundaries
        alike = [ticks.forward[:, 0], ticks.backward[:, 0], between.latency[:, 0]]
        if between.ticks.any() or any(len({*one.tolist()}) > 1 for one in alike) or not work[0]:
            return False
        message, rest = divmod(int(ends[-1] - (p - 1) * work[0]), max(1, p - 1) * int(work[0]))
        needed = (p - i + (p - 1 - i) * message for i in range(p))
        first = self.rooms[0]
        enough = (min(first + more, n) <= room + more
                  for n, room in zip(needed, self.rooms, strict=True))  # fmt: skip
        return not rest and all(enough)

    def __str__(self) -> str:
        """What the limit costs, and what room for more activations would save."""
        m = self.pipeline.num_microbatches
        every = bisect_left(range(m), -self.least(m), key=lambda more: -self.least(more))
        steps, unit = sorted({1, every}), self.pipeline.unit
        saved = [time(self.least() - self.least(more), unit) for more in steps]
        rooms = sorted({*self.rooms})
        room = f"room for {rooms[0]} on a rank" if len(rooms) == 1 else "the room of the ranks"
        told = f"with {room} no order is below {time(self.least(), unit)}; "
        if all(map(self.is_exact, (0, *steps))):
            return told + ", ".join(
                f"{more} more would save {ticks}" for more, ticks in zip(steps, saved, strict=True)
            )
        return told + f"with {every} more on each the bound is {saved[-1]} lower"


def memory_price(pipeline: Pipeline | None) -> MemoryPrice | None:
    """What the pipeline's limit costs; None where it costs nothing, or no theorem is about it."""
    if pipeline is None or pipeline.choices.added:
        return None
    if pipeline.num_chunks > 1 or pipeline.num_slices > 1:
        return None
    if pipeline.split_backward is not False or pipeline.placement != "loop":
        return None
    held, m = column(pipeline.activation).tolist(), pipeline.num_microbatches
    each = zip(pipeline.capacities, column(pipeline.static).tolist(), held, strict=True)
    rooms = tuple(
        m if cap is None or units == 0 else min(m, (cap - base) // units)
        for cap, base, units in each
    )
    if min(rooms) < 1:
        return None
    found = MemoryPrice(pipeline=pipeline, rooms=rooms)
    return found if found.least() > found.least(m) else None
