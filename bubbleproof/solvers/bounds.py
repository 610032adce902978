"""Lower bounds on the makespan, in milliseconds and without an engine.

Heads and tails are longest paths over the precedences, the index-order edges and the memory edges
(``theory.index_order``). Per resource, Jackson's preemptive one-machine bound is the largest
min head + sum of durations + min tail over sets of tasks (Carlier 1982); the set that attains it is
the certificate. For ``span_idle`` the same is done within the span of each rank.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bubbleproof.theory.actions import NONE, Bools, Ints
from bubbleproof.theory.index_order import IndexOrder, index_order
from bubbleproof.theory.problem import Edges, Problem
from bubbleproof.theory.timing import earliest_starts
from bubbleproof.verify.certificate import OneMachine

NEVER = -(1 << 61)  # no path: all durations and lags add up to less than 2**60 ticks


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bounds:
    """``heads`` and ``tails`` (ticks, per task) over ``edges``, and the best one-machine bound.

    ``is_cyclic`` when the edges contradict each other: the problem is infeasible.
    """

    order: IndexOrder | None
    edges: Edges
    heads: Ints
    tails: Ints
    best: OneMachine
    is_cyclic: bool = False


def lower_bounds(problem: Problem, objective: str = "makespan") -> Bounds:
    """The best bound of one resource on ``makespan`` or ``span_idle``.

    Precondition: the problem has a computation.
    """
    order = index_order(problem)
    parts = [problem.edges]
    if order is not None:
        parts += [order.order_edges, order.memory_edges]
    edges = Edges(
        before=np.concatenate([part.before for part in parts]),
        after=np.concatenate([part.after for part in parts]),
        lag=np.concatenate([part.lag for part in parts]),
    )
    heads = earliest_starts(problem.duration, edges.before, edges.after, edges.lag)
    tails = earliest_starts(problem.duration, edges.after, edges.before, edges.lag)
    nothing = OneMachine(resource=0, tasks=(0,), bound=0)
    if heads is None or tails is None:
        none = np.zeros(problem.num_tasks, dtype=np.int64)
        return Bounds(
            order=order, edges=edges, heads=none, tails=none, best=nothing, is_cyclic=True
        )
    machines = _spans if objective == "span_idle" else _machines
    best = max(machines(problem, edges), key=lambda certificate: certificate.bound)
    return Bounds(order=order, edges=edges, heads=heads, tails=tails, best=best)


def _machines(problem: Problem, edges: Edges) -> list[OneMachine]:
    """The best bound on the makespan for each resource in use."""
    compute = problem.rank_of_task != NONE
    heads, tails = _from(problem, edges, compute)
    used = np.unique(problem.occupancy.resource).tolist()
    return [_one_machine(problem, resource, heads, tails) for resource in used]


def _spans(problem: Problem, edges: Edges) -> list[OneMachine]:
    """The best bound on the idle time within the span of each rank that computes."""
    found = []
    occupancy = problem.occupancy
    for rank in np.unique(occupancy.resource[occupancy.resource < problem.num_ranks]).tolist():
        tasks = occupancy.task[occupancy.resource == rank]
        here = np.isin(np.arange(problem.num_tasks), tasks)
        machine = _one_machine(problem, rank, *_from(problem, edges, here))
        idle = machine.bound - int(problem.duration[tasks].sum())
        found.append(replace(machine, bound=idle, objective="span_idle"))
    return found


def _from(problem: Problem, edges: Edges, tasks: Bools) -> tuple[Ints, Ints]:
    """Heads from the first and tails to the last of the given tasks, which alone count."""
    origin = np.where(tasks, 0, NEVER)
    columns = (problem.duration, edges.before, edges.after, edges.lag, origin)
    mirrored = (problem.duration, edges.after, edges.before, edges.lag, origin)
    begin, end = earliest_starts(*columns), earliest_starts(*mirrored)
    assert begin is not None, "the edges were found acyclic"
    assert end is not None, "the edges were found acyclic"
    return begin, end


def _one_machine(problem: Problem, resource: int, heads: Ints, tails: Ints) -> OneMachine:
    """The largest min head + work + min tail over the tasks of one resource, with its set.

    Precondition: some task occupies the resource.
    """
    tasks = problem.occupancy.task[problem.occupancy.resource == resource]
    tasks = tasks[np.argsort(heads[tasks], kind="stable")]
    head, tail, work = heads[tasks], tails[tasks], problem.duration[tasks]
    best, chosen = NEVER, (int(tasks[0]),)
    for least_tail in np.unique(tail).tolist():
        late = tail >= least_tail
        remaining = np.cumsum(np.where(late, work, 0)[::-1])[::-1]
        reach = np.where(late, head + remaining, NEVER)
        at = int(np.argmax(reach))
        if reach[at] + least_tail > best:
            best = int(reach[at]) + least_tail
            chosen = tuple(tasks[at:][late[at:]].tolist())
    return OneMachine(resource=resource, tasks=chosen, bound=best)
