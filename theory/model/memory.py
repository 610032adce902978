"""Memory: the load of each store over time.

A store's load starts at its base and changes at the memory events. At equal times releases come
before acquisitions (docs/guide/design.md §2); so the highest load at an instant is the load after
all its events, and a peak counts the running forward.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bubbleproof.theory.model.actions import Bools, Ints
from bubbleproof.theory.model.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MemoryProfile:
    """Loads after each memory event, rows ordered by store, time, releases first.

    ``event[i]`` is a row of ``problem.events``; ``level[i]`` is the load of ``store[i]`` just after
    it, base included.
    """

    event: Ints
    store: Ints
    time: Ints
    level: Ints

    @property
    def is_settled(self) -> Bools:
        """Mask of the rows whose level is the load after *all* changes of their instant."""
        moves_on = (self.store[1:] != self.store[:-1]) | (self.time[1:] != self.time[:-1])
        return np.append(moves_on, np.ones(min(1, len(self.time)), dtype=bool))

    def peaks(self, problem: Problem) -> Ints:
        """The highest load of each store, base included, shape (stores,)."""
        peak = np.array([store.base for store in problem.stores], dtype=np.int64)
        np.maximum.at(peak, self.store, self.level)
        return peak

    def curve(self, problem: Problem, store: int) -> tuple[Ints, Ints]:
        """(times, loads) of one store as a staircase: ``loads[i]`` holds from ``times[i]`` on.

        The first step is the base load at time 0, or at the first event where that is earlier.

        Parameters
        ----------
        store
            The store's index in the problem.

        Returns
        -------
        tuple[Ints, Ints]
            Ticks and units of memory, of one shape (steps,).
        """
        rows = self.store == store
        time, level = self.time[rows], self.level[rows]
        origin = min(0, int(time[0])) if len(time) else 0
        time = np.concatenate([[origin], time])
        level = np.concatenate([[problem.stores[store].base], level])
        last = np.flatnonzero(np.diff(time, append=np.iinfo(np.int64).max))
        return time[last], level[last]


def memory_profile(problem: Problem, task: Ints, start: Ints) -> MemoryProfile:
    """The loads when ``task[i]`` runs at ``start[i]`` (ticks); a task's first row counts.

    Parameters
    ----------
    task
        The task of each row, as an index into the problem.
    start
        The tick at which each row starts, of the same shape (rows,).
    """
    events = problem.events
    begin = np.zeros(problem.num_tasks, dtype=np.int64)
    runs = np.zeros(problem.num_tasks, dtype=bool)
    begin[task[::-1]], runs[task] = start[::-1], True  # of repeated indices the last is kept
    happens = np.flatnonzero(runs[events.task])
    when = begin[events.task] + np.where(events.at_end, problem.duration[events.task], 0)
    order = happens[_by_store_and_time(events.store[happens], when[happens], events.delta[happens])]
    store, delta = events.store[order], events.delta[order]
    base = np.array([s.base for s in problem.stores], dtype=np.int64)
    running = np.cumsum(delta)
    first = np.flatnonzero(np.diff(store, prepend=-1))  # each store's own first row
    before = np.repeat((running - delta)[first], np.diff(first, append=len(store)))
    level = running - before + base[store]
    return MemoryProfile(event=order, store=store, time=when[order], level=level)


def _by_store_and_time(store: Ints, time: Ints, delta: Ints) -> Ints:
    """Row order by (store, time, releases first); one packed integer key where it fits."""
    origin = int(time.min(initial=0))
    span = int(time.max(initial=0)) - origin + 1
    if span * (int(store.max(initial=0)) + 1) < 1 << 61:
        return np.argsort((store * span + time - origin) * 2 + (delta > 0), kind="stable")
    return np.lexsort((delta > 0, time, store))
