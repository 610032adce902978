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
``listed_programs`` gives all programs of list scheduling, each with the name of its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from bubbleproof.solvers.bounds import Bounds
from bubbleproof.solvers.lists.greedy import greedy_programs
from bubbleproof.theory.model.actions import Ints, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.orders.fixed_lists import NEVER_KNOWN, FixedLists
from bubbleproof.theory.orders.task_lists import load_changes, program_of_lists, task_lists

FORWARDS, BACKWARDS, OTHERS = range(3)
_QUEUE = {Kind.F: FORWARDS, Kind.B: BACKWARDS, Kind.I: BACKWARDS}
LIMITS = (Fraction(1), *(Fraction(share, 8) for share in (7, 6, 4, 2)))  # of the stages
INTERVALS = (Fraction(1), Fraction(5, 4), Fraction(7, 4))  # times the chunks of a rank
MOST_MERGED = 100_000  # tasks begun in all runs, which takes two seconds or so


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

    Parameters
    ----------
    target
        Ticks, such as a lower bound.
    is_enough
        Asked before each run.
    most_tasks
        Tasks of all runs together.
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
    """All tasks in an order: ``size`` microbatches at a time, stage by stage.

    Parameters
    ----------
    size
        Microbatches of a group, 1 or more.

    Returns
    -------
    Ints
        Indices of tasks.
    """
    actions = problem.actions
    way = np.where(actions.kind == Kind.F, 1, -1)
    keys = way * actions.slice, actions.microbatch, way * actions.stage, actions.microbatch // size
    return np.lexsort(keys)


def steady(problem: Problem, interval: Fraction) -> Ints:
    """All tasks in an order: stage g of microbatch j at time g + j ``interval``, backwards from the
    last stage on.

    Parameters
    ----------
    interval
        How many stages a microbatch is ahead of the next one, 0 or more.

    Returns
    -------
    Ints
        Indices of tasks.
    """
    actions = problem.actions
    is_forward = actions.kind == Kind.F
    depth = np.where(is_forward, actions.stage, actions.stage.max() - actions.stage)
    time = actions.microbatch * interval.numerator + depth * interval.denominator
    return np.lexsort((np.where(is_forward, 1, -1) * actions.slice, actions.microbatch, time))


class Merging:
    """The problem along one order of its tasks, each of which occupies one resource."""

    def __init__(self, problem: Problem, order: Ints) -> None:
        self.problem, self.tasks = problem, task_lists(problem)
        self.at_start, self.at_end = load_changes(problem)
        self.users: list[set[int]] = [set() for _ in problem.stores]
        for task, store in zip(
            problem.events.task.tolist(), problem.events.store.tolist(), strict=True
        ):
            self.users[store].add(self.tasks.home[task])
        self.work = [0] * len(problem.resources)
        for home, ticks in zip(self.tasks.home, self.tasks.ticks, strict=True):
            self.work[home] += ticks
        self.most_in_flight = [self._most_in_flight(r) for r in range(len(problem.resources))]
        kinds = problem.actions.kind.tolist()
        self.queue_of = [_QUEUE.get(Kind(kind), OTHERS) for kind in kinds]
        self.queues: list[list[list[int]]] = [[[], [], []] for _ in problem.resources]
        for task in order.tolist():
            self.queues[self.tasks.home[task]][self.queue_of[task]].append(task)

    def _most_in_flight(self, resource: int) -> int:
        """S - first + behind, see the module."""
        stage = self.problem.actions.stage
        here = stage[np.array(self.tasks.home) == resource]
        return 2 * int(stage.max()) + 1 - int(here.max() + here.min()) if len(here) else 0

    def program(self, limit: int, target: int) -> Program | None:
        """The merged program, or None where it gets stuck.

        Parameters
        ----------
        limit
            Forwards of a rank that may be in flight.
        target
            Ticks, such as a lower bound.
        """
        run = _MergingRun(self, limit, target)
        return program_of_lists(self.problem, run.orders) if run.run() else None


class _MergingRun(FixedLists):
    """One run through time."""

    def __init__(self, given: Merging, limit: int, target: int) -> None:
        super().__init__(given.tasks)
        self.given = given
        self.limit = [min(limit, most) for most in given.most_in_flight]
        self.budget = [target - work for work in given.work]
        self.next = [[0, 0, 0] for _ in self.orders]  # how many of each queue have begun
        self.load = [store.base for store in given.problem.stores]

    def ended(self, task: int, now: int) -> None:
        """Give memory back, and let those look again that may have lacked it."""
        for store, delta in self.given.at_end[task]:
            self.load[store] += delta
            for resource in self.given.users[store]:
                if self.free_at[resource] < now:
                    self.look(now, resource)

    def chosen(self, resource: int, now: int) -> int | None:
        """What the module's rules say."""
        heads = [
            queue[begun] if begun < len(queue) else None
            for queue, begun in zip(self.given.queues[resource], self.next[resource], strict=True)
        ]
        comes = [self.arrives(task) for task in heads]
        chosen = self._without_waiting(resource, heads, comes, now)
        if chosen is None:
            return None
        back, idle = comes[BACKWARDS], now - self.free_at[resource]
        is_close = now < back < now + self.tasks.ticks[chosen]
        if is_close and back - now + idle <= self.budget[resource]:
            return None
        self.budget[resource] -= idle
        self.next[resource][self.given.queue_of[chosen]] += 1
        for store, delta in self.given.at_start[chosen]:
            self.load[store] += delta
        return chosen

    def _without_waiting(
        self, resource: int, heads: list[int | None], comes: list[int], now: int
    ) -> int | None:
        """What the module's rules say, but for the waiting."""
        forward, backward, other = (
            task if NEVER_KNOWN < when <= now else None
            for task, when in zip(heads, comes, strict=True)
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

    def _fits(self, task: int) -> bool:
        for store, delta in self.given.at_start[task]:
            capacity = self.given.problem.stores[store].capacity
            if capacity is not None and self.load[store] + max(0, delta) > capacity:
                return False
        return True


LISTED = 1e-5  # units of work for each task that is started


def listed_programs(
    problem: Problem, bounds: Bounds, target: int, is_enough: Callable[[], bool]
) -> Iterator[tuple[str, Program]]:
    """By priorities, then along fixed orders within the ``target`` (ticks).

    Parameters
    ----------
    target
        Ticks, such as a lower bound.
    is_enough
        Asked before each run.

    Returns
    -------
    Iterator[tuple[str, Program]]
        The name of the method and the program.
    """
    for program in greedy_programs(problem, bounds, is_enough):
        yield "greedy", program
    for program in merged_programs(problem, target, is_enough):
        yield "merging", program
