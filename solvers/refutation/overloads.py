"""Deductions on one store, which must never hold too much.

What one (stage, slice, microbatch) does to a store that ``verify.certificates.index_order``
recognises is a *chain* of changes in a fixed order. When a task x starts, each chain has passed
some changes for sure and others perhaps, and holds at least the least level between. If the sum
over all chains exceeds the room

- supposing that x starts before v, then it starts at v or later (*wait*);
- supposing that r has not ended when x starts, then r ends by then (*release*);
- supposing that a starts no later than x, on the same resource, then a runs after x (*defer*).

With r goes what is known to start after its end, and with a what is known to end by its start.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bubbleproof.solvers.memory_rules import exact_stores
from bubbleproof.solvers.refutation.windows import GIVEN, Windows
from bubbleproof.theory.model.actions import NONE, Bools, Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.certificate import Lemma
from bubbleproof.verify.certificates.chains import Chain
from bubbleproof.verify.certificates.index_order import IndexOrder

FOREVER = 1 << 61


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chains:
    """The changes of one store: ``task``, ``at_end``, ``level`` after it, shape (chains, changes).

    Shorter chains are filled up with ``task`` NONE. ``room`` is the capacity less the base load.
    """

    task: Ints
    at_end: Bools
    level: Ints
    room: int

    @property
    def entrants(self) -> list[int]:
        """The tasks that acquire when they start."""
        before = np.pad(self.level[:, :-1], ((0, 0), (1, 0)))
        chosen = (self.level > before) & ~self.at_end & (self.task != NONE)
        return sorted(set(self.task[chosen].tolist()))


def chains(problem: Problem, order: IndexOrder) -> list[Chains]:
    """The stores whose capacity the memory edges do not say completely, where recognised."""
    return [
        _laid_out(owners, capacity - problem.stores[store].base)
        for store, owners in order.chains.items()
        if (capacity := problem.stores[store].capacity) is not None
        and store not in exact_stores(order)
    ]


def _laid_out(owners: list[Chain], room: int) -> Chains:
    shape = len(owners), max(map(len, owners))
    task, at_end, level = (
        np.full(shape, NONE),
        np.zeros(shape, dtype=np.bool_),
        np.zeros(shape, int),
    )
    for row, chain in enumerate(owners):
        for column, ((task_, is_end), after) in enumerate(chain):
            task[row, column], at_end[row, column], level[row, column] = task_, is_end, after
        level[row, len(chain) :] = chain[-1][1]
    return Chains(task=task, at_end=at_end, level=level, room=room)


def avoid_overload(windows: Windows, store: Chains, homes: list[list[int]]) -> None:
    """One pass over the tasks that acquire in the store.

    Parameters
    ----------
    homes
        The resources of each task.
    """
    state = _Store(windows, store)
    for task in store.entrants:
        if windows.failure is not None:
            return
        if windows.ticks[task] > 0:
            _Moment(state, task).run(homes)


class _Store:
    """What the windows say of all changes of a store (they may shrink further in the pass)."""

    def __init__(self, windows: Windows, store: Chains) -> None:
        self.windows, self.chains = windows, store
        self.real: Bools = store.task != NONE
        self.low, high = (np.array(side, dtype=np.int64) for side in windows.bounds)
        ticks = windows.problem.duration[store.task]
        self.latest = -high[: windows.num_tasks] - windows.problem.duration
        self.gone = self.latest[store.task] + np.where(store.at_end, ticks, 0)
        self.time = self.low[store.task] + np.where(store.at_end, ticks, 0)


class _Moment:
    """The start of one task: which changes are over for sure, and which may be (``time``: when)."""

    def __init__(self, state: _Store, entrant: int) -> None:
        self.windows, self.store, self.entrant = state.windows, state.chains, entrant
        task, at_end, prior = self.store.task, self.store.at_end, state.windows.prior
        self.start, self.latest = int(state.low[entrant]), int(state.latest[entrant])
        here = task == entrant
        self.sure: Bools = prior[entrant][task] | (here & ~at_end)
        self.over: Bools = (self.sure | (state.gone <= self.start)) & state.real
        self.never: Bools = prior[:, entrant][task] | (here & at_end) | ~state.real
        self.time = state.time

    def least(self, over: Bools, maybe: Bools) -> Ints:
        """The least total level, shape (...) for arguments of shape (..., chains, changes)."""
        level = np.zeros(maybe.shape[:-1], dtype=np.int64)
        alive = np.ones(maybe.shape[:-1], dtype=np.bool_)
        for k in range(maybe.shape[-1]):
            after = self.store.level[:, k]
            level = np.where(alive & over[..., k], after, level)
            level = np.where(alive & maybe[..., k], np.minimum(level, after), level)
            alive = alive & (over[..., k] | maybe[..., k])
        total: Ints = level.sum(axis=-1)
        return total

    def run(self, homes: list[list[int]]) -> None:
        if self._wait():
            return
        maybe = ~self.never & (self.time <= self.latest)
        self._release(maybe, homes)
        if self.windows.failure is None:
            self._defer(maybe, homes)

    def _wait(self) -> bool:
        """Whether the window of the entrant shrank."""
        room, open_ = self.store.room, ~self.never & ~self.over
        times = np.unique(self.time[open_ & (self.time > self.start)])
        times = np.concatenate([[self.start], times[times <= self.latest]])
        fits = self.least(self.over, open_ & (self.time <= times[:, None, None])) <= room
        if fits[0]:
            return False
        value = int(times[int(np.argmax(fits))]) if fits.any() else self.latest + 1
        if value <= self.windows.bounds[0][self.entrant]:
            return False
        step = self.windows.at_least(0, self.entrant, value, full=self.entrant)
        event = self.windows.deduce(self._reasons(self.time >= value), step)
        self.windows.raise_(0, self.entrant, value, event)
        return True

    def _release(self, maybe: Bools, homes: list[list[int]]) -> None:
        task, at_end, prior = self.store.task, self.store.at_end, self.windows.prior
        ticks = self.windows.problem.duration
        candidates = np.unique(task[maybe & ~self.over & at_end])
        candidates = candidates[ticks[candidates] > 0]
        if not len(candidates):
            return
        blocked = prior[task][:, :, candidates].transpose(2, 0, 1) | (
            at_end & (task == candidates[:, None, None])
        )
        full = self.least(self.over, maybe & ~blocked) > self.store.room
        for task_ in candidates[full].tolist():
            if set(homes[task_]) & set(homes[self.entrant]):
                self._learn(task_, self.entrant, homes)
            else:
                self._end_by(task_)

    def _learn(self, before: int, after: int, homes: list[list[int]]) -> None:
        """Of two tasks of a resource, the entrant among them, ``before`` comes first."""
        along = self._along(before, after)
        if any(not set(homes[a]) & set(homes[b]) for a, b in along):
            return  # tasks of two resources have no order that a certificate could name
        reasons = self._all_reasons(after if before == self.entrant else before)
        event = self.windows.deduce(reasons, *self._steps(before, after, along))
        self.windows.learn(before, after, event)

    def _along(self, before: int, after: int) -> list[tuple[int, int]]:
        """The entrant's orders that follow if ``after`` comes first, by orders that were learnt.

        Without those that paths make follow from the others.
        """
        prior, learnt, here = self.windows.prior, self.windows.prior_event, self.entrant
        tasks = sorted(set(self.store.task.ravel().tolist()) - {NONE, here})
        if before == here:
            found = [(task, here) for task in tasks if (task, after) in learnt]
        else:
            found = [(here, task) for task in tasks if (before, task) in learnt]
        found = [(a, b) for a, b in found if not prior[b, a] | prior[a, b]]

        def has_path(a: int, b: int) -> bool:
            return a == b or bool(prior[b, a] and (a, b) not in learnt)

        return [
            (a, b)
            for a, b in found
            if not any((a, b) != (c, d) and has_path(a, c) and has_path(d, b) for c, d in found)
        ]

    def _steps(self, before: int, after: int, along: list[tuple[int, int]]) -> list[Lemma]:
        """The checker sees of paths alone what goes ``along`` if ``after`` comes first."""
        if not along:
            return [Lemma(literals=(("<", before, after),), full=self.entrant)]
        return [
            Lemma(rule="suppose", literals=(("<", after, before),)),
            *(Lemma(literals=(("<", *pair),)) for pair in along),
            Lemma(full=self.entrant),
            Lemma(rule="absurd"),
        ]

    def _end_by(self, task: int) -> None:
        """Tasks of two resources have no order: what the release says about the windows now."""
        value = -self.latest
        if value > self.windows.bounds[1][task]:
            step = self.windows.at_least(1, task, value, full=self.entrant)
            event = self.windows.deduce(self._all_reasons(task), step)
            self.windows.raise_(1, task, value, event)

    def _defer(self, maybe: Bools, homes: list[list[int]]) -> None:
        task, at_end, prior = self.store.task, self.store.at_end, self.windows.prior
        candidates = np.unique(task[maybe & ~self.over & ~at_end])
        here = set(homes[self.entrant])
        rows = [t for t in candidates.tolist() if here & set(homes[t])]
        if not rows:
            return
        candidates = np.array(rows)
        begun = prior[candidates[:, None, None], task] | (
            ~at_end & (task == candidates[:, None, None])
        )
        begun &= task != NONE
        full = self.least(self.over | begun, maybe) > self.store.room
        for task_ in candidates[full].tolist():
            self._learn(self.entrant, task_, homes)

    def _all_reasons(self, other: int) -> set[int]:
        """Those of a deduction up to the entrant's latest start."""
        return self._reasons(self.time > self.latest, other) | {
            self.windows.causes[1][self.entrant]
        }

    def _reasons(self, is_late: Bools, other: int = NONE) -> set[int]:
        """Everything that the step may rest on: windows used, and learnt orders of the tasks."""
        lo, hi = self.windows.causes
        task = self.store.task
        by_window = self.over & ~self.sure
        reasons = {lo[t] for t in task[is_late & ~self.never & (task != NONE)].tolist()}
        reasons |= {hi[t] for t in task[by_window].tolist()}
        if by_window.any():
            reasons.add(lo[self.entrant])
        inside = set(task.ravel().tolist()) | {self.entrant, other}
        for (before, after), event in self.windows.prior_event.items():
            if {before, after} & {self.entrant, other} and {before, after} <= inside:
                reasons.add(event)
        return reasons - {GIVEN}
