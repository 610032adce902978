"""What cuts of a model's layers take at least, and which of them may take less than a bound.

Before the first stage of a rank stand stages whose forwards and backwards take ``before`` ticks a
microbatch. The rank computes nothing before their first forwards end, nor after the last of their
backwards begins; where backwards are split only the first is true, since parts for weights may run
at any time later, and ``before`` has forwards alone. So with m microbatches, s slices and the
``work`` ticks of all that the rank computes,

    makespan >= before / s + m work.

Where each rank has one stage, a stage that shows a bound shows it with more layers too: ``ways``
counts all cuts without one that does, once for each stage and layer, not for each cut. Where ranks
have more stages, the greatest of them is not below the mean of their work. A stage that takes time
and holds more than its rank's capacity has no schedule (``rank_claims.NoRoom``).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import add

from bubbleproof.theory.pipelines.shapes.layer_cuts import Layers

NEVER = (1 << 53) - 1  # ticks: a bound that no schedule meets, and the largest of a JSON file
DEEPEST = 256  # stages of which cuts are counted


@dataclass(frozen=True, slots=True, kw_only=True)
class CutBounds:
    """The cuts of ``layers`` into stages on these ranks; ``capacity`` of each, where it counts."""

    layers: Layers
    stage_ranks: Sequence[int]
    microbatches: int
    slices: int = 1
    is_split: bool = False
    capacity: Sequence[int | None] = ()

    @property
    def is_counted(self) -> bool:
        """Whether each rank has one stage, and there are not too many of them."""
        return len(set(self.stage_ranks)) == len(self.stage_ranks) <= DEEPEST

    def mean(self) -> int:
        """What the rank with the most work takes at least, whatever the cut."""
        return -(-self.microbatches * self._times()[1][-1] // len(set(self.stage_ranks)))

    def ways(self, bound: int) -> tuple[list[list[range]], list[list[int]]]:
        """By stage and first layer where it may end without the bound, and in how many ways the
        layers from there on are cut: the sum over these ends of how many go on.

        Precondition: ``is_counted``.

        Parameters
        ----------
        bound
            Ticks that no counted cut shows.
        """
        least, number = self.layers.least(len(self.stage_ranks)), self.layers.number
        (path, work), last, m = self._times(), len(self.stage_ranks) - 1, self.microbatches
        held = self.layers.sums["held"]
        ends, found = list[list[range]](), [[0] * number + [1]]
        for stage in range(last, -1, -1):
            few, rows = least[stage], []
            own = self.capacity[self.stage_ranks[stage]] if self.capacity else None
            room = NEVER if own is None else own
            for first, begin in enumerate(range(1, number + 2) if stage else [0]):  # of ``sums``
                timely = bisect_left(work, work[begin] - (path[begin] // self.slices - bound) // m)
                roomy = bisect_right(held, held[begin] + room), bisect_right(path, path[begin])
                behind = min(number + 1, min(timely, max(roomy)) - 1 - (stage == last))
                rows.append(range(first + few, max(first + few, behind)))
            before = [0, *accumulate(found[0])]
            ends.insert(0, rows)
            found.insert(0, [before[row.stop] - before[row.start] for row in rows])
        return ends, found

    def _times(self) -> tuple[list[int], list[int]]:
        """Ticks before each of ``sums``: of what a rank there waits for, and of all work."""
        sums, late = self.layers.sums, ("input_backward", "weight_backward")
        work = list(map(add, sums["forward"], map(add, *(sums[name] for name in late))))
        return (sums["forward"], work) if self.is_split else (sums["ticks"], sums["ticks"])
