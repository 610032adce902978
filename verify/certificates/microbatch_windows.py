"""Certificates by windows: what successive microbatches need alone, they need within any schedule.

An *excerpt* has successive microbatches, alone, on a few of the ranks; it is a problem of its own.
Of a group of identical microbatches (``verify.certificates.index_order``) it has the first
``count``, and of these the tasks that compute on some ``ranks``. What it leaves out it leaves free:

- all other tasks. Where a path of one microbatch leads from a kept task a to a kept task b through
  others, it is a precedence from a to b, whose lag is the path's length from the end of a;
- all other microbatches, groups, and precedences to and from them;
- the changes of every store that holds a use which is no lifecycle, or one of the group's uses of
  which a task is left out.

Its one rank is the *clock*: the tasks ``first`` and ``last`` of each microbatch occupy it as well
as their own resources. All other resources do one task at a time, as ever, and are no ranks. So its
makespan is the time from the first start of a ``first`` or ``last`` to the last end of one.

Hypotheses of an excerpt, each of which is checked:

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

A lifecycle (``verify.certificates.index_order``, hypothesis 3) begins with a task ``first`` and
ends with a task ``last`` of each of the m microbatches of a group; K of them may be within it at
once (lemma 2 there). A *window* is q successive microbatches, and a proof that their excerpt
takes b ticks or more: by any other kind of certificate, of that short problem.

Let n windows have q_1 ... q_n microbatches and take b_1 ... b_n ticks, each as often as it says.
With j_1 = 0 and j_(i+1) = j_i + q_i - 1 + K let window i be that of microbatches j_i ... l_i, where
l_i = j_i + q_i - 1.

Hypotheses, each of which is checked, beside those of lemma 2 there and of the excerpts:

1. all uses of the lifecycle's store are lifecycles, and the store has a capacity, which K comes
   from; a single window needs no K;
2. the last window ends within the group: l_n <= m - 1;
3. each proof is of its excerpt's makespan, and proves b_i; ``times`` is 1 or more.

Lemma 2. makespan >= head of first(0) + b_1 + ... + b_n + tail of last(l_n), head and tail being the
longest paths from a computation to the start of the one, and from the end of the other to one
(``verify.certificates.one_machine``).
Proof. Take a schedule in index order (lemma 1 of ``index_order``; the makespan is the same). By
lemma 1 window i takes b_i ticks or more from the start of first(j_i) to the end of
last(l_i). By lemma 2 of ``index_order`` first(j_(i+1)), whose number is l_i + K, starts no earlier
than last(l_i) ends, so that one window follows the other. Before the first of them lies its head,
after the last its tail.

Windows may be of several ranks: the more ranks an excerpt keeps, the more it takes, and the harder
its proof. How much the ranks get in each other's way is learnt by a short proof once, and counts in
each window.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Edges, MemoryEvents, Occupancy, Problem, Resource
from bubbleproof.verify.certificates.chains import Lifecycle, in_order
from bubbleproof.verify.certificates.index_order import IndexOrder, index_order
from bubbleproof.verify.certificates.one_machine import NO_PATH, longest, longest_paths

if TYPE_CHECKING:
    from bubbleproof.verify.certificates.certificate import Drup
    from bubbleproof.verify.certificates.crossings import Crossings
    from bubbleproof.verify.certificates.one_machine import OneMachine
    from bubbleproof.verify.certificates.one_store import OneStore
    from bubbleproof.verify.certificates.tick_prices import TickPrices
    from bubbleproof.verify.certificates.volume import Volume

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


MOST_WINDOWS = 1_000  # with proofs of their own, each of which is checked


@dataclass(frozen=True, slots=True, kw_only=True)
class MicrobatchWindow:
    """``count`` successive microbatches on ``ranks`` take ``proof.bound`` ticks, ``times`` over."""

    count: int
    ranks: tuple[int, ...]
    proof: OneMachine | OneStore | Volume | Crossings | TickPrices | Drup
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MicrobatchWindows:
    """Claims ``makespan >= bound`` by windows one after another.

    ``first`` is the task that begins the lifecycle of microbatch 0 of its group, ``store`` the
    store that it is one in.
    """

    first: int
    store: int
    windows: tuple[MicrobatchWindow, ...]
    bound: int
    objective: str = "makespan"


Refusal = Callable[
    [Problem, "OneMachine | OneStore | Volume | Crossings | TickPrices | Drup"], str | None
]


def windows_refusal(
    problem: Problem, certificate: MicrobatchWindows, refusal: Refusal
) -> str | None:
    """Why the certificate does not prove its bound; None where it does.

    ``refusal`` says the same of a window's proof and its excerpt.
    """
    if certificate.objective != "makespan":
        return f"windows bound the makespan, not {certificate.objective!r}"
    if not 1 <= len(certificate.windows) <= MOST_WINDOWS:
        return f"windows must be 1 to {MOST_WINDOWS}, got {len(certificate.windows)}"
    if (paths := longest_paths(problem, "makespan", 0)) is None:
        return "the problem's precedences have a cycle"
    excerpts = Excerpts(problem, certificate.first, certificate.store)
    if (life := excerpts.life) is None:
        return "no lifecycle of that store begins with that task"
    for number, window in enumerate(certificate.windows):
        short = excerpts.of(window.count, window.ranks)
        why = short if isinstance(short, str) else _unusable(window) or refusal(short, window.proof)
        if why is not None:
            return f"window {number}: {why}"
    if isinstance(last := _last(excerpts.order, life, certificate.windows), str):
        return last
    heads, tails = paths
    head, tail = heads[life.first], tails[int(excerpts.order.row_of[life.last][last])]
    taken = head + tail + sum(each.times * each.proof.bound for each in certificate.windows)
    if min(head, tail) < 0 or taken < certificate.bound:
        return f"the windows do not prove a bound of {certificate.bound}"
    return None


class Excerpts:
    """The excerpts from the lifecycle in ``store`` (index) that the task ``first`` begins.

    ``life`` is None where there is no such lifecycle.
    """

    def __init__(self, problem: Problem, first: int, store: int) -> None:
        self.problem, self.order = problem, index_order(problem)
        lives = self.order.lifecycles
        named = (life for life in lives if (life.first, life.store) == (first, store))
        self.life: Lifecycle | None = next(named, None)

    def of(self, count: int, ranks: tuple[int, ...]) -> Problem | str:
        """Of so many microbatches on these ranks; or why there is none.

        Parameters
        ----------
        count
            How many microbatches; judged here, whatever it is.
        ranks
            Numbers of ranks; judged here as well.
        """
        if self.life is None:
            return "no lifecycle of that store begins with that task"
        if any(type(number) is not int for number in (count, *ranks)):
            return "counts and ranks must be whole numbers"
        have = len(self.order.row_of[self.life.first])
        if not 1 <= count <= have:
            return f"a window has 1 to {have} identical microbatches, got {count}"
        if not set(ranks) <= set(range(self.problem.num_ranks)):
            return f"its ranks must be some of the problem's {self.problem.num_ranks}"
        return excerpt(self.problem, self.order, self.life, count, ranks)


def _unusable(window: MicrobatchWindow) -> str | None:
    """Why the window's numbers prove nothing."""
    if type(window.times) is not int or window.times < 1:
        return f"it must be taken once or more, got {window.times}"
    if window.proof.objective != "makespan" or type(window.proof.bound) is not int:
        return "its proof must be of a whole makespan"
    return None


def _last(order: IndexOrder, life: Lifecycle, windows: tuple[MicrobatchWindow, ...]) -> int | str:
    """The microbatch that the last window ends with; or why there is none."""
    limit, number = order.limit(life), sum(window.times for window in windows)
    if number > 1 and (limit is None or limit < 1):
        return "the store has no capacity, or no room for one microbatch"
    last = sum(window.times * (window.count - 1) for window in windows)
    last += (number - 1) * (limit or 0)
    if last >= (have := len(order.row_of[life.first])):
        return f"the windows need {last + 1} identical microbatches, and there are {have}"
    return last
