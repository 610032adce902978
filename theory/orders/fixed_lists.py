"""List scheduling along fixed queues, in which a resource may wait for what is sure to come.

Each resource has queues from the beginning, takes only their heads, and looks at them one resource
after another: when it is free again, or when the last input of one of its tasks arrives. The rule
is a subclass's (``chosen``). All inputs that have begun are known, with the moments at which they
arrive: so a rule may let a resource idle until the head of a queue comes.

``ready_lists`` differs in kind: there a resource chooses among all that is ready, in any order, and
knows nothing of what is under way until it has arrived.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod

from bubbleproof.theory.orders.task_lists import TaskLists

NEVER_KNOWN = -1  # instead of the moment at which the last input arrives


class FixedLists(ABC):
    """One run; each task occupies one resource."""

    def __init__(self, tasks: TaskLists) -> None:
        self.tasks, count = tasks, tasks.num_resources
        self.waits = tasks.waits.copy()  # for inputs that have not begun
        self.arrival = [0] * len(tasks.ticks)  # of the last input that has begun
        self.free_at = [0] * count
        self.orders: list[list[int]] = [[] for _ in range(count)]
        # (when; 0 a task ends, 1 a resource looks; which), a heap
        self.events = [(0, 1, resource) for resource in range(count)]

    @abstractmethod
    def chosen(self, resource: int, now: int) -> int | None:
        """The task that a free resource begins now, out of its queue; None to let it idle.

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
    def ended(self, task: int, now: int) -> None:
        """Account for a task that has ended.

        Parameters
        ----------
        task
            The task's index.
        now
            The tick of its end.
        """

    def run(self) -> bool:
        """Whether all tasks have begun; else it got stuck."""
        events, home, free_at = self.events, self.tasks.home, self.free_at
        while events:
            now, is_look, number = heapq.heappop(events)
            if not is_look:
                heapq.heappush(events, (now, 1, home[number]))
                self.ended(number, now)
            elif free_at[number] <= now:
                task = self.chosen(number, now)
                if task is not None:
                    self._begin(task, number, now)
        return sum(map(len, self.orders)) == len(self.tasks.ticks)

    def look(self, when: int, resource: int) -> None:
        """Let a resource look then what it can do.

        Parameters
        ----------
        when
            A tick that has not passed.
        resource
            The resource's index.
        """
        heapq.heappush(self.events, (when, 1, resource))

    def arrives(self, task: int | None) -> int:
        """When all its inputs are there, if they have all begun.

        Parameters
        ----------
        task
            The task's index; None for no task.

        Returns
        -------
        int
            A tick, or ``NEVER_KNOWN``.
        """
        return NEVER_KNOWN if task is None or self.waits[task] else self.arrival[task]

    def _begin(self, task: int, resource: int, now: int) -> None:
        self.orders[resource].append(task)
        self.free_at[resource] = end = now + self.tasks.ticks[task]
        heapq.heappush(self.events, (end, 0, task))
        waits, arrival = self.waits, self.arrival
        for later, lag in self.tasks.followers(task):
            waits[later] -= 1
            if end + lag > arrival[later]:
                arrival[later] = end + lag
            if not waits[later]:
                self.look(max(now, arrival[later]), self.tasks.home[later])
