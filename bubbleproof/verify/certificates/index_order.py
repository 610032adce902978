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

Lemma 3. If a lone (stage, slice) uses the store, with two moments only (so a = h), these edges are
the memory constraint, no more and no less (``exact_stores``).
Proof. The load rises only when a first task starts. At such an instant let j be the last microbatch
to have begun: the edges leave at most K open, and base + K a <= capacity.

What else is used of hypotheses 2 and 3: ``chains``, by certificates and propagation, which take of
each row the least level after any prefix that may have passed.
"""

from __future__ import annotations

from collections import Counter
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
        uses = Counter(life.store for life in self.lifecycles)
        return frozenset(
            life.store for life in self.lifecycles if life.is_simple and uses[life.store] == 1
        )

    @cached_property
    def lifecycles(self) -> tuple[Lifecycle, ...]:
        """The lifecycles of microbatch 0, in stores all of whose uses are lifecycles.

        A store with any other use has none (the other use might lower the load), which makes bounds
        weaker but never wrong.
        """
        forced, found, unclear = self._forced, [], set()
        for owner, chain in forced.chains.items():
            life = None if chain is None else forced.lifecycle(owner[0], chain)
            if life is None:
                unclear.add(owner[0])
            else:
                found.append(life)
        return tuple(life for life in found if life.store not in unclear)

    @cached_property
    def chains(self) -> dict[int, list[Chain]]:
        """The chains of all microbatches in each store with a capacity whose uses are lifecycles.

        By (stage, slice), and of one (stage, slice) by microbatch.
        """
        known = {life.store for life in self.lifecycles}
        found: dict[int, list[Chain]] = {}
        for (store, *_), chain in sorted(self._forced.chains.items(), key=lambda item: item[0]):
            if store in known and self.problem.stores[store].capacity is not None and chain:
                rows = [
                    self.members[self._forced.class_of[task]].tolist() for (task, _), _ in chain
                ]
                found.setdefault(store, []).extend(
                    [
                        ((row[j], at_end), level)
                        for row, ((_, at_end), level) in zip(rows, chain, strict=True)
                    ]
                    for j in range(self.num_microbatches)
                )
        return found

    @cached_property
    def _forced(self) -> ForcedOrder:
        return ForcedOrder(self.problem, self.members[:, 0])


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
