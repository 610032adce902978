"""Lower bounds by what a store has room for (``verify.certificates.one_store``, ``volume``).

Where forwards and backwards of later ranks cross, ``verify.certificates.crossings`` says more.

Of each resource whose tasks acquire in a store with a capacity two instants are sought, with the
most idle time that is sure before the one and after the other. What is sure to be idle before an
instant grows by at most 1 per tick, and falls where tasks come in or the store gains room; so it is
greatest at the head of a task. Tried are the least head, where the bound is that of one machine,
and the first ``INSTANTS`` heads of tasks that do not acquire: by then a store may be full, with
nothing else to be done.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.crossings import Crossings, crossings_bound
from bubbleproof.verify.certificates.index_order import IndexOrder
from bubbleproof.verify.certificates.one_store import OneStore, StoreChanges, changes, mirrored
from bubbleproof.verify.certificates.volume import Volume, volume_bound

INSTANTS = 16
MOST_TASKS = 50_000  # beyond, volumes take seconds


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Side:
    """The tasks of a resource from one end of time, and the store.

    ``room`` (units) grows by ``released[i]`` in all once ``moments[i - 1]`` is past; ``acquired``
    is what each task takes of it when it starts.
    """

    heads: Ints
    ticks: Ints
    acquired: Ints
    room: int
    moments: Ints
    released: Ints

    def instants(self) -> list[int]:
        """Those to try, in ticks."""
        others = np.unique(self.heads[self.acquired <= 0])[:INSTANTS]
        found: list[int] = np.unique(np.append(others, self.heads.min())).tolist()
        return found

    def idle(self, begin: int) -> int:
        """The ticks before ``begin`` in which the resource is sure to do nothing."""
        done = np.minimum(self.ticks, np.maximum(begin - self.heads, 0))
        takes = (self.acquired > 0) & (self.heads < begin)
        if not takes.any():
            return begin - int(done.sum())
        room = self.room + int(self.released[np.searchsorted(self.moments, begin)])
        most = max(0, room // int(self.acquired[takes].min()))
        taken = np.sort(done[takes])[::-1][:most]
        return begin - int(done[~takes].sum()) - int(taken.sum())


def acquiring(problem: Problem) -> list[tuple[int, int]]:
    """The (resource, store) pairs such that a task of the one acquires in the other, which has a
    capacity."""
    events, occupancy = problem.events, problem.occupancy
    pairs = set[tuple[int, int]]()
    for store, home in enumerate(problem.stores):
        tasks = events.task[(events.store == store) & (events.delta > 0) & ~events.at_end]
        if home.capacity is not None and len(tasks):
            used = occupancy.resource[np.isin(occupancy.task, tasks)]
            pairs |= {(resource, store) for resource in np.unique(used).tolist()}
    return sorted(pairs)


def store_bound(
    problem: Problem, heads: Ints, tails: Ints, resource: int, store: int
) -> OneStore | None:
    """The best bound of the pair on the makespan, or None where it has none.

    Heads and tails are those of the objective, NEVER where no path leads. Precondition: the pair is
    one of ``acquiring``.

    Parameters
    ----------
    heads, tails
        Ticks per task, of the objective; ``NEVER`` where no path leads.
    resource, store
        A pair of ``acquiring``.
    """
    users = problem.occupancy.task[problem.occupancy.resource == resource]
    if min(heads[users].min(), tails[users].min()) < 0:
        return None
    begun, ended = changes(problem, store), mirrored(problem, store)
    if begun.room is None or ended.room is None:
        return None
    begins = _side(problem, heads, users, begun, begun.room)
    ends = _side(problem, tails, users, ended, ended.room)
    work = int(problem.duration[users].sum())
    late = [(end, ends.idle(end)) for end in ends.instants()]
    best = None
    for begin in begins.instants():
        idle = begins.idle(begin)
        for end, other in late:
            bound = idle + other + work
            if begin - idle + end - other < work and (best is None or bound > best.bound):
                best = OneStore(resource=resource, store=store, begin=begin, end=end, bound=bound)
    return best


def volumes(problem: Problem, order: IndexOrder, heads: Ints, tails: Ints) -> Iterator[Volume]:
    """The bounds on the makespan of all stores that have one.

    Parameters
    ----------
    heads, tails
        Ticks per task, shape (num_tasks,).
    """
    paths = heads.tolist(), tails.tolist()
    for store in range(len(problem.stores) if problem.num_tasks <= MOST_TASKS else 0):
        bound = volume_bound(problem, order, store, *paths)
        if bound is not None:
            yield Volume(store=store, bound=bound)


def first_crossings(
    problem: Problem, order: IndexOrder, heads: Ints, tails: Ints
) -> Crossings | None:
    """The bound on the makespan of the first store that has one: most links are behind its rank.

    Parameters
    ----------
    heads, tails
        Ticks per task, shape (num_tasks,).
    """
    paths = heads.tolist(), tails.tolist()
    for store in range(len(problem.stores)):
        bound = crossings_bound(problem, order, store, *paths)
        if bound is not None:
            return Crossings(store=store, bound=bound)
    return None


def _side(problem: Problem, heads: Ints, users: Ints, store: StoreChanges, room: int) -> _Side:
    at_start, at_end = np.array(store.at_start), np.array(store.at_end)
    moments = np.concatenate([heads[at_start < 0], (heads + problem.duration)[at_end < 0]])
    released = -np.concatenate([at_start[at_start < 0], at_end[at_end < 0]])
    order = np.argsort(moments, kind="stable")
    return _Side(
        heads=heads[users],
        ticks=problem.duration[users],
        acquired=at_start[users],
        room=room,
        moments=moments[order],
        released=np.concatenate([[0], np.cumsum(released[order])]),
    )
