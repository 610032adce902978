"""What cuts of a model's layers take at least, and which of them may take less than a bound.

Before the first stage of a rank stand stages whose forwards and backwards take ``before`` ticks a
microbatch. The rank computes nothing before their first forwards end, nor after the last of their
backwards begins; where backwards are split only the first is true, since parts for weights may run
at any time later, and ``before`` has forwards alone. So with m microbatches, s slices and the
``work`` ticks of all that the rank computes,

    makespan >= before / s + m work.

Where each rank has one stage, a stage that shows a bound shows it with more layers too: ``below``
goes through all cuts without one that does. Where ranks have more stages, the greatest of them is
not below the mean of their work. A stage that takes time and holds more than its rank's capacity
has no schedule (``rank_claims.NoRoom``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import takewhile

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

    def below(self, bound: int) -> Iterator[Cut]:
        """The cuts that do not show the bound; an empty one where it is not known which.

        Parameters
        ----------
        bound
            Ticks; only cuts that do not show a step of so many are told.
        """
        rows, least = self.layers.sums(), self.layers.least(len(self.stage_ranks))
        path = [row[FORWARD] + (0 if self.is_split else row[BACKWARD]) for row in rows]
        late = [row[INPUT] + row[WEIGHT] if self.is_split else 0 for row in rows]
        work = [sum(ticks) for ticks in zip(path, late, strict=True)]
        held = [row[ACTIVATION] + row[STATIC] for row in rows]
        last, number, m = len(least) - 1, self.layers.number, self.microbatches
        if (ranks := len(set(self.stage_ranks))) <= last or last > DEEPEST:
            yield from [()] * (m * work[-1] <= (bound - 1) * ranks)
            return

        def shows(stage: int, begin: int, end: int) -> bool:
            room = self.capacity[self.stage_ranks[stage]] if self.capacity else None
            is_full = (
                room is not None and held[end] - held[begin] > room and path[end] > path[begin]
            )
            return is_full or path[begin] // self.slices + m * (work[end] - work[begin]) >= bound

        @cache
        def behind(stage: int, first: int) -> tuple[int, ...]:
            """Where the stage may end that begins at this layer, so that some cut goes on."""
            ends = range(first + least[stage], 1 + number - sum(least[stage + 1 :]))
            begin, is_last = 1 + first if stage else 0, stage == last
            fits = takewhile(
                lambda end: not shows(stage, begin, 1 + end + is_last),
                ends[-1:] if is_last else ends,
            )
            return tuple(end for end in fits if is_last or behind(stage + 1, end))

        def cuts(stage: int, first: int) -> Iterator[Cut]:
            for end in behind(stage, first):
                rests = [()] if stage == last else cuts(stage + 1, end)
                yield from ((end - first, *rest) for rest in rests)

        yield from cuts(0, 0)
