"""List scheduling: many good schedules in milliseconds.

Time moves forward; whenever a resource is free it takes the ready task of the best priority whose
memory fits and whose stage is below the in-flight limit. Several priorities and limits are tried
and the shortest schedule wins. A *patient* run leaves a resource idle where a task of better
priority is known to become ready before so much of the duration of the other has passed. The result
is a program; left-shifting times it and ``verify`` judges it.

A run gets stuck when memory is full of microbatches none of which can go on. Then it begins anew
and is careful, by the banker's algorithm (Dijkstra 1965): a task that acquires starts only if
afterwards the microbatches under way could still be completed one after another, the one begun
first first. What a microbatch may come to hold in a store is what it holds at most when it runs
alone, so a careful run ends wherever microbatches can run one by one.
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
from bubbleproof.solvers.starts import rows
from bubbleproof.theory.model.actions import ActionTable, Ints, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program

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
    """
    setting = _Setting(problem, bounds)
    priorities = [_priority(problem, bounds, ranking) for ranking in _RANKINGS]
    found = started = 0
    for limit, patience, priority in product(setting.limits, PATIENCE, priorities):
        for is_careful in (False, True):
            if is_enough() or (found and started >= most_tasks):
                return
            run = _Dispatch(setting, priority, limit, patience, is_careful=is_careful)
            program = run.run()
            started += run.done
            if program is not None:
                found += 1
                yield program
            if program is not None or limit is not None:
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
        n, events, occupancy = problem.num_tasks, problem.events, problem.occupancy
        self.problem = problem
        self.duration: list[int] = problem.duration.tolist()
        self.resources: list[list[int]] = [[] for _ in range(n)]
        for task, resource in zip(
            occupancy.task.tolist(), occupancy.resource.tolist(), strict=True
        ):
            self.resources[task].append(resource)
        self.after: list[list[tuple[int, int]]] = [[] for _ in range(n)]
        for before, later, lag in rows(bounds.edges):
            self.after[before].append((later, lag))
        self.waiting: list[int] = np.bincount(bounds.edges.after, minlength=n).tolist()
        self.acquires: list[list[tuple[int, int]]] = [[] for _ in range(n)]
        self.releases: list[list[tuple[int, int]]] = [[] for _ in range(n)]
        columns = (events.task, events.at_end, events.store, events.delta)
        for task, at_end, store, delta in zip(*(c.tolist() for c in columns), strict=True):
            (self.releases if at_end else self.acquires)[task].append((store, delta))
        homes = [{self.resources[t][0] for t in np.unique(events.task[events.store == s]).tolist()}
                 for s in range(len(problem.stores))]  # fmt: skip
        self.is_shared = [
            len(used) > 1 or any(len(homes[store]) > 1 for store, _ in released)
            for used, released in zip(self.resources, self.releases, strict=True)
        ]
        self.slot, self.step, self.limits = _in_flight(problem)
        self.microbatch: list[int] = problem.actions.microbatch.tolist()
        self.heads: list[int] = bounds.heads.tolist()

    @cached_property
    def alone(self) -> dict[tuple[int, int], list[int]]:
        """By (store, microbatch): how much it holds at most when it runs alone, in how many
        acquisitions."""
        found: dict[tuple[int, int], list[int]] = {}
        load: Counter[tuple[int, int]] = Counter()
        ends = [head + size for head, size in zip(self.heads, self.duration, strict=True)]
        for task in sorted(range(len(ends)), key=lambda t: (self.heads[t], ends[t])):
            for store, delta in self.acquires[task]:
                key = store, self.microbatch[task]
                load[key] += delta
                peak = found.setdefault(key, [0, 0])
                peak[0] = max(peak[0], load[key])
                peak[1] += delta > 0
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


class _Dispatch:
    """One run of the event loop with one priority and one in-flight limit per counter."""

    def __init__(
        self,
        setting: _Setting,
        priority: list[int],
        limit: list[int] | None,
        patience: Fraction,
        *,
        is_careful: bool = False,
    ) -> None:
        problem = setting.problem
        self.setting, self.priority, self.limit = setting, priority, limit
        self.bank = _Bank(setting) if is_careful else None
        self.load = [store.base for store in problem.stores]
        self.room = [store.capacity for store in problem.stores]
        self.waiting = setting.waiting.copy()
        self.in_flight = [0] * (max(setting.slot, default=0) + 1)
        self.earliest = [0] * problem.num_tasks
        self.ready: list[list[tuple[int, int]]] = [[] for _ in problem.resources]
        # For each resource (time, priority, task) that is to become ready.
        self.coming: list[list[tuple[int, int, int]]] = [[] for _ in problem.resources]
        waits = problem.duration * patience.numerator // patience.denominator
        self.patience: list[int] = waits.tolist()
        self.busy = [False] * len(problem.resources)
        self.orders: list[list[int]] = [[] for _ in problem.resources]
        # (time, phase, task): phase 0 a task ends, phase 1 its inputs have arrived.
        self.queue = [(0, 1, task) for task, count in enumerate(self.waiting) if not count]
        self.touched: set[int] = set()  # resources at which a task may have become startable
        self.refused: set[int] = set()  # resources that passed over a ready task
        self.done = 0

    def run(self) -> Program | None:
        """The order per resource, or None when the run gets stuck."""
        heapq.heapify(self.queue)
        while self.queue:
            now = self.queue[0][0]
            while self.queue and self.queue[0][0] == now:
                _, phase, task = heapq.heappop(self.queue)
                if phase:
                    first = self.setting.resources[task][0]
                    heapq.heappush(self.ready[first], (self.priority[task], task))
                    self.touched.add(first)
                else:
                    self._finish(task, now)
            touched, self.touched = sorted(self.touched), set()
            for resource in touched:
                if self.ready[resource] and not self.busy[resource]:
                    self._start_best(resource, now)
        problem = self.setting.problem
        return _program(problem, self.orders) if self.done == problem.num_tasks else None

    def _finish(self, task: int, now: int) -> None:
        self.done += 1
        if self.bank is not None:
            self.bank.end(self.setting.microbatch[task])
        for resource in self.setting.resources[task]:
            self.busy[resource] = False
            self.touched.add(resource)
        for store, delta in self.setting.releases[task]:
            self.load[store] += delta
            if self.bank is not None:
                self.bank.hold(store, self.setting.microbatch[task], delta)
        if self.setting.is_shared[task]:
            self.touched |= self.refused
        for later, lag in self.setting.after[task]:
            self.earliest[later] = max(self.earliest[later], now + lag)
            self.waiting[later] -= 1
            if not self.waiting[later]:
                heapq.heappush(self.queue, (self.earliest[later], 1, later))

    def _start_best(self, resource: int, now: int) -> None:
        """Start the first ready task that fits; the ones passed over stay ready."""
        refused, candidates = [], self.ready[resource]
        while candidates:
            entry = heapq.heappop(candidates)
            if self._fits(entry[1]):
                if self._waits(resource, entry, now):
                    refused.append(entry)
                else:
                    self._start(entry[1], now)
                break
            refused.append(entry)
        for entry in refused:
            heapq.heappush(candidates, entry)
        (self.refused.add if refused else self.refused.discard)(resource)

    def _waits(self, resource: int, entry: tuple[int, int], now: int) -> bool:
        """Whether a better task that fits is to become ready soon."""
        priority, task = entry
        coming = [one for one in self.coming[resource] if one[0] > now]
        self.coming[resource] = coming
        until = now + self.patience[task]
        return any(time < until and p < priority and self._fits(t) for time, p, t in coming)

    def _fits(self, task: int) -> bool:
        setting, slot = self.setting, self.setting.slot[task]
        if any(self.busy[resource] for resource in setting.resources[task]):
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
                and not self.bank.is_safe(store, setting.microbatch[task], delta, free)
            ):
                return False
        return True

    def _start(self, task: int, now: int) -> None:
        setting = self.setting
        self.in_flight[setting.slot[task]] += setting.step[task]
        for store, delta in setting.acquires[task]:
            self.load[store] += delta
            if self.bank is not None:
                self.bank.hold(store, setting.microbatch[task], delta)
        for resource in setting.resources[task]:
            self.busy[resource] = True
            self.orders[resource].append(task)
        end = now + setting.duration[task]
        heapq.heappush(self.queue, (end, 0, task))
        for later, lag in setting.after[task] if self.patience[task] else ():
            if self.waiting[later] == 1:
                ready = max(self.earliest[later], end + lag)
                entry = ready, self.priority[later], later
                self.coming[setting.resources[later][0]].append(entry)


class _Bank:
    """What each microbatch under way holds in each store, and may come to hold."""

    def __init__(self, setting: _Setting) -> None:
        self.alone = setting.alone
        self.begun: dict[int, None] = {}  # microbatches under way, in the order of their beginning
        self.held: Counter[tuple[int, int]] = Counter()
        self.acquired: Counter[tuple[int, int]] = Counter()
        self.left: Counter[int] = Counter(setting.microbatch)

    def hold(self, store: int, microbatch: int, delta: int) -> None:
        """A task of the microbatch changed what it holds."""
        self.begun.setdefault(microbatch)
        self.held[store, microbatch] += delta
        self.acquired[store, microbatch] += delta > 0

    def end(self, microbatch: int) -> None:
        """A task of the microbatch ended."""
        self.left[microbatch] -= 1
        if not self.left[microbatch]:
            self.begun.pop(microbatch, None)

    def is_safe(self, store: int, microbatch: int, delta: int, free: int) -> bool:
        """Whether all under way can be completed in turn, ``free`` being left after the task."""
        order = [*self.begun] if microbatch in self.begun else [*self.begun, microbatch]
        for other in order:
            key = store, other
            if (alone := self.alone.get(key)) is None:
                continue
            held, times = self.held[key], self.acquired[key]
            if other == microbatch:
                held, times = held + delta, times + 1
            if times < alone[1] and alone[0] - held > free:
                return False
            free += held
        return True


def _program(problem: Problem, orders: list[list[int]]) -> Program:
    task: Ints = np.array([t for order in orders for t in order], dtype=np.int64)
    actions: ActionTable = problem.actions.take(task)
    return Program(
        actions=actions,
        resource=np.repeat(np.arange(len(orders)), [len(order) for order in orders]),
    )
