"""The banker's argument, by which list scheduling with memory never gets stuck (Dijkstra 1965).

Plain list scheduling can fill a memory with microbatches none of which can go on. So let the
microbatches stand in line, and call a state *safe* where they could be completed one after another:
each in its turn *lacks* no more than what is free by then, and gives back all that it *holds*
before the next one's turn. A task that takes memory starts only if the state is safe afterwards.

That is enough. The first state is safe, since the memory has room for one microbatch. In a safe
state the first of the line that is not complete can always go on: what its next task takes it had
lacked, so it lacks less by as much as is less free, nobody behind it sees a difference, and the
state stays safe. What else a run starts, if it starts it, leaves a safe state too. So some task can
run until all have run.

Two banks differ in their books. A ``RankBank`` knows exactly what each microbatch will still take
for good on one rank, and its line is the order of the microbatches. A ``StoreBank`` serves tasks of
any kind on any number of stores: what a microbatch may come to hold is what it holds at most when
it runs alone, and its line is the order in which microbatches began.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import inf

NOTHING = -inf  # what one lacks behind its last acquisition: it can end however little is free
StoreOfMicrobatch = tuple[int, int]  # (store, microbatch)


def is_safe(line: Iterable[tuple[float, int]], free: int, enough: float = inf) -> bool:
    """Whether all in line, given by what they lack and hold, can be completed in turn.

    Precondition: nobody behind lacks more than ``enough``.

    Parameters
    ----------
    line
        For each in line what it lacks and what it holds, in units.
    free
        Units that nobody holds.
    enough
        What nobody behind lacks more than.
    """
    for lacking, held in line:
        if lacking > free:
            return False
        free += held
        if free >= enough:
            break
    return True


class RankBank:
    """One rank: the units that each microbatch holds there, and will still take for good.

    ``lacking[j]`` are at first all units that microbatch j takes in one task and gives back in a
    later one. What a task takes and gives back itself needs room while it runs and is not lacked.
    """

    __slots__ = ("first", "held", "lacking", "last", "load", "most")

    def __init__(self, lacking: Iterable[int]) -> None:
        self.lacking = list(lacking)
        self.held = [0] * len(self.lacking)
        self.most = max(self.lacking, default=0)  # that any lacks
        self.load = 0  # the sum of what is held
        self.first = 0  # those before it are complete
        self.last = 0  # those behind it have not begun

    def take(self, microbatch: int, units: int, settled: int) -> None:
        """A task of the microbatch starts; it takes ``settled`` of its units for good.

        Parameters
        ----------
        microbatch
            The microbatch's number.
        units
            What the task takes.
        settled
            How many of them the microbatch then lacks no more.
        """
        self.load += units
        if microbatch > self.last:
            self.last = microbatch
        self.held[microbatch] += units
        self.lacking[microbatch] -= settled

    def give(self, microbatch: int, units: int) -> None:
        """A task of the microbatch ends.

        Parameters
        ----------
        microbatch
            The microbatch's number.
        units
            What the task gives back.
        """
        self.load -= units
        self.held[microbatch] -= units

    def allows(self, microbatch: int, units: int, settled: int, limit: int) -> bool:
        """Whether the state is safe once the task has started, with room for ``limit`` units.

        Precondition: no microbatch lacks more than ``limit``.

        Parameters
        ----------
        microbatch
            The microbatch's number.
        units
            What the task would take.
        settled
            How many of them the microbatch would then lack no more.
        limit
            Units that the rank has in all.
        """
        if (free := limit - self.load - units) >= self.most:
            return True
        lacking, held, first = self.lacking, self.held, self.first
        while first < microbatch and not held[first] + lacking[first]:
            first += 1
        self.first = first
        held[microbatch] += units
        lacking[microbatch] -= settled
        end = 1 + max(self.last, microbatch)  # those behind hold nothing
        line = zip(lacking[first:end], held[first:end], strict=True)
        found = is_safe(line, free, self.most)
        held[microbatch] -= units
        lacking[microbatch] += settled
        return found


class StoreBank:
    """What each microbatch under way holds in each store, and may come to hold.

    ``alone``: of each microbatch in each store what it holds at most when it runs alone, and in how
    many acquisitions; ``tasks`` counts the tasks of each microbatch.
    """

    def __init__(
        self, alone: Mapping[StoreOfMicrobatch, tuple[int, int]], tasks: Counter[int]
    ) -> None:
        self.alone = alone
        self.begun: dict[int, None] = {}  # microbatches under way, in the order of their beginning
        self.held: Counter[StoreOfMicrobatch] = Counter()
        self.acquired: Counter[StoreOfMicrobatch] = Counter()
        self.left = tasks.copy()

    def change(self, store: int, microbatch: int, delta: int) -> None:
        """A task of the microbatch changed what it holds.

        Parameters
        ----------
        store
            The store's index.
        microbatch
            The microbatch's number.
        delta
            Units; below 0 where they are released.
        """
        self.begun.setdefault(microbatch)
        self.held[store, microbatch] += delta
        self.acquired[store, microbatch] += delta > 0

    def end(self, microbatch: int) -> None:
        """A task of the microbatch ended.

        Parameters
        ----------
        microbatch
            The microbatch's number.
        """
        self.left[microbatch] -= 1
        if not self.left[microbatch]:
            self.begun.pop(microbatch, None)

    def allows(self, store: int, microbatch: int, delta: int, free: int) -> bool:
        """Whether the state is safe once a task took ``delta`` and left ``free``.

        Parameters
        ----------
        store
            The store's index.
        microbatch
            The microbatch's number.
        delta
            Units that the task would take.
        free
            Units that would be left.
        """
        return is_safe(self._line(store, microbatch, delta), free)

    def _line(self, store: int, microbatch: int, delta: int) -> Iterator[tuple[float, int]]:
        """What each lacks and holds, in the order of beginning."""
        is_new = microbatch not in self.begun
        for other in (*self.begun, microbatch) if is_new else self.begun:
            key = store, other
            if (alone := self.alone.get(key)) is None:
                continue
            held, times = self.held[key], self.acquired[key]
            if other == microbatch:
                held, times = held + delta, times + 1
            yield (alone[0] - held if times < alone[1] else NOTHING), held
