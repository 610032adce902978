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


def occupied(problem: Problem) -> list[tuple[int, int]]:
    """(task, resource) of every occupancy."""
    columns = problem.occupancy.task.tolist(), problem.occupancy.resource.tolist()
    return list(zip(*columns, strict=True))


def span_edges(problem: Problem, objective: str, limit: int) -> list[Edge]:
    """(a, b, ticks), start(b) >= start(a) + ticks: the spans of an objective of at most ``limit``.

    A span is the node ``num_tasks``, or for span_idle ``num_tasks`` + r for each rank r. All its
    computations start at its node or later, and end within limit, or work(r) + limit, of it.
    """
    is_span, ticks = objective == "span_idle", problem.duration.tolist()
    rows = [(task, rank) for task, rank in occupied(problem) if rank < problem.num_ranks]
    length = [limit] * problem.num_ranks
    for task, rank in rows:
        length[rank] += ticks[task] if is_span else 0
    edges = []
    for task, rank in rows:
        node = problem.num_tasks + (rank if is_span else 0)
        edges += [(node, task, 0), (task, node, ticks[task] - length[rank])]
    return edges
