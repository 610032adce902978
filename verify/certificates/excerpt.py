"""Excerpts: successive microbatches of a problem, alone, on a few of its ranks.

An excerpt is a problem of its own. Of a group of identical microbatches
(``verify.certificates.index_order``) it has the first ``count``, and of these the tasks that
compute on some ``ranks``. What it leaves out it leaves free:

- all other tasks. Where a path of one microbatch leads from a kept task a to a kept task b through
  others, it is a precedence from a to b, whose lag is the path's length from the end of a;
- all other microbatches, groups, and precedences to and from them;
- the changes of every store that holds a use which is no lifecycle, or one of the group's uses of
  which a task is left out.

Its one rank is the *clock*: the tasks ``first`` and ``last`` of each microbatch occupy it as well
as their own resources. All other resources do one task at a time, as ever, and are no ranks. So its
makespan is the time from the first start of a ``first`` or ``last`` to the last end of one.

Hypotheses, each of which is checked:

1. ``first`` and ``last`` share a resource, so that the clock excludes nothing more;
2. ``last`` starts no earlier than ``first`` ends, by precedences of the microbatch; or it is the
   same task.

Lemma 1. Let a schedule of the problem be in index order, and j ... j + count - 1 be successive
microbatches of the group. What their kept tasks do in it, microbatch j + i being called i, is a
schedule of the excerpt, whose makespan is the time from the start of ``first`` of j to the end of
``last`` of j + count - 1.
Proof. The group's microbatches are identical: durations, resources, changes of stores and
precedences are those of 0 ... count - 1. Kept resources are busy when they were, or less. Each
precedence of the excerpt is a path of the problem. In a store that is kept every use is a
lifecycle, which holds 0 or more at every instant, so that with fewer uses no load is greater; and
of each use all changes are there. By hypothesis 2 and index order none of the clock's tasks starts
before ``first`` of j, and none ends after ``last`` of j + count - 1.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Edges, MemoryEvents, Occupancy, Problem, Resource
from bubbleproof.verify.certificates.chains import Lifecycle, in_order
from bubbleproof.verify.certificates.index_order import IndexOrder
from bubbleproof.verify.certificates.one_machine import NO_PATH, longest

CLOCK = "clock"
Lags = dict[tuple[int, int], int]  # by (before, after), in ticks


def excerpt(
    problem: Problem, order: IndexOrder, life: Lifecycle, count: int, ranks: tuple[int, ...]
) -> Problem | str:
    """The excerpt from ``life.first`` to ``life.last``; or why there is none.

    ``order`` is the problem's index order, ``life`` one of its lifecycles. Preconditions: ``count``
    is 1 to the group's number of microbatches.

    Parameters
    ----------
    count
        How many of the group's microbatches the excerpt has.
    ranks
        The ranks whose tasks it has.
    """
    group = next(group for group in order.groups if life.first in group[:, 0])
    is_kept, homes = np.isin(problem.rank_of_task[group[:, 0]], ranks), problem.occupancy
    ends = [life.first, life.last]
    if not np.isin(ends, group[is_kept, 0]).all():
        return "the ranks are not those of the lifecycle's first and last task"
    shared = (set(homes.resource[homes.task == task].tolist()) for task in ends)
    if not set.intersection(*shared):
        return "the lifecycle's first and last task share no resource"
    lags = _lags(problem, group[:, 0])
    for task in group[~is_kept, 0].tolist():
        _leave_out(task, int(problem.duration[task]), lags)
    if life.first != life.last and not _is_after(problem, life, group[is_kept, 0], lags):
        return "the lifecycle's last task need not wait for its first"
    stores = {each.store for each in order.lifecycles}
    stores -= set(problem.events.store[np.isin(problem.events.task, group[~is_kept])].tolist())
    try:
        return _cut(problem, life, group[is_kept, :count], lags, stores)
    except ValueError as error:  # longest paths that add up to too much
        return str(error)


def _lags(problem: Problem, tasks: Ints) -> Lags:
    """The greatest lag between any two of one microbatch's tasks."""
    edges, found = problem.edges, Lags()
    inside = np.isin(edges.before, tasks) & np.isin(edges.after, tasks)
    columns = (column[inside].tolist() for column in (edges.before, edges.after, edges.lag))
    for before, after, lag in zip(*columns, strict=True):
        _raise(found, (before, after), lag)
    return found


def _raise(lags: Lags, pair: tuple[int, int], lag: int) -> None:
    lags[pair] = max(lag, lags.get(pair, lag))


def _leave_out(task: int, ticks: int, lags: Lags) -> None:
    """Put precedences where paths led through the task."""
    sooner = [(pair[0], lags.pop(pair)) for pair in list(lags) if pair[1] == task]
    later = [(pair[1], lags.pop(pair)) for pair in list(lags) if pair[0] == task]
    for before, lag in sooner:
        for after, more in later:
            _raise(lags, (before, after), lag + ticks + more)


def _is_after(problem: Problem, life: Lifecycle, tasks: Ints, lags: Lags) -> bool:
    """Whether a path puts the start of the last task after the end of the first."""
    row_of = {task: row for row, task in enumerate(tasks.tolist())}
    arcs = [(row_of[before], row_of[after], lag) for (before, after), lag in lags.items()]
    rows = in_order(len(tasks), [arc[0] for arc in arcs], [arc[1] for arc in arcs])
    if len(rows) < len(tasks):
        return False
    place = {row: at for at, row in enumerate(rows)}
    arcs.sort(key=lambda arc: place[arc[0]])
    least = [0 if task == life.first else NO_PATH for task in row_of]
    path = longest(arcs, problem.duration[tasks].tolist(), least)[row_of[life.last]]
    return path >= int(problem.duration[life.first])


def _cut(problem: Problem, life: Lifecycle, kept: Ints, lags: Lags, stores: set[int]) -> Problem:
    """The ``kept`` tasks, one class a row, one microbatch a column, and changes of ``stores``."""
    tasks, row_of = np.sort(kept, axis=None), {int(row[0]): row for row in kept}
    homes, events, count = problem.occupancy, problem.events, kept.shape[1]

    def number(*columns: Ints) -> Ints:
        found: Ints = np.searchsorted(tasks, np.concatenate([tasks[:0], *columns]))
        return found

    clocked = np.unique([row_of[life.first], row_of[life.last]])
    inside = np.isin(homes.task, tasks)
    task = number(homes.task[inside], clocked)
    resource = np.concatenate([homes.resource[inside] + 1, 0 * clocked])
    place = np.lexsort((resource, task))
    changes = np.isin(events.store, sorted(stores)) & np.isin(events.task, tasks)
    free = (replace(resource, rank=None) for resource in problem.resources)
    return replace(
        problem,
        resources=(Resource(name=CLOCK, rank=0), *free),
        actions=problem.actions.take(tasks),
        duration=problem.duration[tasks],
        occupancy=Occupancy(task=task[place], resource=resource[place]),
        edges=Edges(
            before=number(*(row_of[pair[0]] for pair in lags)),
            after=number(*(row_of[pair[1]] for pair in lags)),
            lag=np.repeat(np.array([*lags.values()], dtype=np.int64), count),
        ),
        events=MemoryEvents(
            task=number(events.task[changes]),
            at_end=events.at_end[changes],
            store=events.store[changes],
            delta=events.delta[changes],
        ),
    )
