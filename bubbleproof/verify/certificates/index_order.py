"""Index order: edges that every problem of identical microbatches may add for free.

A *class* is the tasks of one (kind, stage, slice, part). This is the one place of the exchange
argument that solvers and certificates rest on; what it needs is checked, and where a hypothesis
fails, the edges that need it are not there.

**Hypothesis 1: tasks of a class are interchangeable.** Each class has one task per microbatch, of
equal duration, resources and memory events, and every precedence joins two tasks of one microbatch
and stands, with the same lag, in all of them. (``index_order`` is None otherwise.)

Lemma 1. Sort the start times of each class and give the i-th smallest to microbatch i. A schedule
that obeys all rules still does, and busy times and loads are the same at every instant.
Proof. The tasks of a class differ in nothing, so each resource sees the same busy intervals and
each store the same changes at the same times. A precedence X -> Y with lag d says
x_j + duration + d <= y_j for all j; then the i-th smallest of x plus duration + d is at most the
i-th smallest of y (at least i of the x_j lie below the i-th smallest y), whatever the sign of d.

Every objective depends on busy times and loads alone, so a bound on the schedules in which each
class is in index order holds for all. Of two classes, and of one class in two microbatches, the
lemma says nothing but this:

- ``order_edges``: task j+1 of a class starts no earlier than task j ends, for they share a resource
  and stand in index order.

Memory. The load is compared with the capacity after all changes of an instant, since at equal times
releases come before acquisitions. Let the changes of each (stage, slice) of a microbatch on a store
be one *use* of it.

**Hypothesis 2: the moments of a use are forced into one row** by precedences within the
microbatch, durations and lags counted (``verify.certificates.chains``); kinds and numbers of tasks
force nothing. Precedences survive lemma 1, so at each instant a use has the level after a prefix of
its row.

**Hypothesis 3: every use of the store is a lifecycle.** It begins by acquiring a at the start of a
task, more than 0 ticks before its next moment; holds h > 0 or more until its last moment, which is
the end of a task; and then holds nothing.

Lemma 2. Let M = capacity - base and K = (M - a) div h + 1 for one (stage, slice). Then the first
task of microbatch j starts no earlier than the last task of microbatch j - K ends
(``memory_edges``); if a > M there is no schedule.
Proof. After all changes of the instant at which the first task of j starts, the use of j has passed
its first moment and no other: it holds a. The uses of 0..j-1 have begun, by index order; n of them,
whose last task has not ended, hold h or more each. Every other use holds 0 or more. So
a + n h <= M, hence n < K, and at least j - K + 1 of the earlier ones have ended: by index order
0..j-K are among them.

What else is used of hypotheses 2 and 3: ``chains``, by certificates and propagation, which take of
each row the least level after any prefix that may have passed.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from bubbleproof.theory.model.actions import NONE, Ints
from bubbleproof.theory.model.problem import Edges, Problem
from bubbleproof.verify.certificates.chains import Chain, ForcedOrder, Lifecycle


class IndexOrder:
    """The classes of a problem with identical microbatches; see ``index_order``.

    ``members[c, j]`` is the task of class c for microbatch j.
    """

    def __init__(self, problem: Problem, members: Ints) -> None:
        self.problem = problem
        self.members = members
        self.num_microbatches = int(members.shape[1])

    @cached_property
    def order_edges(self) -> Edges:
        """Task j+1 of each class after task j."""
        before, after = self.members[:, :-1].ravel(), self.members[:, 1:].ravel()
        return Edges(before=before, after=after, lag=np.zeros_like(before))

    @cached_property
    def memory_edges(self) -> Edges:
        """The first task of microbatch j after the last of j - K, for every lifecycle."""
        parts = [Edges()]
        for life in self.lifecycles:
            limit = self.limit(life)
            if limit is not None and 0 < limit < self.num_microbatches:
                before, after = self.members[life.last, :-limit], self.members[life.first, limit:]
                parts.append(Edges(before=before, after=after, lag=np.zeros_like(before)))
        return _joined(parts)

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
    def lifecycles(self) -> tuple[Lifecycle, ...]:
        """The lifecycles of microbatch 0, in stores all of whose uses are lifecycles.

        A store with any other use has none (the other use might lower the load), which makes bounds
        weaker but never wrong.
        """
        lives = {
            owner: None if chain is None else self._forced.lifecycle(owner[0], chain)
            for owner, chain in self._forced.chains.items()
        }
        unclear = {owner[0] for owner, life in lives.items() if life is None}
        return tuple(life for life in lives.values() if life and life.store not in unclear)

    @cached_property
    def chains(self) -> dict[int, list[Chain]]:
        """The chains of all microbatches in each store with a capacity whose uses are lifecycles.

        By (stage, slice), and of one (stage, slice) by microbatch.
        """
        known = {life.store for life in self.lifecycles}
        row_of: dict[int, list[int]] = {row[0]: row for row in self.members.tolist()}
        found: dict[int, list[Chain]] = {}
        for (store, *_), chain in sorted(self._forced.chains.items(), key=lambda item: item[0]):
            if store in known and self.problem.stores[store].capacity is not None and chain:
                found.setdefault(store, []).extend(
                    [((row_of[task][j], at_end), level) for (task, at_end), level in chain]
                    for j in range(self.num_microbatches)
                )
        return found

    @cached_property
    def _forced(self) -> ForcedOrder:
        return ForcedOrder(self.problem, self.members[:, 0])


def index_order(problem: Problem) -> IndexOrder | None:
    """The classes of a problem whose microbatches are identical, or None where they are not."""
    actions, microbatch = problem.actions, problem.actions.microbatch
    occupancy, edges, events = problem.occupancy, problem.edges, problem.events
    if problem.num_tasks == 0 or microbatch.min() < 0 or (actions.partner_stage != NONE).any():
        return None
    name = np.stack([actions.kind, actions.stage, actions.slice, actions.part])
    of = np.unique(name, axis=1, return_inverse=True)[1].ravel()  # the class of each task
    m = int(microbatch.max()) + 1
    if problem.num_tasks != (int(of.max()) + 1) * m:
        return None
    if (microbatch[edges.before] != microbatch[edges.after]).any():
        return None
    alike = (
        (np.arange(problem.num_tasks), (of, problem.duration)),
        (occupancy.task, (of[occupancy.task], occupancy.resource)),
        (events.task, (of[events.task], events.at_end, events.store, events.delta)),
        (edges.before, (of[edges.before], of[edges.after], edges.lag)),
    )
    if not all(_m_of_each(np.stack(what), microbatch[task], m) for task, what in alike):
        return None
    return IndexOrder(problem, np.lexsort((microbatch, of)).reshape(-1, m))


def sure_edges(problem: Problem, order: IndexOrder | None) -> Edges:
    """All precedences, and with the problem's index order its order and memory edges."""
    parts = [] if order is None else [order.order_edges, order.memory_edges]
    return _joined([problem.edges, *parts])


def _joined(parts: list[Edges]) -> Edges:
    return Edges(
        before=np.concatenate([part.before for part in parts]),
        after=np.concatenate([part.after for part in parts]),
        lag=np.concatenate([part.lag for part in parts]),
    )


def _m_of_each(what: Ints, microbatch: Ints, m: int) -> bool:
    """Whether every column of ``what`` stands equally often in each of the m microbatches."""
    _, which = np.unique(what, axis=1, return_inverse=True)
    counts = np.zeros((which.max(initial=-1) + 1, m), dtype=np.int64)
    np.add.at(counts, (which.ravel(), microbatch), 1)
    return bool((counts == counts[:, :1]).all())
