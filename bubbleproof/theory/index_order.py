"""Index order: edges that every problem of identical microbatches may add for free.

A *class* is the tasks of one (kind, stage, slice, part), one per microbatch. Microbatches are
*identical* when, class by class, they have equal durations, resources and memory events, and every
precedence joins two tasks of one microbatch and stands, with the same lag, in all of them.

Lemma. If microbatches are identical, every feasible schedule can be relabelled, without changing
any start time as a multiset, so that in every class microbatch j starts before microbatch j+1.
Proof. In each class sort the start times and give the i-th smallest to microbatch i. A class's
tasks have one duration, so each resource sees the same busy intervals and each store the same
changes at the same times. A precedence X -> Y with lag d means x_j + dur + d <= y_j for all j; then
the i-th smallest of x plus dur + d is at most the i-th smallest of y (at least i of the x_j lie
below the i-th smallest y). So precedences survive.

Hence a makespan bound proved with these edges holds for every schedule:

- ``order_edges``: task j+1 of a class starts no earlier than task j ends (they share a resource).
- ``memory_edges``: let a store allow M = capacity - base. In the lifecycle of one microbatch on one
  (stage, slice) of that store, let a be what its first task acquires and h the least it holds
  until its last task gives everything back. When microbatch j begins, at most (M - a) div h of the
  earlier ones are open, so with K = (M - a) div h + 1 the first task of j starts no earlier than
  the last of j - K ends. If a lone (stage, slice) uses the store and its lifecycle is one
  acquisition and one release, these edges are the memory constraint, no more and no less
  (``exact_stores``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from bubbleproof.theory.actions import NONE, Ints
from bubbleproof.theory.problem import Edges, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifecycle:
    """What one microbatch holds in one store through the tasks of one (stage, slice).

    ``first`` and ``last`` are classes; the load rises by ``acquired`` at the start of ``first``, is
    at least ``held`` until the end of ``last``, and then 0. ``is_simple``: nothing happens between.
    """

    store: int
    first: int
    last: int
    acquired: int
    held: int
    is_simple: bool


class IndexOrder:
    """The classes of a problem with identical microbatches; see ``index_order``.

    ``members[c, j]`` is the task of class c for microbatch j.
    """

    def __init__(self, problem: Problem, members: Ints) -> None:
        self.problem = problem
        self.members = members

    @property
    def num_microbatches(self) -> int:
        return int(self.members.shape[1])

    @cached_property
    def order_edges(self) -> Edges:
        """Task j+1 of each class after task j."""
        before, after = self.members[:, :-1].ravel(), self.members[:, 1:].ravel()
        return Edges(before=before, after=after, lag=np.zeros_like(before))

    @cached_property
    def memory_edges(self) -> Edges:
        """The first task of microbatch j after the last of j - K, for every lifecycle."""
        before, after = [], []
        for life in self.lifecycles:
            limit = self.limit(life)
            if limit is not None and 0 < limit < self.num_microbatches:
                before.append(self.members[life.last, :-limit])
                after.append(self.members[life.first, limit:])
        if not before:
            return Edges()
        columns = np.concatenate(before), np.concatenate(after)
        return Edges(before=columns[0], after=columns[1], lag=np.zeros_like(columns[0]))

    def limit(self, life: Lifecycle) -> int | None:
        """K: how many microbatches may be within the lifecycle at once; None without capacity.

        0 or less means that not even one fits: the problem is infeasible.
        """
        store = self.problem.stores[life.store]
        if store.capacity is None:
            return None
        room = store.capacity - store.base - life.acquired
        return -1 if room < 0 else room // life.held + 1

    @cached_property
    def exact_stores(self) -> frozenset[int]:
        """Stores whose capacity the memory edges express completely."""
        by_store: dict[int, list[Lifecycle]] = {}
        for life in self.lifecycles:
            by_store.setdefault(life.store, []).append(life)
        users: dict[int, set[int]] = {}
        events = self.problem.events
        classes = self._class_of_task[events.task].tolist()
        for store, member in zip(events.store.tolist(), classes, strict=True):
            users.setdefault(store, set()).add(member)
        return frozenset(
            store
            for store, lives in by_store.items()
            if lives[0].is_simple and users[store] == {lives[0].first, lives[0].last}
        )

    @cached_property
    def _class_of_task(self) -> Ints:
        class_of = np.full(self.problem.num_tasks, NONE)
        class_of[self.members] = np.arange(len(self.members))[:, None]
        return class_of

    @cached_property
    def lifecycles(self) -> tuple[Lifecycle, ...]:
        """The lifecycles of microbatch 0, one per (store, stage, slice) of a recognised form.

        Recognised: the tasks' order is forced by precedences F -> B or F -> I -> W, the first takes
        time (else a release could fall on its start and hide what it acquires), the load never
        returns to 0 before the last of them ends, and it is 0 then. A store with any other use has
        none, which makes bounds weaker but never wrong (another use might lower the load).
        """
        problem, zero = self.problem, self.members[:, 0]
        events, class_of = problem.events, self._class_of_task
        rows = np.flatnonzero(np.isin(events.task, zero))
        groups: dict[tuple[int, int, int], list[int]] = {}
        for row in rows.tolist():
            task = int(events.task[row])
            key = (
                int(events.store[row]),
                int(problem.actions.stage[task]),
                int(problem.actions.slice[task]),
            )
            groups.setdefault(key, []).append(row)
        found = [
            (store, self._lifecycle(store, members, class_of))
            for (store, _, _), members in groups.items()
        ]
        unclear = {store for store, life in found if life is None}
        return tuple(life for store, life in found if life is not None and store not in unclear)

    def _lifecycle(self, store: int, rows: list[int], class_of: Ints) -> Lifecycle | None:
        events, actions = self.problem.events, self.problem.actions
        changes: dict[tuple[int, bool, int], int] = {}  # by moment: (kind, at its end?, task)
        for row in rows:
            task = int(events.task[row])
            moment = (int(actions.kind[task]), bool(events.at_end[row]), task)
            changes[moment] = changes.get(moment, 0) + int(events.delta[row])
        moments = sorted(changes)  # kinds F < B < I < W run in this order, a start before its end
        (_, begins_late, first), (_, ends_late, last) = moments[0], moments[-1]
        tasks = list(dict.fromkeys(task for _, _, task in moments))
        if any(not self._follows(a, b) for a, b in pairwise(tasks)):
            return None
        if begins_late or not ends_late or self.problem.duration[first] == 0:
            return None
        levels = np.cumsum([changes[moment] for moment in moments]).tolist()
        if levels[-1] != 0 or min(levels[:-1], default=0) <= 0:
            return None
        return Lifecycle(
            store=store,
            first=int(class_of[first]),
            last=int(class_of[last]),
            acquired=int(levels[0]),
            held=int(min(levels[:-1])),
            is_simple=len(moments) == 2,
        )

    def _follows(self, before: int, after: int) -> bool:
        """Whether precedences of their stage and microbatch force ``after`` behind ``before``."""
        reached, frontier = {before}, [before]
        while frontier:
            found = self._next_in_stage.get(frontier.pop(), ())
            frontier += [task for task in found if task not in reached]
            reached.update(found)
        return after in reached

    @cached_property
    def _next_in_stage(self) -> dict[int, list[int]]:
        """For tasks of microbatch 0: the tasks of the same stage and slice that wait for them."""
        edges, actions = self.problem.edges, self.problem.actions
        inside = (
            (actions.microbatch[edges.before] == 0)
            & (edges.lag >= 0)  # after a negative lag the later task may even run first
            & (actions.stage[edges.before] == actions.stage[edges.after])
            & (actions.slice[edges.before] == actions.slice[edges.after])
        )
        found: dict[int, list[int]] = {}
        for before, after in zip(
            edges.before[inside].tolist(), edges.after[inside].tolist(), strict=True
        ):
            found.setdefault(before, []).append(after)
        return found


def index_order(problem: Problem) -> IndexOrder | None:
    """The classes of a problem whose microbatches are identical, or None where they are not."""
    actions = problem.actions
    if problem.num_tasks == 0 or actions.microbatch.min() < 0:
        return None
    if (actions.partner_stage != NONE).any():
        return None
    name = np.stack([actions.kind, actions.stage, actions.slice, actions.part])
    _, class_of, sizes = np.unique(name, axis=1, return_inverse=True, return_counts=True)
    class_of = class_of.ravel()
    m = int(sizes[0])
    if (sizes != m).any() or actions.microbatch.max() != m - 1:
        return None
    members = np.lexsort((actions.microbatch, class_of)).reshape(-1, m)
    if (actions.microbatch[members] != np.arange(m)).any():
        return None
    same = _same_tasks(problem, members) and _same_edges(problem, class_of, m)
    return IndexOrder(problem, members) if same else None


def sure_edges(problem: Problem, order: IndexOrder | None) -> Edges:
    """All precedences, and with the problem's index order its order and memory edges."""
    parts = [problem.edges]
    if order is not None:
        parts += [order.order_edges, order.memory_edges]
    return Edges(
        before=np.concatenate([part.before for part in parts]),
        after=np.concatenate([part.after for part in parts]),
        lag=np.concatenate([part.lag for part in parts]),
    )


def _same_tasks(problem: Problem, members: Ints) -> bool:
    """Equal durations, resources and memory events within each class."""
    if (problem.duration[members] != problem.duration[members[:, :1]]).any():
        return False
    m = members.shape[1]
    first_of = np.empty(problem.num_tasks, dtype=np.int64)
    first_of[members] = members[:, :1]
    occupancy, events = problem.occupancy, problem.events
    return _m_of_each(
        np.stack([first_of[occupancy.task], occupancy.resource]),
        problem.actions.microbatch[occupancy.task],
        m,
    ) and _m_of_each(
        np.stack([first_of[events.task], events.at_end, events.store, events.delta]),
        problem.actions.microbatch[events.task],
        m,
    )


def _same_edges(problem: Problem, class_of: Ints, m: int) -> bool:
    edges, microbatch = problem.edges, problem.actions.microbatch
    if (microbatch[edges.before] != microbatch[edges.after]).any():
        return False
    signature = np.stack([class_of[edges.before], class_of[edges.after], edges.lag])
    return _m_of_each(signature, microbatch[edges.before], m)


def _m_of_each(signature: Ints, microbatch: Ints, m: int) -> bool:
    """Whether every column of ``signature`` stands equally often in each of the m microbatches."""
    if not signature.shape[1]:
        return True
    _, which = np.unique(signature, axis=1, return_inverse=True)
    counts = np.bincount(which.ravel() * m + microbatch, minlength=(int(which.max()) + 1) * m)
    return bool((counts.reshape(-1, m) == counts.reshape(-1, m)[:, :1]).all())
