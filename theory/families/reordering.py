"""What becomes of a repeated building block where its run begins and ends: a greedy reordering.

The authors' generator of V-Half and V-Min works at unit ticks on the starts of the four passes
(F down, F up, I down, I up) of every microbatch on every rank, in these steps:

1. every rank fills its empty ticks with W, one for each I that has none yet;
2. F, I and W of the beginning (before the first I up on rank 0) and of the end (behind the last F
   down on rank 0) move, in the order of their starts, to the first empty tick behind their inputs
   at which the rank holds no more than the fullest rank did before;
3. all start as early as their order allows (the paper's *squeezing*), and W is taken out;
4. step 2 again for F and I of the end, a rank's memory now counted with W in every empty tick;
5. W fills the empty ticks once more, that of chunk 1 first where both wait.

With few microbatches the last F down comes before the first I up; then nothing counts as the end.

Source: Qi et al., "Pipeline Parallelism with Controllable Memory" (NeurIPS 2024, arXiv:2405.15362),
by its authors' code: sail-sg/zero-bubble-pipeline-parallelism at 39f2c18,
megatron/core/pipeline_parallel/zerobubble/scheduler/zbv_greedy.py. Written anew; the orders are
compared with those that the code gives (a test).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bubbleproof.theory.model.actions import Ints

F_DOWN, F_UP, I_DOWN, I_UP, W = range(5)
Item = tuple[int, int, int, int]  # start, rank, pass, number in its pass
RankWeights = tuple[list[int], list[int]]  # the starts of W of chunk 1, and of chunk 0


def reordered(starts: Ints) -> tuple[Ints, list[RankWeights]]:
    """The starts of the passes after all steps, and of W on each rank.

    Parameters
    ----------
    starts
        Shape (4, ranks, microbatches), ascending along the microbatches, no two of a rank alike.
    """
    first = _Reordering(starts, has_weights=True).moved()
    second = np.array(_Reordering(_squeezed(first), has_weights=False).moved())
    return second, [filled(second[:, rank]) for rank in range(starts.shape[1])]


def filled(starts: Ints) -> RankWeights:
    """The W of a rank: one in every empty tick while any waits, chunk 1 first.

    Parameters
    ----------
    starts
        Those of the rank's passes, shape (4, microbatches).
    """
    passes = np.repeat(np.arange(W), starts.shape[1]).tolist()
    by_tick = dict(zip(starts.ravel().tolist(), passes, strict=True))
    waiting = [0, 0]
    found: RankWeights = ([], [])
    tick, last = 0, int(starts.max())
    while tick <= last or any(waiting):
        which = by_tick.get(tick)
        if which is None and any(waiting):
            chunk = 0 if waiting[0] else 1
            waiting[chunk] -= 1
            found[chunk].append(tick)
        elif which is not None and which >= I_DOWN:
            waiting[which - I_DOWN] += 1
        tick += 1
    return found


class _Reordering:
    """Starts that move: of the four passes, and of W, in the order of the I, where it counts."""

    def __init__(self, starts: Ints, *, has_weights: bool) -> None:
        _, self.num_ranks, self.num_microbatches = starts.shape
        self.has_weights = has_weights
        self.start: list[list[list[int]]] = starts.tolist()
        if has_weights:
            weights = (filled(starts[:, rank]) for rank in range(self.num_ranks))
            self.start.append([sorted(down + up) for down, up in weights])
        self.end = 1 + max(row[-1] for rows in self.start for row in rows)
        self.taken = np.zeros((self.num_ranks, self.end), dtype=bool)
        self.limit = max(map(self.most, range(self.num_ranks)))

    def moved(self) -> list[list[list[int]]]:
        """The starts after every item had its turn."""
        is_begun = is_ending = False
        for item in self.items():
            now, rank, which, number = item
            is_begun = is_begun or (which == I_UP and rank == 0)
            is_free = is_ending if is_begun else self.has_weights
            to = self.first_free(item) if is_free else now
            self.start[which][rank][number] = to
            self.taken[rank, to] = True
            is_last = which == F_DOWN and number == self.num_microbatches - 1
            is_ending = is_ending or (is_begun and is_last)
        return self.start

    def items(self) -> list[Item]:
        """All that may move, by start, then rank, then pass."""
        return sorted(
            (start, rank, which, number)
            for which, rows in enumerate(self.start)
            for rank, row in enumerate(rows)
            for number, start in enumerate(row)
        )

    def first_free(self, item: Item) -> int:
        """The first empty tick behind an item's inputs at which its rank stays within the limit."""
        now, rank, which, number = item
        row, taken = self.start[which][rank], self.taken[rank]
        for tick in range(1 + max(self.inputs(item), default=-1), now):
            if not taken[tick]:
                row[number] = tick
                if self.most(rank) <= self.limit:
                    return tick
        return now

    def inputs(self, item: Item) -> Iterator[int]:
        """The starts of what comes right before an item."""
        _, rank, which, number = item
        if number:
            yield self.start[which][rank][number - 1]
        if which == W:
            yield sorted(self.start[I_DOWN][rank] + self.start[I_UP][rank])[number]
            return
        if which:
            yield self.start[which - 1][rank][number]
        before = rank + (1 if which in (F_UP, I_UP) else -1)
        if 0 <= before < self.num_ranks:
            yield self.start[which][before][number]

    def most(self, rank: int) -> int:
        """The most activations that a rank holds; a W gives one back in its own tick."""
        at = self.start
        change = np.zeros(self.end, dtype=np.int64)
        change[at[F_DOWN][rank] + at[F_UP][rank]] = 1
        if self.has_weights:
            change[at[W][rank]] = -1
            return int(change.cumsum().max())
        # Without W: one in each empty tick while any waits (a queue that is served there).
        inputs = np.zeros(self.end, dtype=np.int64)
        inputs[at[I_DOWN][rank] + at[I_UP][rank]] = 1
        waiting = (inputs - ((change == 0) & (inputs == 0))).cumsum()
        queue = waiting - np.minimum(np.minimum.accumulate(waiting), 0)
        return int((change.cumsum() - inputs.cumsum() + queue).max())


def _squeezed(starts: list[list[list[int]]]) -> Ints:
    """All as early as their order allows at unit ticks; W, the last of ``starts``, is left out."""
    num_ranks, count = len(starts[0]), len(starts[0][0])
    found = np.zeros((W, num_ranks, count), dtype=np.int64)
    free = [0] * num_ranks
    items = sorted(
        (start, rank, which, number)
        for which, rows in enumerate(starts)
        for rank, row in enumerate(rows)
        for number, start in enumerate(row)
    )
    for _, rank, which, number in items:
        start = free[rank]
        if which < W:
            before = rank + (1 if which in (F_UP, I_UP) else -1)
            if 0 <= before < num_ranks:
                start = max(start, int(found[which, before, number]) + 1)
            found[which, rank, number] = start
        free[rank] = start + 1
    return found
