"""Why no schedule exists: an irreducible set of demands that contradict each other.

The precedences and "one at a time" always stand. What may be given up, one by one: each limit on
what is wanted, each demand of the user, and in each store with a capacity each *lifetime* (what one
microbatch keeps there on one stage and slice). The reason is a set of these that excludes every
schedule, while giving up any one of them admits some (QuickXplain, Junker 2004). Which schedules
exist is for the search to say; where it runs out of time, the reason may be larger than needed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from bubbleproof.solvers.demands import Demands
from bubbleproof.solvers.memory_rules import memory_groups
from bubbleproof.solvers.options import SolveOptions
from bubbleproof.solvers.part_of_problem import part_of
from bubbleproof.solvers.result import Status
from bubbleproof.solvers.search import Search
from bubbleproof.theory.model.problem import Problem

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Limit:
    """The makespan is at most ``ticks``."""

    ticks: int


@dataclass(frozen=True, slots=True)
class Order:
    """Task ``before`` has ended when ``after`` starts."""

    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Start:
    """``task`` keeps its place, ``at`` ticks on the clock of the kept starts."""

    task: int
    at: int


@dataclass(frozen=True, slots=True)
class StoreUse:
    """What the ``tasks`` (in order of time) of one microbatch keep in ``store``."""

    store: int
    tasks: tuple[int, ...]


Cause = Limit | Order | Start | StoreUse


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """``causes`` exclude every schedule; ``is_irreducible``: none of them can be spared."""

    causes: tuple[Cause, ...]
    is_irreducible: bool


def explain(
    problem: Problem, options: SolveOptions, demands: Demands | None = None
) -> Reason | None:
    """Why the problem has no schedule within ``options.within`` that meets the demands.

    None where the search finds one after all, or cannot tell in ``options.time_limit`` seconds.
    """
    finder = _Finder(problem, options)
    causes = _causes(problem, options, demands or Demands())
    if not finder.excludes(causes):
        return None
    found = quickxplain(finder.excludes, causes)
    order = {cause: number for number, cause in enumerate(causes)}
    return Reason(
        causes=tuple(sorted(found, key=order.__getitem__)), is_irreducible=not finder.ran_out
    )


def quickxplain(excludes: Callable[[Sequence[Item]], bool], items: Sequence[Item]) -> list[Item]:
    """A smallest-by-inclusion part of the items that still excludes.

    Precondition: all of them together exclude, and a set excludes if a part of it does.
    """

    def search(background: list[Item], is_new: bool, rest: list[Item]) -> list[Item]:
        if is_new and excludes(background):
            return []
        if len(rest) == 1:
            return rest
        half = len(rest) // 2
        second = search(background + rest[:half], True, rest[half:])
        first = search(background + second, bool(second), rest[:half])
        return first + second

    if not items or excludes([]):
        return []
    return search([], False, list(items))


def _causes(problem: Problem, options: SolveOptions, demands: Demands) -> list[Cause]:
    causes: list[Cause] = [StoreUse(store, tasks) for store, tasks in memory_groups(problem)]
    causes += [Order(before, after) for before, after in demands.orders]
    causes += [Start(task, at) for task, at in demands.starts]
    causes += [] if options.within is None else [Limit(options.within)]
    return causes


class _Finder:
    """Whether a set of causes excludes every schedule; what it could not tell in time."""

    def __init__(self, problem: Problem, options: SolveOptions) -> None:
        self.problem, self.options = problem, options
        self.deadline = time.perf_counter() + options.time_limit
        self.ran_out = False

    def excludes(self, causes: Sequence[Cause]) -> bool:
        left = self.deadline - time.perf_counter()
        if left <= 0 or self.options.stop.is_set():
            self.ran_out = True
            return False
        limits = [cause.ticks for cause in causes if isinstance(cause, Limit)]
        demands = Demands(
            orders=tuple((c.before, c.after) for c in causes if isinstance(c, Order)),
            starts=tuple((c.task, c.at) for c in causes if isinstance(c, Start)),
        )
        options = replace(
            self.options, time_limit=left, within=min(limits, default=None), progress=None
        )
        held = [cause for cause in causes if isinstance(cause, StoreUse)]
        search = Search(
            _holding(self.problem, held),
            options,
            demands=demands,
            is_enough=True,
            is_certifying=False,
        )
        status = search.run(()).status
        self.ran_out |= status is Status.UNKNOWN
        return status is Status.INFEASIBLE


def _holding(problem: Problem, held: Sequence[StoreUse]) -> Problem:
    """The problem in which only these lifetimes take room in stores with a capacity."""
    kept_tasks: dict[int, set[int]] = {}
    for cause in held:
        kept_tasks.setdefault(cause.store, set()).update(cause.tasks)
    events = problem.events
    kept = np.array(
        [
            problem.stores[store].capacity is None or task in kept_tasks.get(store, ())
            for task, store in zip(events.task.tolist(), events.store.tolist(), strict=True)
        ],
        dtype=bool,
    )
    stores = tuple(
        store if number in kept_tasks or store.capacity is None else replace(store, capacity=None)
        for number, store in enumerate(problem.stores)
    )
    tasks, edges = (np.ones(count, dtype=bool) for count in (problem.num_tasks, len(problem.edges)))
    return replace(part_of(problem, tasks, edges, kept), stores=stores)
