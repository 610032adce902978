"""Problems, schedules and stores in the words of ``proofs/``: texts for Coq.

Tasks are positive numbers, one more than their index. Edges stand in an order in which longest
paths come out in one pass: each after those that lead to it, and deadlines last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bubbleproof.theory.model.problem import Edges, Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.verify.certificates.certificate_rule import deadlines
from bubbleproof.verify.certificates.chains import in_order
from bubbleproof.verify.certificates.index_order import index_order, sure_edges

Edge = tuple[int, int, int]  # before, after, lag


def homes_of(problem: Problem) -> list[list[int]]:
    """The resources of each task."""
    homes: list[list[int]] = [[] for _ in range(problem.num_tasks)]
    occupancy = problem.occupancy
    for task, place in zip(occupancy.task.tolist(), occupancy.resource.tolist(), strict=True):
        homes[task].append(place)
    return homes


def changes_of(problem: Problem) -> list[list[Edge]]:
    """The events of each store, task by task: task, 1 at its end or 0, delta."""
    found: list[list[Edge]] = [[] for _ in problem.stores]
    events = problem.events
    rows = np.stack([events.task, events.at_end, events.delta, events.store], axis=1).tolist()
    for task, at_end, delta, store in sorted(rows):
        found[store].append((task, at_end, delta))
    return found


def own_edges(problem: Problem) -> list[Edge]:
    """The problem's precedences."""
    return edges_in_order(problem, problem.edges)


def certificate_edges(problem: Problem) -> list[Edge]:
    """These and what identical microbatches and memory allow to ask for."""
    return edges_in_order(problem, sure_edges(problem, index_order(problem)))


def edges_in_order(problem: Problem, edges: Edges) -> list[Edge]:
    """Each after those that lead to it; deadlines, and what stands in a circle, last."""
    rows = np.stack([edges.before, edges.after, edges.lag], axis=1).tolist()
    kept = ~deadlines(problem)
    kept = np.concatenate([kept, np.ones(len(edges) - len(kept), dtype=bool)])
    before, after = edges.before[kept].tolist(), edges.after[kept].tolist()
    place = {task: at for at, task in enumerate(in_order(problem.num_tasks, before, after))}
    late = len(place)

    def key(row: int) -> int:
        return place.get(rows[row][0], late) if kept[row] else late

    return [tuple(rows[row]) for row in sorted(range(len(rows)), key=key)]


def table_text(problem: Problem) -> Iterable[str]:
    """Each task with its duration and its resources."""
    for task, (ticks, homes) in enumerate(
        zip(problem.duration.tolist(), homes_of(problem), strict=True)
    ):
        yield f"({task_text(task)}, ({ticks}, {list_text(homes)}))"


def stores_text(problem: Problem) -> Iterable[str]:
    """Each store with its base load, its capacity and its events."""
    for store, changes in zip(problem.stores, changes_of(problem), strict=True):
        most = "None" if store.capacity is None else f"(Some {store.capacity})"
        yield f"Store positive {store.base} {most} {list_text(map(event_text, changes))}"


def event_text(change: Edge) -> str:
    """A change of a store: task, 1 at its end or 0, delta."""
    task, at_end, delta = change
    return f"Event positive {task_text(task)} {'true' if at_end else 'false'} ({delta})"


def rows_text(problem: Problem, schedule: Schedule) -> Iterable[str]:
    """Each row of the schedule: resource, task, start."""
    tasks = map(task_text, problem.locate(schedule.program.actions).tolist())
    places, starts = schedule.program.resource.tolist(), schedule.start.tolist()
    for place, name, start in zip(places, tasks, starts, strict=True):
        yield f"Row positive {place} {name} ({start})"


def edge_text(edge: Edge) -> str:
    """An edge."""
    before, after, lag = edge
    return f"({task_text(before)}, {task_text(after)}, {lag})"


def task_text(task: int) -> str:
    """A task's positive number."""
    return f"{task + 1}%positive"


def list_text(items: Iterable[object]) -> str:
    """A short list."""
    return f"[{'; '.join(map(str, items))}]"


def lines_text(items: Sequence[str]) -> str:
    """A long list, an item a line."""
    return ";\n  ".join(items)
