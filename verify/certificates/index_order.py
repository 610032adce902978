"""Index order: edges that a problem may add for free where microbatches are identical.

A *group* is a set of microbatches, a *class* the tasks of one (kind, stage, slice, part) of the
microbatches of one group. This is the one place of the exchange argument that solvers and
certificates rest on; what it needs is checked, and where a hypothesis fails, the edges that need it
are not there.

**Hypothesis 1: tasks of a class are interchangeable.** Each class has one task per microbatch of
its group, of equal duration, resources and memory events. Every precedence of such a task joins two
tasks of one microbatch and stands, with the same lag, in all of the group; or it joins the task to
one outside the group, and stands, with the same lag, between that one and the whole class.

``index_order`` finds the largest groups for which that is so: microbatches are in one group if all
that is said of the tasks of each, every other task that it names taken literally, is the same. Two
of a group are then joined by no precedence, as one of them would name a task of the other that the
other cannot name. So microbatches of different lengths, of different memory, or of the two
directions of a bidirectional pipeline stand in different groups; one that is like no other, and
what belongs to no microbatch at all (an optimizer step), is a group by itself, of which nothing is
said.

Lemma 1. In each group sort the start times of each class and give the i-th smallest to its i-th
microbatch. A schedule that obeys all rules still does, and busy times and loads are the same at
every instant.
Proof. Groups are sorted one after the other, and what is outside the group in hand stays where it
is. The tasks of a class differ in nothing, so each resource sees the same busy intervals and each
store the same changes at the same times, also where other groups use it. A precedence X -> Y with
lag d inside the group says x_j + duration + d <= y_j for all j; then the i-th smallest of x plus
duration + d is at most the i-th smallest of y (at least i of the x_j lie below the i-th smallest
y), whatever the sign of d. One to or from a task outside says the same of every x_j, so of whatever
start each of them is given.

Every objective depends on busy times and loads alone, so a bound on the schedules in which each
class is in index order holds for all. Of two classes, of one class in two microbatches, and of two
groups the lemma says nothing but this:

- ``order_edges``: task j+1 of a class starts no earlier than task j ends, for they share a resource
  and stand in index order.

Memory. The load is compared with the capacity after all changes of an instant, since at equal times
releases come before acquisitions. Let the changes of each (stage, slice) of a microbatch on a store
be one *use* of it; groups may share a store, as the two directions of a bidirectional pipeline do.

**Hypothesis 2: the moments of a use are forced into one row** by precedences within the
microbatch, durations and lags counted (``verify.certificates.chains``); kinds and numbers of tasks
force nothing. Precedences survive lemma 1, so at each instant a use has the level after a prefix of
its row.

**Hypothesis 3: every use of the store, by whatever group, is a lifecycle.** It begins by acquiring
a at the start of a task, more than 0 ticks before its next moment; holds h > 0 or more until its
last moment, which is the end of a task; and then holds nothing.

Lemma 2. Let M = capacity - base and K = (M - a) div h + 1 for one (stage, slice) of a group. Then
the first task of its microbatch j starts no earlier than the last task of microbatch j - K ends
(``memory_edges``; j and j - K count within the group); if a > M there is no schedule.
Proof. After all changes of the instant at which the first task of j starts, the use of j has passed
its first moment and no other: it holds a. The uses of 0..j-1 have begun, by index order; n of them,
whose last task has not ended, hold h or more each. Every other use, of this group or another, holds
0 or more. So a + n h <= M, hence n < K, and at least j - K + 1 of the earlier ones have ended: by
index order 0..j-K are among them.
These edges say all of a store's capacity only where a lone use of one group is in it: two groups
may together hold too much and neither alone.

What else is used of hypothesis 2, in stores all of whose uses fulfil it: ``chains``, by
certificates and propagation, which take of each row the least level after any prefix that may have
passed, and add up those of all microbatches of all groups.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from bubbleproof.theory.model.actions import ActionTable, Bools, Ints
from bubbleproof.theory.model.problem import Edges, Problem
from bubbleproof.verify.certificates.chains import Chain, ForcedOrder, Lifecycle


class IndexOrder:
    """The groups of a problem; see ``index_order``.

    ``groups[g][c, j]`` is the task of class c for the j-th microbatch of group g; ``row_of[task]``
    is the row of a task of the first microbatch.
    """

    def __init__(self, problem: Problem, groups: list[Ints]) -> None:
        self.problem, self.groups = problem, groups
        self.row_of: dict[int, Ints] = {int(row[0]): row for group in groups for row in group}

    @cached_property
    def order_edges(self) -> Edges:
        """Task j+1 of each class after task j."""
        return _joined([_waits(group[:, :-1], group[:, 1:]) for group in self.groups])

    @cached_property
    def memory_edges(self) -> Edges:
        """The first task of microbatch j after the last of j - K, for every lifecycle."""
        row_of, limits = self.row_of, [(self.limit(life) or 0, life) for life in self.lifecycles]
        return _joined(
            [_waits(row_of[life.last][:-k], row_of[life.first][k:]) for k, life in limits if k > 0]
        )

    def limit(self, life: Lifecycle) -> int | None:
        """K: how many of the group may be within the lifecycle at once; None without capacity.

        0 or less means that not even one fits: the problem is infeasible.
        """
        store = self.problem.stores[life.store]
        if store.capacity is None:
            return None
        room = store.capacity - store.base - life.acquired
        return -1 if room < 0 else room // life.held + 1

    @cached_property
    def lifecycles(self) -> tuple[Lifecycle, ...]:
        """The lifecycles of each group, in stores all of whose uses are lifecycles.

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
        """The chains of all microbatches, by store, in stores where every use is one."""
        found: dict[int, list[Chain]] = {}
        unclear = {owner[0] for owner, chain in self._forced.chains.items() if chain is None}
        for (store, *_), chain in self._forced.chains.items():
            if chain and store not in unclear:
                rows = [self.row_of[task].tolist() for (task, _), _ in chain]
                found.setdefault(store, []).extend(
                    [
                        ((task, at_end), level)
                        for task, ((_, at_end), level) in zip(tasks, chain, strict=True)
                    ]
                    for tasks in zip(*rows, strict=True)
                )
        return found

    @cached_property
    def _forced(self) -> ForcedOrder:
        return ForcedOrder(self.problem, np.array(list(self.row_of), dtype=np.int64))


def index_order(problem: Problem) -> IndexOrder:
    """The groups of identical microbatches, the largest that hypothesis 1 allows."""
    actions, occupancy = problem.actions, problem.occupancy
    edges, events = problem.edges, problem.events
    names = ActionTable.of(actions.kind, actions.stage, 0, actions.slice, actions.part).keys()
    name = np.unique(names, return_inverse=True)[1].ravel()
    sample = np.unique(actions.microbatch, return_inverse=True)[1].ravel()
    is_inside = sample[edges.before] == sample[edges.after]
    sooner = np.where(is_inside, name[edges.before], -1 - edges.before)
    later = np.where(is_inside, name[edges.after], -1 - edges.after)
    partner = actions.partner_stage, actions.partner_microbatch

    def said(number: int, task: Ints, *what: Ints | Bools | int) -> Ints:
        return np.array([0 * task + row for row in (sample[task], number, name[task], *what)])

    table = np.hstack(
        [  # what is said of each task; a task elsewhere by its own number, below 0
            said(0, np.arange(problem.num_tasks), problem.duration, *partner),
            said(1, occupancy.task, occupancy.resource, 0, 0),
            said(2, events.task, events.at_end, events.store, events.delta),
            said(3, edges.before, later, edges.lag, 0),
            said(4, edges.after, sooner, edges.lag, 0),
        ]
    )
    table = table[:, np.lexsort(table[::-1])]
    cuts = np.searchsorted(table[0], np.arange(1, sample.max(initial=0) + 1))
    number_of: dict[bytes, int] = {}
    texts = [part.tobytes() for part in np.split(table[1:], cuts, axis=1)]
    group = np.array([number_of.setdefault(text, len(number_of)) for text in texts])
    tasks = np.lexsort((sample, name))
    of = group[sample[tasks]]
    sizes = enumerate(np.bincount(group).tolist())
    return IndexOrder(problem, [tasks[of == number].reshape(-1, m) for number, m in sizes])


def sure_edges(problem: Problem, order: IndexOrder) -> Edges:
    """All precedences, and the order and memory edges of the problem's index order."""
    return _joined([problem.edges, order.order_edges, order.memory_edges])


def _waits(before: Ints, after: Ints) -> Edges:
    return Edges(before=before.ravel(), after=after.ravel(), lag=0 * after.ravel())


def _joined(parts: list[Edges]) -> Edges:
    columns = [np.stack([part.before, part.after, part.lag]) for part in [Edges(), *parts]]
    before, after, lag = np.hstack(columns)
    return Edges(before=before, after=after, lag=lag)
