"""List scheduling from lists of what is ready.

Time moves from one event to the next: a task ends, or the inputs of one have arrived. When all that
happens at an instant has happened, each resource that it concerned and that is free takes one of
its ready tasks. Which one is the rule of a subclass (``chosen``), which also keeps account of what
tasks take and give back. A task that takes no time ends at the same instant, after every resource
has had its turn. The result are an order per resource and a start per task; a run that no event can
move on before all is done is *stuck*, and ``bankers`` says how a rule avoids that.

``fixed_lists`` differs in kind: there each resource has its queues from the beginning and knows
when their heads will come, so it may wait for one.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod

from bubbleproof.theory.orders.task_lists import TaskLists


class ReadyLists(ABC):
    """One run. Of several resources that a task occupies the first is the one that takes it.

    ``priority`` of a task is its place among those that are ready there, the least first.
    """

    def __init__(self, tasks: TaskLists, priority: list[int]) -> None:
        self.tasks, self.priority = tasks, priority
        self.ready: list[list[tuple[int, int]]] = [[] for _ in range(tasks.num_resources)]
        self.waits = tasks.waits.copy()
        self.arrival = [0] * len(tasks.ticks)  # of the last input that is known
        self.start = [-1] * len(tasks.ticks)
        self.orders: list[list[int]] = [[] for _ in range(tasks.num_resources)]
        self.is_busy = [False] * tasks.num_resources
        self.left = len(tasks.ticks)
        self.touched: set[int] = set()  # resources at which a task may have become startable
        # (time, has it only become ready?, task): ends come before what becomes ready
        self.events = [(0, True, task) for task, count in enumerate(self.waits) if not count]

    @abstractmethod
    def chosen(self, resource: int, now: int) -> int | None:
        """The task that a free resource takes now, out of its list; None to let it idle.

        Parameters
        ----------
        resource
            The resource's index.
        now
            The tick at which it is free.

        Returns
        -------
        int | None
            The task's index.
        """

    @abstractmethod
    def begun(self, task: int, end: int) -> None:
        """Account for a task that has started and will end at ``end``.

        Parameters
        ----------
        task
            The task's index.
        end
            The tick at which it will end.
        """

    @abstractmethod
    def ended(self, task: int) -> None:
        """Account for a task that has ended.

        Parameters
        ----------
        task
            The task's index.
        """

    @abstractmethod
    def fits(self, task: int) -> bool:
        """Whether a ready task may start now, at a free resource.

        Parameters
        ----------
        task
            The task's index.
        """

    def run(self) -> bool:
        """Whether all tasks have run; else it got stuck."""
        events, is_busy, homes = self.events, self.is_busy, self.tasks.homes
        start, orders, ticks = self.start, self.orders, self.tasks.ticks
        heapq.heapify(events)
        while events:
            now = events[0][0]
            self._happen(now)
            touched, self.touched = sorted(self.touched), set()
            for resource in touched:
                if is_busy[resource] or (task := self.chosen(resource, now)) is None:
                    continue
                start[task], end = now, now + ticks[task]
                for used in homes[task]:
                    is_busy[used] = True
                    orders[used].append(task)
                heapq.heappush(events, (end, False, task))
                self.begun(task, end)
        return not self.left

    def _happen(self, now: int) -> None:
        """All events of an instant: what ends, and what becomes ready."""
        events, waits, arrival, is_busy = self.events, self.waits, self.arrival, self.is_busy
        ready, priority = self.ready, self.priority
        home, homes, tasks = self.tasks.home, self.tasks.homes, self.tasks
        first, after, lag = tasks.first, tasks.after, tasks.lag
        while events and events[0][0] == now:
            _, is_ready, task = heapq.heappop(events)
            if is_ready:
                heapq.heappush(ready[home[task]], (priority[task], task))
                self.touched.add(home[task])
                continue
            self.left -= 1
            for resource in homes[task]:
                is_busy[resource] = False
                self.touched.add(resource)
            self.ended(task)
            for row in range(first[task], first[task + 1]):
                later, arrives = after[row], now + lag[row]
                if arrives > arrival[later]:
                    arrival[later] = arrives
                waits[later] = left = waits[later] - 1
                if left:
                    continue
                if arrival[later] > now:
                    heapq.heappush(events, (arrival[later], True, later))
                else:  # no resource takes anything before all of this instant has happened
                    heapq.heappush(ready[home[later]], (priority[later], later))
                    self.touched.add(home[later])

    def first_fitting(self, resource: int) -> tuple[tuple[int, int] | None, bool]:
        """Take the first of a resource's list that fits, and say whether one was passed over.

        Those passed over stay in the list.

        Parameters
        ----------
        resource
            The resource's index.
        """
        ready = self.ready[resource]
        if ready and self.fits(ready[0][1]):
            return heapq.heappop(ready), False
        found, passed = None, []
        while ready and found is None:
            passed.append(heapq.heappop(ready))
            if ready and self.fits(ready[0][1]):
                found = heapq.heappop(ready)
        for entry in passed:
            heapq.heappush(ready, entry)
        return found, bool(passed)
