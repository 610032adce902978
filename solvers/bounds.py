"""Lower bounds on the makespan, in milliseconds and without an engine.

Heads and tails are longest paths over the precedences, the index-order edges and the memory edges
(``verify.certificates.index_order``). Per resource, Jackson's preemptive one-machine bound is the
largest min head + sum of durations + min tail over sets of tasks (Carlier 1982); the set that
attains it is the certificate, unless what a store has room for says more (``store_bounds``). For
``span_idle`` the same is done within the span of each rank.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import heappop, heappush

import numpy as np

from bubbleproof.solvers.refutation.store_bounds import acquiring, store_bound, volumes
from bubbleproof.theory.model.actions import NONE, Bools, Ints
from bubbleproof.theory.model.problem import Edges, Problem
from bubbleproof.theory.pipelines.programs.acyclic import acyclic_starts
from bubbleproof.theory.pipelines.timing import earliest_starts
from bubbleproof.verify.certificates.index_order import IndexOrder, index_order, sure_edges
from bubbleproof.verify.certificates.one_machine import OneMachine
from bubbleproof.verify.certificates.one_store import OneStore
from bubbleproof.verify.certificates.volume import Volume

ByResource = OneMachine | OneStore | Volume
NEVER = -(1 << 61)  # no path: all durations and lags add up to less than 2**60 ticks


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bounds:
    """``heads`` and ``tails`` (ticks, per task) over ``edges``, and the best bound of a resource.

    ``is_cyclic`` when the edges contradict each other: the problem is infeasible.
    """

    order: IndexOrder
    edges: Edges
    heads: Ints
    tails: Ints
    best: ByResource
    is_cyclic: bool = False


def lower_bounds(
    problem: Problem, objective: str = "makespan", order: IndexOrder | None = None
) -> Bounds:
    """The best bound of one resource on ``makespan`` or ``span_idle``.

    ``order`` is the problem's index order unless it is another one, of smaller groups.
    Precondition: the problem has a computation.

    Parameters
    ----------
    objective
        ``makespan`` or ``span_idle``.
    order
        The problem's index order, or one of smaller groups; derived where None is given.

    Returns
    -------
    Bounds
        The bound in ticks, with heads and tails per task.
    """
    order = order or index_order(problem)
    edges = sure_edges(problem, order)
    heads = earliest_starts(problem.duration, edges.before, edges.after, edges.lag)
    tails = earliest_starts(problem.duration, edges.after, edges.before, edges.lag)
    nothing = OneMachine(resource=0, tasks=(0,), bound=0)
    if heads is None or tails is None:
        none = np.zeros(problem.num_tasks, dtype=np.int64)
        return Bounds(
            order=order, edges=edges, heads=none, tails=none, best=nothing, is_cyclic=True
        )
    compute = problem.rank_of_task != NONE
    if objective == "span_idle":
        found = _spans(problem, edges)
    else:
        inside = (heads, tails) if compute.all() else _from(problem, edges, compute)
        used = np.unique(problem.occupancy.resource).tolist()
        found = [machine_bound(problem, resource, *inside) for resource in used]
        found += [b for pair in acquiring(problem) if (b := store_bound(problem, *inside, *pair))]
        found += volumes(problem, order, *inside)
    best = max(found, key=lambda certificate: certificate.bound)
    return Bounds(order=order, edges=edges, heads=heads, tails=tails, best=best)


def _spans(problem: Problem, edges: Edges) -> list[ByResource]:
    """The best bounds on the idle time within the span of each rank that computes."""
    found: list[ByResource] = []
    pairs = acquiring(problem)
    occupancy = problem.occupancy
    for rank in np.unique(occupancy.resource[occupancy.resource < problem.num_ranks]).tolist():
        tasks = occupancy.task[occupancy.resource == rank]
        here = np.isin(np.arange(problem.num_tasks), tasks)
        inside = _from(problem, edges, here)
        spans: list[ByResource] = [machine_bound(problem, rank, *inside)]
        spans += [b for r, s in pairs if r == rank and (b := store_bound(problem, *inside, r, s))]
        work = int(problem.duration[tasks].sum())
        found += [replace(b, bound=b.bound - work, objective="span_idle") for b in spans]
    return found


def _from(problem: Problem, edges: Edges, tasks: Bools) -> tuple[Ints, Ints]:
    """Heads from the first and tails to the last of the given tasks, which alone count."""
    origin = np.where(tasks, 0, NEVER)
    columns = (problem.duration, edges.before, edges.after, edges.lag, origin)
    mirrored = (problem.duration, edges.after, edges.before, edges.lag, origin)
    return acyclic_starts(*columns), acyclic_starts(*mirrored)


def machine_bound(problem: Problem, resource: int, heads: Ints, tails: Ints) -> OneMachine:
    """The largest min head + work + min tail over the tasks of one resource, with its set.

    Precondition: some task occupies the resource.

    Parameters
    ----------
    resource
        The resource's index.
    heads, tails
        Ticks per task, shape (num_tasks,).
    """
    tasks = problem.occupancy.task[problem.occupancy.resource == resource]
    tasks = tasks[np.argsort(heads[tasks], kind="stable")]
    columns = (heads[tasks].tolist(), problem.duration[tasks].tolist(), tails[tasks].tolist())
    bound, chosen = critical_set(*columns)
    return OneMachine(resource=resource, tasks=tuple(tasks[list(chosen)].tolist()), bound=bound)


def critical_set(
    heads: list[int], work: list[int], tails: list[int]
) -> tuple[int, tuple[int, ...]]:
    """The largest min head + work + min tail over sets of jobs, and a set (indices) that has it.

    Jackson's preemptive schedule always runs the job of longest tail that is there; its end plus
    tail is the bound (Carlier 1982), in n log n steps. The set is what runs, without a pause and
    without a job of shorter tail, up to the end of the job that attains it. Precondition: at least
    one job, and heads do not fall.

    Parameters
    ----------
    heads
        Ticks before which no job starts; they do not fall.
    work
        Ticks of each job.
    tails
        Ticks that follow each job's end.

    Returns
    -------
    tuple[int, tuple[int, ...]]
        The bound in ticks, and indices of jobs.
    """
    pieces, ended = _preemptive(heads, work, tails)
    last = max(range(len(heads)), key=lambda job: ended[job] + tails[job])
    begin = ended[last]
    for start, end, job in reversed(pieces):
        if start >= ended[last]:
            continue
        if end < begin or tails[job] < tails[last]:
            break
        begin = start
    chosen = tuple(
        job
        for job in range(len(heads))
        if heads[job] >= begin and tails[job] >= tails[last] and ended[job] <= ended[last]
    )
    bound = (
        min(heads[job] for job in chosen)
        + sum(work[job] for job in chosen)
        + min(tails[job] for job in chosen)
    )
    return bound, chosen


def _preemptive(
    heads: list[int], work: list[int], tails: list[int]
) -> tuple[list[tuple[int, int, int]], list[int]]:
    """Jackson's preemptive schedule: (start, end, job) pieces in order, and the end of each job."""
    left, ended = work.copy(), [0] * len(heads)
    pieces: list[tuple[int, int, int]] = []
    ready: list[tuple[int, int]] = []
    now, coming = heads[0], 0
    while ready or coming < len(heads):
        if not ready:
            now = max(now, heads[coming])
        while coming < len(heads) and heads[coming] <= now:
            heappush(ready, (-tails[coming], coming))
            coming += 1
        job = ready[0][1]
        until = now + left[job]
        if coming < len(heads):
            until = min(until, heads[coming])
        pieces.append((now, until, job))
        left[job] -= until - now
        now = until
        if not left[job]:
            heappop(ready)
            ended[job] = now
    return pieces, ended
