"""SVPP's generator as MEPipe section 4.3 prints it, for comparison with ``svpp``.

The paper fills a table of equal ticks, one sample after another. As we read it:

1. Forwards of a sample go chunk by chunk, slice by slice, each into the first free tick after its
   inputs (so later samples fall into the bubbles between the chunks of the first). On rank 0,
   forward number q >= f also waits for the end of backward number q - f.
2. Backwards of a sample go from the highest chunk and the last slice down, each into the first free
   tick after its inputs and, on each rank, one bubble after the backward before it. The text asks
   for bubbles between consecutive backwards "of different slices": of one sample (``of_samples``),
   so that those of the next sample may fall into them, or also between two samples.
3. The bubbles behind the last forward are removed: the program is left-shifted.
4. ``rescheduled``: on the last rank, the ticks that hold a backward before the last forward keep
   one, and every later tick may; each takes, of the backwards whose inputs are there, the one with
   most children, (k+1)(c+1) - 1 for slice k of chunk c counted within its sample as in the paper's
   example. The other ranks follow one tick apart per rank.

Where the text leaves a choice it is taken thus: equal priorities by microbatch, then the higher
chunk first; a tick without a ready backward stays empty. ``tie_breaks`` gives the orders of every
other choice among equal priorities.

What it gives, at equal ticks and the largest f (the tests show each): no deadlock and no peak above
f on the range tested, but not Table 3's bubble. Steps 1 to 3 first miss it at p=2, m=2, v=2, s=1
(11 ticks, not 10), because a sample's backwards wait for those of the sample before; step 4 mends
that and first misses at p=3, m=1, v=2, s=4 (21, not 20), where late slices of chunk 0 have more
children than early slices of chunk 1 and delay them. In the paper's own example (p=4, s=2, v=2,
n=2, Figures 5(a) and 6) the steps give 25 and 23 ticks, with bubbles within samples 24 and 23, and
at the least f, Figure 5(c), 32 either way. Table 3 says 22, which ``svpp`` takes and step 4 with
its one tie broken the other way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline

SlicePlace = tuple[int, int, int]  # (microbatch, slice, stage)


def svpp_literal(
    pipeline: Pipeline, forwards: int, *, rescheduled: bool, of_samples: bool = False
) -> Program:
    """The printed generator's orders. Preconditions: loop placement, full backwards, f >= v*s.

    ``of_samples`` puts the bubbles of step 2 within each sample alone.

    Parameters
    ----------
    forwards
        f, the forwards of rank 0 before its first backward.
    rescheduled
        Whether step 4 is taken.
    of_samples
        Whether the bubbles of step 2 lie within each sample alone.
    """
    table = _Table(pipeline, forwards, of_samples=of_samples)
    if rescheduled:
        table.reschedule(_first)
    return _program(table)


def tie_breaks(pipeline: Pipeline, forwards: int) -> Iterator[Program]:
    """The rescheduled orders, one for every way to break the ties of step 4; the first is ours.

    Their number grows with the factorial of the microbatches: for small pipelines.

    Parameters
    ----------
    forwards
        f, the forwards of rank 0 before its first backward.
    """
    script: list[int] = []
    while True:
        choose = _Scripted(script)
        table = _Table(pipeline, forwards)
        table.reschedule(choose)
        yield _program(table)
        script = choose.taken
        while script and script[-1] + 1 == choose.sizes[len(script) - 1]:
            script.pop()
        if not script:
            return
        script[-1] += 1


class _Scripted:
    """Takes the given members of the ties it meets, and the first of every later one."""

    def __init__(self, script: Sequence[int]) -> None:
        self.script, self.taken, self.sizes = script, list[int](), list[int]()

    def __call__(self, tied: Sequence[SlicePlace]) -> SlicePlace:
        place = len(self.taken)
        self.taken.append(self.script[place] if place < len(self.script) else 0)
        self.sizes.append(len(tied))
        return tied[self.taken[-1]]


def _first(tied: Sequence[SlicePlace]) -> SlicePlace:
    return tied[0]


def _program(table: _Table) -> Program:
    orders: list[list[Action]] = [[] for _ in range(table.p)]
    both = ((Kind.F, table.forward), (Kind.B, table.backward))
    timed = [(tick, kind, place) for kind, ticks in both for place, tick in ticks.items()]
    for _, kind, (microbatch, slice_, stage) in sorted(timed):
        action = Action(kind=kind, microbatch=microbatch, slice=slice_, stage=stage)
        orders[stage % table.p].append(action)
    return Program.from_orders(orders)


def _children(place: SlicePlace) -> int:
    """The priority of a backward."""
    _, slice_, chunk = place
    return (slice_ + 1) * (chunk + 1) - 1


def _tied(ready: Sequence[SlicePlace]) -> list[SlicePlace]:
    """Those of the highest priority, by microbatch, the higher chunk first."""
    most = max(map(_children, ready))
    best = (place for place in ready if _children(place) == most)
    return sorted(best, key=lambda place: (place[0], -place[2]))


class _Table:
    """Ticks of all forwards and backwards, filled sample after sample (steps 1 and 2)."""

    def __init__(self, pipeline: Pipeline, forwards: int, *, of_samples: bool = False) -> None:
        self.p, self.v, self.s = pipeline.num_ranks, pipeline.num_chunks, pipeline.num_slices
        self.m, self.limit = pipeline.num_microbatches, forwards
        self.forward: dict[SlicePlace, int] = {}
        self.backward: dict[SlicePlace, int] = {}
        self.taken: list[set[int]] = [set() for _ in range(self.p)]
        self.latest_backward = [-2] * self.p
        self.backward_ends: list[int] = []  # on rank 0, in order
        for microbatch in range(self.m):
            self._place_forwards(microbatch)
            if of_samples:
                self.latest_backward = [-2] * self.p
            self._place_backwards(microbatch)

    def _free(self, rank: int, earliest: int) -> int:
        while earliest in self.taken[rank]:
            earliest += 1
        self.taken[rank].add(earliest)
        return earliest

    def _place_forwards(self, microbatch: int) -> None:
        done = self.forward
        for chunk in range(self.v):
            for slice_ in range(self.s):
                number = (microbatch * self.v + chunk) * self.s + slice_
                room = self.backward_ends[number - self.limit] if number >= self.limit else 0
                for rank in range(self.p):
                    stage = chunk * self.p + rank
                    before = done.get((microbatch, slice_, stage - 1), -1)
                    beside = done.get((microbatch, slice_ - 1, stage), -1)
                    earliest = max(before + 1, beside + 1, 0 if rank else room)
                    done[microbatch, slice_, stage] = self._free(rank, earliest)

    def _place_backwards(self, microbatch: int) -> None:
        done = self.backward
        for chunk in reversed(range(self.v)):
            for slice_ in reversed(range(self.s)):
                for rank in reversed(range(self.p)):
                    stage = chunk * self.p + rank
                    inputs = (
                        self.forward[microbatch, slice_, stage],
                        done.get((microbatch, slice_, stage + 1), -1),
                        done.get((microbatch, slice_ + 1, stage), -1),
                        self.latest_backward[rank] + 1,  # a bubble between two backwards
                    )
                    tick = self._free(rank, max(inputs) + 1)
                    self.latest_backward[rank] = done[microbatch, slice_, stage] = tick
                self.backward_ends.append(done[microbatch, slice_, chunk * self.p] + 1)

    def reschedule(self, choose: Callable[[Sequence[SlicePlace]], SlicePlace]) -> None:
        """Step 4: choose the last rank's backwards anew, by ``choose`` where priorities are equal.

        The other ranks follow.
        """
        last = self.p - 1
        last_forward = max(t for place, t in self.forward.items() if place[2] % self.p == last)
        kept = sorted(
            t
            for place, t in self.backward.items()
            if place[2] % self.p == last and t < last_forward
        )
        todo = {(j, k, c) for j in range(self.m) for k in range(self.s) for c in range(self.v)}
        chosen: dict[SlicePlace, int] = {}
        tick = last_forward
        while todo:
            tick = kept.pop(0) if kept else max(tick, last_forward) + 1
            ready = [place for place in todo if self._is_ready(place, chosen, tick)]
            if ready:
                best = choose(_tied(ready))
                chosen[best] = tick
                todo.remove(best)
        for (microbatch, slice_, chunk), at in chosen.items():
            for rank in range(self.p):
                self.backward[microbatch, slice_, chunk * self.p + rank] = at + last - rank

    def _is_ready(self, place: SlicePlace, chosen: dict[SlicePlace, int], tick: int) -> bool:
        """Whether the backward (microbatch, slice, chunk) can start on the last rank at ``tick``.

        Its chunk above ends on rank 0 p ticks after it starts on the last rank.
        """
        microbatch, slice_, chunk = place
        later, above = (microbatch, slice_ + 1, chunk), (microbatch, slice_, chunk + 1)
        if self.forward[microbatch, slice_, chunk * self.p + self.p - 1] >= tick:
            return False
        if slice_ + 1 < self.s and chosen.get(later, tick) >= tick:
            return False
        return chunk + 1 == self.v or chosen.get(above, tick) + self.p <= tick
