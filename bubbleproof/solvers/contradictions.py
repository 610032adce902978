"""Reasons that no schedule exists which need no search: too little room, waits in a circle."""

from __future__ import annotations

from itertools import pairwise

from bubbleproof.theory.model.problem import Edges, Problem
from bubbleproof.theory.pipelines.timing import find_cycle
from bubbleproof.verify.certificates.index_order import IndexOrder


def overfull(problem: Problem, order: IndexOrder | None) -> str | None:
    """Why a store cannot hold its base load or a single microbatch, or None."""
    for store in problem.stores:
        if store.capacity is not None and store.base > store.capacity:
            return (
                f"{store.name}: its base load {store.base} exceeds its capacity "
                f"{store.capacity} {problem.memory_unit}"
            )
    if order is None:
        return None
    for life in order.lifecycles:
        limit = order.limit(life)
        if limit is not None and limit < 1:
            store = problem.stores[life.store]
            task = problem.label(int(order.members[life.first, 0]))
            return (
                f"{store.name}: {task} needs {life.acquired} beside the base load "
                f"{store.base}, but the capacity is {store.capacity} {problem.memory_unit}"
            )
    return None


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
