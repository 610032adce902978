"""List scheduling: many good schedules in milliseconds.

Time moves forward; whenever a resource is free it takes the ready task of the best priority whose
memory fits and whose stage is below the in-flight limit. Several priorities and limits are tried
and the shortest schedule wins. A run that gets stuck (memory full of forwards that cannot finish)
gives nothing. The result is a program; left-shifting times it and ``verify`` judges it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np

from bubbleproof.solvers.bounds import Bounds
from bubbleproof.solvers.starts import rows
from bubbleproof.theory.model.actions import ActionTable, Ints, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program

_BACKWARD_FIRST = {Kind.B: 0, Kind.I: 0, Kind.OVERLAP_F_B: 0, Kind.F: 1, Kind.W: 2}
_FORWARD_FIRST = {Kind.F: 0, Kind.OVERLAP_F_B: 0, Kind.B: 1, Kind.I: 1, Kind.W: 2}
_WEIGHTS_EARLY = {Kind.B: 0, Kind.I: 0, Kind.OVERLAP_F_B: 0, Kind.W: 1, Kind.F: 2}


def greedy_programs(problem: Problem, bounds: Bounds) -> Iterator[Program]:
    """A program for every priority and in-flight limit that does not get stuck."""
    setting = _Setting(problem, bounds)
    kinds = problem.actions.kind
    microbatch, tails = problem.actions.microbatch, bounds.tails
    for ranking in (_BACKWARD_FIRST, _FORWARD_FIRST, _WEIGHTS_EARLY, None):
        first = (
            np.zeros(problem.num_tasks, dtype=np.int64)
            if ranking is None
            else np.array([ranking.get(Kind(k), 1) for k in range(len(Kind))])[kinds]
        )
        order = np.lexsort((-problem.actions.stage, microbatch, -tails, first))
        priority = np.empty(problem.num_tasks, dtype=np.int64)
        priority[order] = np.arange(problem.num_tasks)
        for limit in setting.limits:
            program = _Dispatch(setting, priority.tolist(), limit).run()
            if program is not None:
                yield program


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
        self.slot, self.step, self.limits = _in_flight(problem)


def _in_flight(problem: Problem) -> tuple[list[int], list[int], list[list[int] | None]]:
    """Counters per (stage, slice), what each task does to them, and the limits worth trying."""
    actions = problem.actions
    slices = int(actions.slice.max(initial=0)) + 1
    slot = actions.stage * slices + actions.slice
    step = np.where(actions.kind == Kind.F, 1, 0)
    step[(actions.kind == Kind.B) | (actions.kind == Kind.I)] = -1
    num_stages = int(actions.stage.max(initial=0)) + 1
    depth = num_stages - np.arange(num_stages)
    limits: list[list[int] | None] = [None]
    for shape in (depth, depth + 1, 2 * depth - 1, np.full(num_stages, num_stages), 2 * depth):
        limits.append(np.repeat(shape, slices).tolist())
    return slot.tolist(), step.tolist(), limits


class _Dispatch:
    """One run of the event loop with one priority and one in-flight limit per counter."""

    def __init__(self, setting: _Setting, priority: list[int], limit: list[int] | None) -> None:
        problem = setting.problem
        self.setting, self.priority, self.limit = setting, priority, limit
        self.load = [store.base for store in problem.stores]
        self.room = [store.capacity for store in problem.stores]
        self.waiting = setting.waiting.copy()
        self.in_flight = [0] * (max(setting.slot, default=0) + 1)
        self.earliest = [0] * problem.num_tasks
        self.ready: list[list[tuple[int, int]]] = [[] for _ in problem.resources]
        self.busy = [False] * len(problem.resources)
        self.orders: list[list[int]] = [[] for _ in problem.resources]
        # (time, phase, task): phase 0 a task ends, phase 1 its inputs have arrived.
        self.queue = [(0, 1, task) for task, count in enumerate(self.waiting) if not count]
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
                else:
                    self._finish(task, now)
            for resource, candidates in enumerate(self.ready):
                if candidates and not self.busy[resource]:
                    self._start_best(candidates, now)
        problem = self.setting.problem
        return _program(problem, self.orders) if self.done == problem.num_tasks else None

    def _finish(self, task: int, now: int) -> None:
        self.done += 1
        for resource in self.setting.resources[task]:
            self.busy[resource] = False
        for store, delta in self.setting.releases[task]:
            self.load[store] += delta
        for later, lag in self.setting.after[task]:
            self.earliest[later] = max(self.earliest[later], now + lag)
            self.waiting[later] -= 1
            if not self.waiting[later]:
                heapq.heappush(self.queue, (self.earliest[later], 1, later))

    def _start_best(self, candidates: list[tuple[int, int]], now: int) -> None:
        """Start the first ready task that fits; the ones passed over stay ready."""
        refused = []
        while candidates:
            entry = heapq.heappop(candidates)
            if self._fits(entry[1]):
                self._start(entry[1], now)
                break
            refused.append(entry)
        for entry in refused:
            heapq.heappush(candidates, entry)

    def _fits(self, task: int) -> bool:
        setting, slot = self.setting, self.setting.slot[task]
        if any(self.busy[resource] for resource in setting.resources[task]):
            return False
        opens = self.limit is not None and setting.step[task] > 0
        if opens and self.limit is not None and self.in_flight[slot] >= self.limit[slot]:
            return False
        return all(
            (cap := self.room[store]) is None or self.load[store] + delta <= cap
            for store, delta in setting.acquires[task]
        )

    def _start(self, task: int, now: int) -> None:
        setting = self.setting
        self.in_flight[setting.slot[task]] += setting.step[task]
        for store, delta in setting.acquires[task]:
            self.load[store] += delta
        for resource in setting.resources[task]:
            self.busy[resource] = True
            self.orders[resource].append(task)
        heapq.heappush(self.queue, (now + setting.duration[task], 0, task))


def _program(problem: Problem, orders: list[list[int]]) -> Program:
    task: Ints = np.array([t for order in orders for t in order], dtype=np.int64)
    actions: ActionTable = problem.actions.take(task)
    return Program(
        actions=actions,
        resource=np.repeat(np.arange(len(orders)), [len(order) for order in orders]),
    )
