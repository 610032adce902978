"""Reasons that no schedule exists which need no search: too little room, waits in a circle."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from bubbleproof.solvers.lists.stretch import first_of_each
from bubbleproof.solvers.memory_rules import Lifetime, lifetimes_of
from bubbleproof.solvers.starts import behind, joined
from bubbleproof.theory.model.actions import NONE
from bubbleproof.theory.model.problem import Edges, Problem
from bubbleproof.theory.pipelines.timing import find_cycle
from bubbleproof.verify.certificates.index_order import IndexOrder

MOST_SEEN = 10_000  # tasks of microbatches that differ


def overfull(problem: Problem, order: IndexOrder) -> str | None:
    """Why a store cannot hold its base load or a single microbatch, or None.

    One microbatch of a group speaks for all of it. When a task starts, what it or a task before it
    acquired, and it or one behind it gives back, is there in every order.
    """
    for store in problem.stores:
        if store.capacity is not None and store.base > store.capacity:
            return (
                f"{store.name}: its base load {store.base} exceeds its capacity "
                f"{store.capacity} {problem.memory_unit}"
            )
    for life in order.lifecycles:
        if (limit := order.limit(life)) is not None and limit <= 0:
            store = problem.stores[life.store]
            return (
                f"{store.name}: {problem.label(life.first)} needs {life.acquired} beside the base "
                f"load {store.base}, but the capacity is {store.capacity} {problem.memory_unit}"
            )
    problem = first_of_each(problem, order)
    if problem.num_tasks > MOST_SEEN:
        return None
    after = behind(problem.num_tasks, problem.edges)
    for number, store in enumerate(problem.stores):
        if (
            not after
            or store.capacity is None
            or (lifetimes := lifetimes_of(problem, number)) is None
        ):
            continue
        for together in _kept_together(problem, lifetimes, after):
            load = sum(lifetime.amount for lifetime in together)
            if load > store.capacity - store.base:
                names = dict.fromkeys(problem.label(lifetime.first) for lifetime in together)
                need = "needs" if len(names) == 1 else "need at once"
                return (
                    f"{store.name}: {' and '.join(names)} {need} {load} beside the base load "
                    f"{store.base}, but the capacity is {store.capacity} {problem.memory_unit}"
                )
    return None


def _kept_together(
    problem: Problem, lifetimes: tuple[Lifetime, ...], after: list[int]
) -> Iterator[list[Lifetime]]:
    """For each task that begins a lifetime all those of its microbatch that are there then."""
    microbatch, ticks = problem.actions.microbatch.tolist(), problem.duration.tolist()
    own: dict[int, list[Lifetime]] = {}
    for lifetime in lifetimes:
        own.setdefault(microbatch[lifetime.first], []).append(lifetime)
    for group in own.values():
        for task in dict.fromkeys(lifetime.first for lifetime in group):
            yield [
                lifetime
                for lifetime in group
                if (lifetime.first == task or after[lifetime.first] >> task & 1)
                and (lifetime.last == task or after[task] >> lifetime.last & 1)
                and ticks[task] + (ticks[lifetime.last] if lifetime.last != task else 0) > 0
            ]


def contradiction(problem: Problem, latest: Edges) -> str | None:
    """Why no starts keep the problem's precedences and the deadlines ``latest``; None if some do.

    Starts are raised along all of them until none rises (Bellman and Ford); after as many rounds as
    there are tasks, what still rises is led to by a cycle that takes time.
    """
    edges = joined(problem.edges, latest)
    reach = problem.duration[edges.before] + edges.lag
    start, by = np.zeros(problem.num_tasks, dtype=np.int64), np.full(problem.num_tasks, NONE)
    for _ in range(problem.num_tasks + 1):
        ready = start[edges.before] + reach
        rows = np.flatnonzero(ready > start[edges.after])
        if not len(rows):
            return None
        rows = rows[np.argsort(ready[rows], kind="stable")]  # the last one written is the greatest
        start[edges.after[rows]] = ready[rows]
        by[edges.after[rows]] = edges.before[rows]
    task = int(edges.after[rows[-1]])
    for _ in range(problem.num_tasks):
        task = int(by[task])
    waits = [task]
    while (task := int(by[task])) != waits[0]:
        waits.append(task)
    names = [problem.label(task) for task in [*waits, waits[0]]]
    return f"the precedences have a cycle: {' waits for '.join(names)}"


def cycle(problem: Problem, edges: Edges) -> tuple[str, bool]:
    """A cycle of waits, and whether it takes time: then it contradicts itself.

    One that takes none could be met by starts at one instant, which nothing here can time.
    Precondition: the edges have a cycle.
    """
    found = find_cycle(problem.num_tasks, edges.before, edges.after)
    waits = [problem.label(task) for task in found]
    chain = " waits for ".join([*waits, waits[0]])
    ticks = 0
    for after, before in pairwise([*found, found[0]]):
        between = (edges.before == before) & (edges.after == after)
        ticks += int(problem.duration[before] + edges.lag[between].max())
    if ticks > 0:
        return f"the precedences have a cycle: {chain}", True
    return f"a cycle of precedences that takes no time cannot be solved: {chain}", False
