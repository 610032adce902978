"""Certificates by prices: what the microbatches must pay is more than there is to sell.

Let H be a horizon (ticks), of which t = 0 ... H - 1 are the ticks. Price each tick of some
resources, mu_r(t), and each unit of some stores for a tick, lam_s(t), and let every task, wherever
it lies, pay

- for each priced resource that it occupies, mu_r(t) of every tick t from its start to its end;
- for each of its changes of a priced store, delta times the sum of lam_s(t) over the ticks from the
  change on (all H, if it is before tick 0; none, if it is after the last).

So a microbatch that acquires one unit and releases it pays for the ticks between. For sale is the
sum of all mu_r(t), and of (capacity_s - base_s) lam_s(t).

Hypotheses, each of which is checked:

1. prices are whole numbers of 0 or more, and of a resource or store there is one list;
2. a priced store has a capacity, and a base load that is no more;
3. starts, durations and lags are whole ticks, as they are in every problem.

No index order is assumed, nor that microbatches are identical, nor that a store is used in
lifecycles: groups of identical microbatches (``verify.certificates.index_order``, hypothesis 1)
only make it enough to look at one of each.

Lemma. Let c_j be at most what the tasks of microbatch j pay in any placing of them alone, by some
of the precedences among them, within the horizon. If the sum of c_j is more than what is for sale,
no schedule fits the horizon: makespan >= H + 1.
Proof. Let a schedule fit, its first computation at 0 or later, its last over by H. Add up what its
tasks pay. Of a resource it is the sum of mu_r(t) over the ticks in which it is busy, which is at
most the sum of all, as it does one thing at a time and mu_r >= 0. Of a store each change is paid
for in the ticks that follow it, so that tick t is paid lam_s(t) times the load above the base load
after the changes of instant t or before, which is at most capacity_s - base_s, before the first
change too. So all tasks pay at most what is for sale. But those of each microbatch are placed by
its own precedences and pay c_j or more.

How c_j is found. Computations lie within the horizon, and so does what lies between two of them by
paths of the microbatch: none of these starts before its longest path from a computation (head), or
ends later than H less that to one (tail). What may lie outside, a transfer before or after all
computations, pays at least min(0, delta) times the sum of lam_s. Of the precedences each task keeps
that of its longest path alone. Then they are a forest, in which the least payment of a task and all
that follows it depends on its start only: its own, and for each follower the least of those from
its earliest start on. What else precedences ask is left out, which makes c_j no greater. Where a
head leaves no room for a tail, nothing fits the horizon, whatever the prices.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.chains import in_order
from bubbleproof.verify.certificates.index_order import index_order
from bubbleproof.verify.certificates.one_machine import NO_PATH, longest

MOST_TICKS = 1 << 22  # of a horizon: a price each would fill memory beyond
MOST_PAID = 1 << 62  # all that is paid or for sale, so that no sum wraps

Steps = tuple[tuple[int, int], ...]  # (tick, price from that tick to the next step), 0 before


@dataclass(frozen=True, slots=True, kw_only=True)
class Tariff:
    """The prices of a tick of a resource, or of a unit of a store for a tick; ``of`` is its index.

    ``steps``: tick and price from there to the next step; the price is 0 before the first.
    """

    of: int
    steps: Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class TickPrices:
    """Claims ``makespan >= bound`` by prices within a horizon of ``bound - 1`` ticks."""

    resources: tuple[Tariff, ...]
    stores: tuple[Tariff, ...]
    bound: int
    objective: str = "makespan"


class UnusablePricesError(Exception):
    """The certificate is none; the text says why."""


def prices_refusal(problem: Problem, certificate: TickPrices) -> str | None:
    """Why the certificate does not prove its bound; None where it does."""
    if certificate.objective != "makespan":
        return f"prices bound the makespan, not {certificate.objective!r}"
    edges = problem.edges
    order = in_order(problem.num_tasks, edges.before.tolist(), edges.after.tolist())
    if len(order) < problem.num_tasks:
        return "the problem's precedences have a cycle"
    try:
        market = Market(problem, certificate)
        paid = market.paid(order)
    except UnusablePricesError as error:
        return str(error)
    if paid is not None and paid <= market.for_sale:
        return f"the prices do not prove a bound of {certificate.bound}"
    return None


class Market:
    """What is for sale within a horizon of whole ticks, and what a microbatch must pay for it.

    Raises ``UnusablePricesError`` where a hypothesis fails.
    """

    def __init__(self, problem: Problem, certificate: TickPrices) -> None:
        self.problem, self.horizon = problem, certificate.bound - 1
        if type(certificate.bound) is not int or not 0 <= self.horizon <= MOST_TICKS:
            most = MOST_TICKS + 1
            raise UnusablePricesError(
                f"prices prove a whole bound of 1 to {most}, got {certificate.bound}"
            )
        self.mu = self._sums("resource", certificate.resources, len(problem.resources))
        self.lam = self._sums("store", certificate.stores, len(problem.stores))
        room = {store: self._room(store) for store in self.lam}
        self.for_sale = sum(int(sums[-1]) for sums in self.mu.values())
        self.for_sale += sum(room[store] * int(sums[-1]) for store, sums in self.lam.items())
        times, deltas = problem.num_tasks, int(np.abs(problem.events.delta).sum())
        most = times * sum(int(sums[-1]) for sums in self.mu.values())
        most += deltas * sum(int(sums[-1]) for sums in self.lam.values())
        if max(most, self.for_sale) >= MOST_PAID:
            raise UnusablePricesError("the prices add up to 2**62 or more")

    def paid(self, order: list[int]) -> int | None:
        """The least that all microbatches pay; None where one does not fit the horizon.

        Parameters
        ----------
        order
            All tasks, none before one that it waits for.
        """
        place = np.empty(self.problem.num_tasks, dtype=np.int64)
        place[order] = np.arange(len(order))
        total = 0
        for group in index_order(self.problem).groups:
            tasks = group[:, 0][np.argsort(place[group[:, 0]])]
            if (least := self._least(tasks)) is None:
                return None
            total += least * group.shape[1]
        return total

    def _sums(self, what: str, tariffs: Iterable[Tariff], count: int) -> dict[int, Ints]:
        """For each tariff the sum of all prices before tick t, t = 0 ... H."""
        found: dict[int, Ints] = {}
        for tariff in tariffs:
            if type(tariff.of) is not int or not 0 <= tariff.of < count:
                raise UnusablePricesError(f"{what} {tariff.of} is none of the problem's {count}")
            if tariff.of in found:
                raise UnusablePricesError(f"{what} {tariff.of} is priced twice")
            found[tariff.of] = self._sum(f"{what} {tariff.of}", tariff.steps)
        return found

    def _sum(self, name: str, steps: Steps) -> Ints:
        if any(type(number) is not int for step in steps for number in step):
            raise UnusablePricesError(f"prices of {name} must be whole numbers at whole ticks")
        if any(price < 0 for _, price in steps):
            raise UnusablePricesError(f"prices of {name} must be 0 or more")
        ticks = [-1, *(tick for tick, _ in steps), self.horizon]
        if any(later <= tick for tick, later in pairwise(ticks)):
            last = self.horizon - 1
            raise UnusablePricesError(f"prices of {name} must begin at rising ticks in 0..{last}")
        lengths = [later - tick for tick, later in pairwise(ticks[1:])]
        prices = [price for _, price in steps]
        if sum(x * y for x, y in zip(lengths, prices, strict=True)) >= MOST_PAID:
            raise UnusablePricesError("the prices add up to 2**62 or more")
        each = np.repeat(np.array([0, *prices], dtype=np.int64), [ticks[1] + 1, *lengths])
        each[0] = 0  # what is before tick 0
        return np.cumsum(each, dtype=np.int64) if len(steps) else np.zeros_like(each)

    def _room(self, store: int) -> int:
        home = self.problem.stores[store]
        if home.capacity is None or home.capacity < home.base:
            raise UnusablePricesError(f"store {store} has no capacity, or a base load beyond it")
        return home.capacity - home.base

    def _least(self, tasks: Ints) -> int | None:
        """The least that a microbatch pays, given in an order of its precedences; None: no place.

        Follows the module: latest tasks first, each adds the least payment of itself and all that
        follows it to that of the task it waits for longest.
        """
        part = MicrobatchPart(self.problem, tasks)
        total, added = 0, dict[int, Ints]()
        for row in reversed(range(len(tasks))):
            task, ticks = int(tasks[row]), part.ticks[row]
            if not part.is_within(row):
                total += self._least_outside(task)
                continue
            first, last = part.heads[row], self.horizon - part.tails[row] - ticks
            if last < first:
                return None
            paid = self._own(task, ticks, first, last) + added.pop(row, 0)
            if (parent := part.parent(row)) is None:
                total += int(paid.min())
                continue
            least = np.minimum.accumulate(paid[::-1])[::-1]
            before, ready = parent
            latest = self.horizon - part.tails[before] - part.ticks[before]
            wait = np.arange(part.heads[before], latest + 1) + ready - first
            added[before] = added.get(before, 0) + least[np.maximum(wait, 0)]
        return total

    def _own(self, task: int, ticks: int, first: int, last: int) -> Ints:
        """What a task pays by its start, from ``first`` to ``last``."""
        paid: Ints = np.zeros(last - first + 1, dtype=np.int64)
        for resource in self.problem.occupancy.resource[self._homes(task)].tolist():
            if (sums := self.mu.get(resource)) is not None:
                paid += sums[first + ticks : last + ticks + 1] - sums[first : last + 1]
        for delta, at_end, sums in self._changes(task):
            at = ticks if at_end else 0
            paid += delta * (sums[-1] - sums[first + at : last + at + 1])
        return paid

    def _least_outside(self, task: int) -> int:
        return sum(min(0, delta) * int(sums[-1]) for delta, _, sums in self._changes(task))

    def _homes(self, task: int) -> slice:
        return slice(*np.searchsorted(self.problem.occupancy.task, [task, task + 1]).tolist())

    def _changes(self, task: int) -> Iterable[tuple[int, bool, Ints]]:
        """The task's changes of priced stores: units, whether at its end, sums of prices."""
        events = self.problem.events
        for row in np.flatnonzero(events.task == task).tolist():
            if (sums := self.lam.get(int(events.store[row]))) is not None:
                yield int(events.delta[row]), bool(events.at_end[row]), sums


class MicrobatchPart:
    """The tasks of one microbatch by rows, with heads and tails (ticks) among them alone."""

    def __init__(self, problem: Problem, tasks: Ints) -> None:
        edges = problem.edges
        inside = np.isin(edges.before, tasks) & np.isin(edges.after, tasks)
        row_of = {task: row for row, task in enumerate(tasks.tolist())}
        columns = edges.before[inside], edges.after[inside], edges.lag[inside]
        named = zip(*(column.tolist() for column in columns), strict=True)
        rows = sorted((row_of[before], row_of[after], lag) for before, after, lag in named)
        self.ticks: list[int] = problem.duration[tasks].tolist()
        least = [0 if rank >= 0 else NO_PATH for rank in problem.rank_of_task[tasks].tolist()]
        left = None
        while left != (left := len(rows)):  # paths go through tasks within alone
            self.heads = longest(rows, self.ticks, least)
            back = sorted(((after, before, lag) for before, after, lag in rows), reverse=True)
            self.tails = longest(back, self.ticks, least)
            rows = [edge for edge in rows if self.is_within(edge[0]) and self.is_within(edge[1])]
        self._before: dict[int, list[tuple[int, int]]] = {}
        for before, after, lag in rows:
            self._before.setdefault(after, []).append((before, self.ticks[before] + lag))

    def is_within(self, row: int) -> bool:
        """Whether the task is a computation or lies between two.

        Parameters
        ----------
        row
            The place of a task in the part, from 0.
        """
        return self.heads[row] >= 0 and self.tails[row] >= 0

    def parent(self, row: int) -> tuple[int, int] | None:
        """The row that is waited for longest, and for how many ticks from its start.

        Parameters
        ----------
        row
            The place of a task in the part, from 0.
        """
        known = self._before.get(row, ())
        return max(known, key=lambda pair: (self.heads[pair[0]] + pair[1], pair[0]), default=None)
