"""List scheduling: many good schedules in milliseconds.

Time moves forward; whenever a resource is free it takes the ready task of the best priority whose
memory fits and whose stage is below the in-flight limit. Several priorities and limits are tried
and the shortest schedule wins. A *patient* run leaves a resource idle where a task of better
priority is known to become ready before so much of the duration of the other has passed. The result
is a program; left-shifting times it and ``verify`` judges it.

A run gets stuck when memory is full of microbatches none of which can go on. Then it begins anew
and is careful, with a bank for all stores (``theory.orders.bankers``): then it ends wherever
microbatches can run one by one.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np

from bubbleproof.solvers.bounds import Bounds
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.orders.bankers import StoreBank, StoreOfMicrobatch
from bubbleproof.theory.orders.ready_lists import ReadyLists
from bubbleproof.theory.orders.task_lists import load_changes, program_of_lists, task_lists

PATIENCE = (Fraction(2, 3), Fraction(0))  # of a task's duration
MOST_LISTED = 100_000  # tasks started in all runs, which takes a second or so
_BACKWARD_FIRST = {Kind.B: 0, Kind.I: 0, Kind.OVERLAP_F_B: 0, Kind.F: 1, Kind.W: 2}
_FORWARD_FIRST = {Kind.F: 0, Kind.OVERLAP_F_B: 0, Kind.B: 1, Kind.I: 1, Kind.W: 2}
_WEIGHTS_EARLY = {Kind.B: 0, Kind.I: 0, Kind.OVERLAP_F_B: 0, Kind.W: 1, Kind.F: 2}
_RANKINGS = (None, _FORWARD_FIRST, _BACKWARD_FIRST, _WEIGHTS_EARLY)


def greedy_programs(
    problem: Problem,
    bounds: Bounds,
    is_enough: Callable[[], bool] = lambda: False,
    *,
    most_tasks: int = MOST_LISTED,
) -> Iterator[Program]:
    """A program for every patience, priority and in-flight limit that does not get stuck.

    No run begins once ``is_enough``, or ``most_tasks`` were started in all and there is a program.

    Parameters
    ----------
    is_enough
        Asked before each run.
    most_tasks
        Tasks that are started in all runs together.
    """
    setting = _Setting(problem, bounds)
    priorities = [_priority(problem, bounds, ranking) for ranking in _RANKINGS]
    found = started = 0
    for limit, patience, priority in product(setting.limits, PATIENCE, priorities):
        for is_careful in (False, True):
            if is_enough() or (found and started >= most_tasks):
                return
            run = _Dispatch(setting, priority, limit, patience, is_careful=is_careful)
            is_done = run.run()
            started += problem.num_tasks - run.left
            if is_done:
                found += 1
                yield program_of_lists(problem, run.orders)
            if is_done or limit is not None:
                break


def _priority(problem: Problem, bounds: Bounds, ranking: dict[Kind, int] | None) -> list[int]:
    """The place of each task in the order of kinds, if any, then of tails, then of microbatches."""
    kinds = [0 if ranking is None else ranking.get(Kind(k), 1) for k in range(len(Kind))]
    first = np.array(kinds)[problem.actions.kind]
    microbatch, stage = problem.actions.microbatch, problem.actions.stage
    order = np.lexsort((-stage, microbatch, -bounds.tails, first))
    priority = np.empty(problem.num_tasks, dtype=np.int64)
    priority[order] = np.arange(problem.num_tasks)
    return list(priority.tolist())


class _Setting:
    """The problem as Python lists, which the event loop reads fastest.

    ``slot`` is the in-flight counter of a task's stage and slice; ``step`` is +1 for a task that
    opens a microbatch there, -1 for one that closes it, else 0.
    """

    def __init__(self, problem: Problem, bounds: Bounds) -> None:
        events = problem.events
        self.problem = problem
        self.tasks = task_lists(problem, bounds.edges)
        self.acquires, self.releases = load_changes(problem)
        home = self.tasks.home
        homes = [
            {home[t] for t in np.unique(events.task[events.store == s]).tolist()}
            for s in range(len(problem.stores))
        ]
        self.is_shared = [
            len(used) > 1 or any(len(homes[store]) > 1 for store, _ in released)
            for used, released in zip(self.tasks.homes, self.releases, strict=True)
        ]
        self.slot, self.step, self.limits = _in_flight(problem)
        self.microbatch: list[int] = problem.actions.microbatch.tolist()
        self.heads: list[int] = bounds.heads.tolist()

    @cached_property
    def alone(self) -> dict[StoreOfMicrobatch, tuple[int, int]]:
        """How much it holds at most when it runs alone, in how many acquisitions."""
        found: dict[StoreOfMicrobatch, tuple[int, int]] = {}
        load: Counter[StoreOfMicrobatch] = Counter()
        ends = [head + size for head, size in zip(self.heads, self.tasks.ticks, strict=True)]
        for task in sorted(range(len(ends)), key=lambda t: (self.heads[t], ends[t])):
            for store, delta in self.acquires[task]:
                key = store, self.microbatch[task]
                load[key] += delta
                peak, times = found.get(key, (0, 0))
                found[key] = max(peak, load[key]), times + (delta > 0)
            for store, delta in self.releases[task]:
                load[store, self.microbatch[task]] += delta
        return found


def _in_flight(problem: Problem) -> tuple[list[int], list[int], list[list[int] | None]]:
    """Counters per (stage, slice), what each task does to them, and the limits worth trying."""
    actions = problem.actions
    slices = int(actions.slice.max(initial=0)) + 1
    slot = actions.stage * slices + actions.slice
    step = np.where(actions.kind == Kind.F, 1, 0)
    step[(actions.kind == Kind.B) | (actions.kind == Kind.I)] = -1
    num_stages = int(actions.stage.max(initial=0)) + 1
    depth = num_stages - np.arange(num_stages)
    shapes = (depth, depth + 1, 2 * depth - 1, np.full(num_stages, num_stages), 2 * depth)
    limits: list[list[int] | None] = [np.repeat(shape, slices).tolist() for shape in shapes]
    limits.insert(1, None)
    return slot.tolist(), step.tolist(), limits


class _Dispatch(ReadyLists):
    """One run with one priority and one in-flight limit per counter."""

    def __init__(
        self,
        setting: _Setting,
        priority: list[int],
        limit: list[int] | None,
        patience: Fraction,
        *,
        is_careful: bool = False,
    ) -> None:
        super().__init__(setting.tasks, priority)
        problem = setting.problem
        self.setting, self.limit = setting, limit
        self.bank = StoreBank(setting.alone, Counter(setting.microbatch)) if is_careful else None
        self.load = [store.base for store in problem.stores]
        self.room = [store.capacity for store in problem.stores]
        self.in_flight = [0] * (max(setting.slot, default=0) + 1)
        # For each resource (time, priority, task) that is to become ready.
        self.coming: list[list[tuple[int, int, int]]] = [[] for _ in problem.resources]
        waits = problem.duration * patience.numerator // patience.denominator
        self.patience: list[int] = waits.tolist()
        self.refused: set[int] = set()  # resources that passed over a ready task

    def chosen(self, resource: int, now: int) -> int | None:
        """The first ready task that fits, unless a better one is worth waiting for."""
        if not self.ready[resource]:
            return None
        entry, is_refused = self.first_fitting(resource)
        if entry is not None and self._waits(resource, entry, now):
            heapq.heappush(self.ready[resource], entry)
            entry, is_refused = None, True
        (self.refused.add if is_refused else self.refused.discard)(resource)
        return None if entry is None else entry[1]

    def _waits(self, resource: int, entry: tuple[int, int], now: int) -> bool:
        """Whether a better task that fits is to become ready soon."""
        priority, task = entry
        coming = [one for one in self.coming[resource] if one[0] > now]
        self.coming[resource] = coming
        until = now + self.patience[task]
        return any(time < until and p < priority and self.fits(t) for time, p, t in coming)

    def fits(self, task: int) -> bool:
        """Whether its resources are free, no limit is reached, and its memory is there."""
        setting, slot = self.setting, self.setting.slot[task]
        if any(self.is_busy[resource] for resource in self.tasks.homes[task]):
            return False
        opens = self.limit is not None and setting.step[task] > 0
        if opens and self.limit is not None and self.in_flight[slot] >= self.limit[slot]:
            return False
        for store, delta in setting.acquires[task]:
            cap = self.room[store]
            if cap is None:
                continue
            free = cap - self.load[store] - delta
            if free < 0 or (
                self.bank is not None
                and delta > 0
                and not self.bank.allows(store, setting.microbatch[task], delta, free)
            ):
                return False
        return True

    def begun(self, task: int, end: int) -> None:
        """Count what it takes, and foresee what waits for it alone."""
        setting = self.setting
        self.in_flight[setting.slot[task]] += setting.step[task]
        for store, delta in setting.acquires[task]:
            self._change(task, store, delta)
        for later, lag in self.tasks.followers(task) if self.patience[task] else ():
            if self.waits[later] == 1:
                ready = max(self.arrival[later], end + lag)
                entry = ready, self.priority[later], later
                self.coming[self.tasks.home[later]].append(entry)

    def ended(self, task: int) -> None:
        """Count what it gives back, and let others look again at what they refused."""
        setting = self.setting
        if self.bank is not None:
            self.bank.end(setting.microbatch[task])
        for store, delta in setting.releases[task]:
            self._change(task, store, delta)
        if setting.is_shared[task]:
            self.touched |= self.refused

    def _change(self, task: int, store: int, delta: int) -> None:
        self.load[store] += delta
        if self.bank is not None:
            self.bank.change(store, self.setting.microbatch[task], delta)
