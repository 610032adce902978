"""List scheduling along fixed orders: how forwards and backwards are merged is all that is decided.

On each rank the forwards, the backwards (B or I) and all other tasks (W) have, each among
themselves, a given order, and time moves forward. A rank that is free takes

1. a forward, if fewer microbatches are in flight there (forwards begun less backwards begun, over
   its chunks) than its limit; if only memory is in its way, the next of the other tasks;
2. else the next backward; else the next forward; else the next of the other tasks.

It waits instead for a backward whose inputs are sure to arrive before that task would end, as long
as it stays within its *idle budget*: what is left of ``target`` ticks after all its work. Plain
list scheduling never waits, and pays for it on every rank behind: a backward that meets a forward
just begun is late on each of them.

The limit of a rank is ``limit``, or, if that is less, S - first + behind: its forwards, one after
another, from the first until a backward that meets no other task is back. S is the number of
stages, ``first`` the first stage of the rank, ``behind`` the stages after its last.

Two families of orders are tried, for problems with several chunks on a rank:

- ``grouped``: groups of as many microbatches as there are ranks, chunk by chunk, as interleaved
  1F1B has them (Narayanan et al. 2021, section 2.2); backwards likewise, from the last chunk on;
- ``steady``: as if a microbatch entered every ``interval`` stages and never waited.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from bubbleproof.solvers.starts import rows
from bubbleproof.theory.model.actions import Ints, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program

FORWARDS, BACKWARDS, OTHERS = range(3)
_QUEUE = {Kind.F: FORWARDS, Kind.B: BACKWARDS, Kind.I: BACKWARDS}
UNKNOWN = -1  # instead of a time
LIMITS = (Fraction(1), *(Fraction(share, 8) for share in (7, 6, 4, 2)))  # of the stages
INTERVALS = (Fraction(1), Fraction(5, 4), Fraction(7, 4))  # times the chunks of a rank
MOST_MERGED = 100_000  # tasks begun in all runs, which takes two seconds or so

MergedChange = tuple[int, int]  # store, units


def merged_programs(
    problem: Problem,
    target: int,
    is_enough: Callable[[], bool] = lambda: False,
    *,
    most_tasks: int = MOST_MERGED,
) -> Iterator[Program]:
    """A program for every order and limit that does not get stuck; ``target`` in ticks.

    None where chunks share no rank, or a task occupies several resources. No run begins once
    ``is_enough``, or beyond ``most_tasks`` in all.
    """
    stages = int(problem.actions.stage.max(initial=0)) + 1
    if stages <= problem.num_ranks or len(problem.occupancy.task) > problem.num_tasks:
        return
    chunks, started = stages // problem.num_ranks, 0
    orders = [grouped(problem, problem.num_ranks)]
    orders += [steady(problem, chunks * share) for share in INTERVALS]
    lines = [Merging(problem, order) for order in orders]
    for share in LIMITS:
        for merging in lines:
            started += problem.num_tasks
            if is_enough() or started > most_tasks:
                return
            program = merging.program(int(stages * share), target)
            if program is not None:
                yield program


def grouped(problem: Problem, size: int) -> Ints:
    """All tasks in an order: ``size`` microbatches at a time, stage by stage."""
    actions = problem.actions
    way = np.where(actions.kind == Kind.F, 1, -1)
    keys = way * actions.slice, actions.microbatch, way * actions.stage, actions.microbatch // size
    return np.lexsort(keys)


def steady(problem: Problem, interval: Fraction) -> Ints:
    """All tasks in an order: stage g of microbatch j at time g + j ``interval``, backwards from the
    last stage on."""
    actions = problem.actions
    is_forward = actions.kind == Kind.F
    depth = np.where(is_forward, actions.stage, actions.stage.max() - actions.stage)
    time = actions.microbatch * interval.numerator + depth * interval.denominator
    return np.lexsort((np.where(is_forward, 1, -1) * actions.slice, actions.microbatch, time))


class Merging:
    """The problem along one order of its tasks, each of which occupies one resource."""

    def __init__(self, problem: Problem, order: Ints) -> None:
        count, events = problem.num_tasks, problem.events
        self.problem = problem
        self.ticks: list[int] = problem.duration.tolist()
        self.home: list[int] = problem.occupancy.resource.tolist()
        self.after: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        for before, later, lag in rows(problem.edges):
            self.after[before].append((later, lag))
        self.waiting: list[int] = np.bincount(problem.edges.after, minlength=count).tolist()
        self.at_start: list[list[MergedChange]] = [[] for _ in range(count)]
        self.at_end: list[list[MergedChange]] = [[] for _ in range(count)]
        self.users: list[set[int]] = [set() for _ in problem.stores]
        columns = (events.task, events.at_end, events.store, events.delta)
        for task, at_end, store, delta in zip(*(c.tolist() for c in columns), strict=True):
            (self.at_end if at_end else self.at_start)[task].append((store, delta))
            self.users[store].add(self.home[task])
        self.work = [0] * len(problem.resources)
        for home, ticks in zip(self.home, self.ticks, strict=True):
            self.work[home] += ticks
        self.most_in_flight = [self._most_in_flight(r) for r in range(len(problem.resources))]
        kinds = problem.actions.kind.tolist()
        self.queue_of = [_QUEUE.get(Kind(kind), OTHERS) for kind in kinds]
        self.queues: list[list[list[int]]] = [[[], [], []] for _ in problem.resources]
        for task in order.tolist():
            self.queues[self.home[task]][self.queue_of[task]].append(task)

    def _most_in_flight(self, resource: int) -> int:
        """S - first + behind, see the module."""
        stage = self.problem.actions.stage
        here = stage[np.array(self.home) == resource]
        return 2 * int(stage.max()) + 1 - int(here.max() + here.min()) if len(here) else 0

    def program(self, limit: int, target: int) -> Program | None:
        """The merged program, or None where it gets stuck."""
        return _Run(self, limit, target).run()


class _Run:
    """One run through time."""

    def __init__(self, given: Merging, limit: int, target: int) -> None:
        self.given = given
        self.limit = [min(limit, most) for most in given.most_in_flight]
        resources = range(len(given.problem.resources))
        self.budget = [target - work for work in given.work]
        self.next = [[0, 0, 0] for _ in resources]  # how many of each queue have begun
        self.free_at = [0 for _ in resources]
        self.orders: list[list[int]] = [[] for _ in resources]
        self.waiting = given.waiting.copy()
        self.arrival = [0] * given.problem.num_tasks
        self.load = [store.base for store in given.problem.stores]
        self.events: list[tuple[int, int, int]] = []  # when; 0 a task ends, 1 a resource looks

    def run(self) -> Program | None:
        for resource in range(len(self.orders)):
            self._look(0, resource)
        while self.events:
            now, is_look, number = heapq.heappop(self.events)
            if not is_look:
                self._end(number, now)
            elif self.free_at[number] <= now:
                self._decide(number, now)
        if sum(map(len, self.orders)) < self.given.problem.num_tasks:
            return None
        task = np.array([task for order in self.orders for task in order], dtype=np.int64)
        return Program(
            actions=self.given.problem.actions.take(task),
            resource=np.repeat(np.arange(len(self.orders)), [len(order) for order in self.orders]),
        )

    def _look(self, when: int, resource: int) -> None:
        heapq.heappush(self.events, (when, 1, resource))

    def _end(self, task: int, now: int) -> None:
        self._look(now, self.given.home[task])
        for store, delta in self.given.at_end[task]:
            self.load[store] += delta
            for resource in self.given.users[store]:
                if self.free_at[resource] < now:
                    self._look(now, resource)

    def _decide(self, resource: int, now: int) -> None:
        """Begin a task, or look again when something is known to come."""
        heads = [
            queue[begun] if begun < len(queue) else None
            for queue, begun in zip(self.given.queues[resource], self.next[resource], strict=True)
        ]
        comes = [self._arrives(task) for task in heads]
        chosen = self._chosen(resource, heads, comes, now)
        if chosen is not None:
            back, idle = comes[BACKWARDS], now - self.free_at[resource]
            is_close = now < back < now + self.given.ticks[chosen]
            if is_close and back - now + idle <= self.budget[resource]:
                chosen = None
        if chosen is not None:
            self._begin(chosen, resource, now)
            return
        for when in comes:
            if when > now:
                self._look(when, resource)

    def _chosen(
        self, resource: int, heads: list[int | None], comes: list[int], now: int
    ) -> int | None:
        """What the module's rules say, but for the waiting."""
        forward, backward, other = (
            task if UNKNOWN < when <= now else None for task, when in zip(heads, comes, strict=True)
        )
        fits = [task is not None and self._fits(task) for task in (forward, backward, other)]
        in_flight = self.next[resource][FORWARDS] - self.next[resource][BACKWARDS]
        if in_flight < self.limit[resource] and forward is not None:
            if fits[FORWARDS]:
                return forward
            if fits[OTHERS]:
                return other
        ready = (backward, forward, other)
        places = (BACKWARDS, FORWARDS, OTHERS)
        return next((task for task, at in zip(ready, places, strict=True) if fits[at]), None)

    def _arrives(self, task: int | None) -> int:
        """When all its inputs are there, if they have all begun."""
        return UNKNOWN if task is None or self.waiting[task] else self.arrival[task]

    def _fits(self, task: int) -> bool:
        for store, delta in self.given.at_start[task]:
            capacity = self.given.problem.stores[store].capacity
            if capacity is not None and self.load[store] + max(0, delta) > capacity:
                return False
        return True

    def _begin(self, task: int, resource: int, now: int) -> None:
        given = self.given
        self.budget[resource] -= now - self.free_at[resource]
        self.next[resource][given.queue_of[task]] += 1
        self.orders[resource].append(task)
        for store, delta in given.at_start[task]:
            self.load[store] += delta
        self.free_at[resource] = end = now + given.ticks[task]
        heapq.heappush(self.events, (end, 0, task))
        for later, lag in given.after[task]:
            self.waiting[later] -= 1
            self.arrival[later] = max(self.arrival[later], end + lag)
            if not self.waiting[later]:
                self._look(max(now, self.arrival[later]), given.home[later])
