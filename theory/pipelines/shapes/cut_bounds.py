"""What cuts of a model's layers take at least, and which of them may take less than a bound.

Before the first stage of a rank stand stages whose forwards and backwards take ``before`` ticks a
microbatch. The rank computes nothing before their first forwards end, nor after the last of their
backwards begins; where backwards are split only the first is true, since parts for weights may run
at any time later, and ``before`` has forwards alone. So with m microbatches, s slices and the
``work`` ticks of all that the rank computes,

    makespan >= before / s + m work.

Where each rank has one stage, a stage that shows a bound shows it with more layers too: ``below``
goes through all cuts without one that does; how many go on from a layer is counted once for each
stage, not for each cut. Where ranks have more stages, the greatest of them is not below the mean of
their work. A stage that takes time and holds more than its rank's capacity has no schedule
(``rank_claims.NoRoom``).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from bubbleproof.theory.pipelines.shapes.layer_cuts import PARTS, Cut, Layers

FORWARD, BACKWARD, INPUT, WEIGHT, ACTIVATION, _, STATIC = range(len(PARTS))
NEVER = (1 << 53) - 1  # ticks: a bound that no schedule meets, and the largest of a JSON file
DEEPEST = 256  # stages of which cuts are gone through


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

    def below(self, bound: int) -> Iterator[Cut]:
        """The cuts that do not show the bound; an empty one where it is not known which."""
        if not self.is_counted:
            work, ranks = sum(self.layers.sums()[-1][at] for at in self._timed), self.stage_ranks
            yield from [()] * (self.microbatches * work <= (bound - 1) * len(set(ranks)))
            return
        ends, ways = self._ways(bound)

        def cuts(stage: int, first: int) -> Iterator[Cut]:
            if stage == len(ends):
                yield ()
                return
            for end in ends[stage][first]:
                if ways[stage + 1][end]:
                    yield from ((end - first, *rest) for rest in cuts(stage + 1, end))

        yield from cuts(0, 0)

    def number_below(self, bound: int) -> int:
        """How many those are, without making them. Precondition: ``is_counted``."""
        return self._ways(bound)[1][0][0]

    @property
    def _timed(self) -> tuple[int, ...]:
        return (FORWARD, INPUT, WEIGHT) if self.is_split else (FORWARD, BACKWARD)

    def _ways(self, bound: int) -> tuple[list[list[range]], list[list[int]]]:
        """By stage and first layer where it may end, and how many ways the layers from there on
        are cut: the sum over these ends of how many go on."""
        least, number = self.layers.least(len(self.stage_ranks)), self.layers.number
        rows = self.layers.sums()
        path = [row[FORWARD] + (0 if self.is_split else row[BACKWARD]) for row in rows]
        work = [sum(row[at] for at in self._timed) for row in rows]
        held = [row[ACTIVATION] + row[STATIC] for row in rows]

        def last_mark(stage: int, begin: int) -> int:
            """Of ``sums``, the last with which the stage that begins there shows no bound."""
            most = -((path[begin] // self.slices - bound) // self.microbatches)  # rounded up
            timely = bisect_left(work, work[begin] + most) - 1
            room = self.capacity[self.stage_ranks[stage]] if self.capacity else None
            if room is None:
                return timely
            has_room = bisect_right(held, held[begin] + room)
            return min(timely, max(has_room, bisect_right(path, path[begin])) - 1)

        ends: list[list[range]] = []
        ways = [[0] * number + [1]]
        for stage in reversed(range(len(least))):
            few, is_last = least[stage], stage == len(least) - 1
            begins = range(1, number + 2) if stage else range(1)
            found = []
            for first, begin in enumerate(begins):
                behind = min(number + 1, last_mark(stage, begin) - is_last)
                found.append(range(first + few, max(first + few, behind)))
            before = list(accumulate(ways[0], initial=0))
            ends.insert(0, found)
            ways.insert(0, [before[each.stop] - before[each.start] for each in found])
        return ends, ways
