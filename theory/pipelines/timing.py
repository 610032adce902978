"""Timing: the left-shifted schedule of a program, or the cycle in which it waits for itself.

Left-shifted means that each action starts as early as its inputs (plus lags) and the preceding
actions on its resources allow. The starts are the longest paths in the graph whose edges are the
problem's precedences and, per resource, the program's order; a cycle in it is a deadlock.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bubbleproof.theory.model.actions import NONE, Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import ClaimedNumber, Program, Schedule


class UntimedProgram(ValueError):  # noqa: N818 - a state of the program, not of the caller
    """A program that has no timing: not one row per task and resource, or a deadlock."""


class Deadlock(UntimedProgram):
    """A program whose order waits for itself.

    ``waiting`` is the cycle of task labels, each waiting for the next and the last for the first.
    """

    def __init__(self, waiting: list[str]) -> None:
        self.waiting = waiting
        chain = " waits for ".join([*waiting, waiting[0]])
        super().__init__(f"deadlock: {chain}")

    def __reduce__(self) -> tuple[type[Deadlock], tuple[list[str]]]:
        """Another process makes it again from the cycle."""
        return type(self), (self.waiting,)


def left_shift(
    problem: Problem, program: Program, claims: Mapping[str, ClaimedNumber] | None = None
) -> Schedule:
    """The earliest schedule with the program's orders.

    Raises ``Deadlock`` with the waiting cycle, and ``UntimedProgram`` when the program does not
    hold each task of the problem exactly once on each of its resources.
    """
    task = problem.locate(program.actions)
    if (task == NONE).any():
        foreign = program.actions.label(int(np.argmax(task == NONE)))
        raise UntimedProgram(f"{foreign} is no task of the problem")
    count = np.bincount(task, minlength=problem.num_tasks)
    needed = np.bincount(problem.occupancy.task, minlength=problem.num_tasks)
    if (count != needed).any():
        wrong = int(np.argmax(count != needed))
        raise UntimedProgram(
            f"{problem.label(wrong)} must stand in {needed[wrong]} order(s), "
            f"stands in {count[wrong]}"
        )
    before, after, lag = waiting_edges(problem, program, task)
    start = earliest_starts(problem.duration, before, after, lag)
    if start is None:
        raise Deadlock([problem.label(t) for t in find_cycle(problem.num_tasks, before, after)])
    duration = problem.duration[task]
    return Schedule(program=program, start=start[task], claims=claims or {}, duration=duration)


def rough_times(problem: Problem, program: Program) -> Schedule:
    """Starts for any program: ``left_shift``'s where that has some, and else as near as can be.

    A task that no row holds is passed over; what no task of the problem is starts at 0. Where the
    order waits for itself each row starts as many ticks in as rows stand before it.
    """
    task = problem.locate(program.actions)
    known = task != NONE
    before, after, lag = waiting_edges(problem, program.take(known), task[known])
    start = earliest_starts(problem.duration, before, after, lag)
    if start is None:
        first = np.searchsorted(program.resource, program.resource)
        return Schedule(program=program, start=np.arange(len(program)) - first)
    return Schedule(program=program, start=np.where(known, start[task], 0))


def waiting_edges(problem: Problem, program: Program, task: Ints) -> tuple[Ints, Ints, Ints]:
    """Precedences and order edges as columns (before, after, lag); ``task`` locates each row.

    Parameters
    ----------
    task
        The task of each row of the program, as an index into the problem.

    Returns
    -------
    tuple[Ints, Ints, Ints]
        Columns of one length; lags are in ticks, 0 from a row to the next one on its resource.
    """
    edges = problem.edges
    follows = np.diff(program.resource) == 0
    return (
        np.concatenate([edges.before, task[:-1][follows]]),
        np.concatenate([edges.after, task[1:][follows]]),
        np.concatenate([edges.lag, np.zeros(int(follows.sum()), dtype=np.int64)]),
    )


def successors(num_tasks: int, before: Ints) -> tuple[Ints, Ints]:
    """Edges by their origin: ``order[first[t]:first[t + 1]]`` are the edges out of task t.

    Parameters
    ----------
    num_tasks
        Tasks are numbered from 0 to ``num_tasks - 1``.
    before
        The task that each edge leaves.

    Returns
    -------
    tuple[Ints, Ints]
        ``order``, the edges' indices, and ``first``, shape (num_tasks + 1,).
    """
    order = np.argsort(before, kind="stable")
    first = np.zeros(num_tasks + 1, dtype=np.int64)
    np.cumsum(np.bincount(before, minlength=num_tasks), out=first[1:])
    return order, first


def earliest_starts(
    duration: Ints, before: Ints, after: Ints, lag: Ints, origin: Ints | None = None
) -> Ints | None:
    """Longest-path starts, shape (num_tasks,), or None when the edges have a cycle.

    A plain worklist over Python lists: at half a million tasks it beats both a level-by-level numpy
    sweep (thousands of tiny levels) and general graph libraries.

    Parameters
    ----------
    duration
        Ticks of each task, shape (num_tasks,).
    before, after, lag
        One precedence a row: ``after`` starts ``lag`` ticks or more after ``before`` has ended.
    origin
        The least start of each task in ticks; 0 unless given.

    Returns
    -------
    Ints | None
        Ticks, shape (num_tasks,); None when the edges have a cycle.
    """
    num_tasks = len(duration)
    order, first = successors(num_tasks, before)
    target, bounds = after[order].tolist(), first.tolist()
    reach = (duration[before] + lag)[order].tolist()
    waiting = np.bincount(after, minlength=num_tasks).tolist()
    start = [0] * num_tasks if origin is None else origin.tolist()
    ready = [t for t, count in enumerate(waiting) if not count]
    for task in ready:  # which grows
        begun = start[task]
        for edge in range(bounds[task], bounds[task + 1]):
            later = target[edge]
            arrival = begun + reach[edge]
            if arrival > start[later]:
                start[later] = arrival
            waiting[later] = left = waiting[later] - 1
            if not left:
                ready.append(later)
    return np.array(start, dtype=np.int64) if len(ready) == num_tasks else None


def in_order(num_nodes: int, before: Ints, after: Ints) -> list[int] | None:
    """All nodes, none before one that it waits for; None when the edges have a cycle.

    Parameters
    ----------
    num_nodes
        Nodes are numbered from 0 to ``num_nodes - 1``.
    before, after
        One edge a row: ``after`` waits for ``before``.
    """
    done, _ = sweep(num_nodes, before, after)
    return done if len(done) == num_nodes else None


def sweep(num_nodes: int, before: Ints, after: Ints) -> tuple[list[int], list[int]]:
    """The nodes that no cycle holds up, in order, and for how many each node waits still.

    Parameters
    ----------
    num_nodes
        Nodes are numbered from 0 to ``num_nodes - 1``.
    before, after
        One edge a row: ``after`` waits for ``before``.

    Returns
    -------
    tuple[list[int], list[int]]
        Nodes, and of every node how many of its edges come from one that is not among them.
    """
    order, first = successors(num_nodes, before)
    waiting = np.bincount(after, minlength=num_nodes).tolist()
    targets, bounds = after[order].tolist(), first.tolist()
    ready = [n for n in range(num_nodes) if not waiting[n]]
    done = []
    while ready:
        node = ready.pop()
        done.append(node)
        for later in targets[bounds[node] : bounds[node + 1]]:
            waiting[later] -= 1
            if not waiting[later]:
                ready.append(later)
    return done, waiting


def find_cycle(num_nodes: int, before: Ints, after: Ints) -> list[int]:
    """A cycle of nodes, each waiting for the next and the last for the first; empty if acyclic.

    Parameters
    ----------
    num_nodes
        Nodes are numbered from 0 to ``num_nodes - 1``.
    before, after
        One edge a row: ``after`` waits for ``before``.
    """
    done, waiting = sweep(num_nodes, before, after)
    if len(done) == num_nodes:
        return []
    held = np.array(waiting) > 0
    stuck = held[before] & held[after]
    blocker = dict(zip(after[stuck].tolist(), before[stuck].tolist(), strict=True))
    seen: dict[int, int] = {}
    node = next(iter(blocker))
    while node not in seen:
        seen[node] = len(seen)
        node = blocker[node]
    return [n for n, position in seen.items() if position >= seen[node]]
