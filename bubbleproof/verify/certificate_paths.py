"""What every schedule's waits have in common, as certificates use it: edges and their order."""

from __future__ import annotations

from collections import deque

from bubbleproof.theory.index_order import index_order
from bubbleproof.theory.problem import Edges, Problem

Edge = tuple[int, int, int]


def sure_edges(problem: Problem) -> list[Edge]:
    """(before, after, lag) of all precedences, index-order and memory edges."""
    parts: list[Edges] = [problem.edges]
    if (order := index_order(problem)) is not None:
        parts += [order.order_edges, order.memory_edges]
    return [
        edge
        for part in parts
        for edge in zip(part.before.tolist(), part.after.tolist(), part.lag.tolist(), strict=True)
    ]


def in_order(num_tasks: int, edges: list[Edge]) -> list[tuple[int, list[Edge]]] | None:
    """Each task with the edges out of it, no task before its predecessors; None for a cycle."""
    out: list[list[Edge]] = [[] for _ in range(num_tasks)]
    waiting = [0] * num_tasks
    for edge in edges:
        out[edge[0]].append(edge)
        waiting[edge[1]] += 1
    ready = deque(task for task, count in enumerate(waiting) if not count)
    done = []
    while ready:
        task = ready.popleft()
        done.append((task, out[task]))
        for _, after, _ in out[task]:
            waiting[after] -= 1
            if not waiting[after]:
                ready.append(after)
    return done if len(done) == num_tasks else None
