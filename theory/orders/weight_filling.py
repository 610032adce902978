"""W in the waits: F and I in a given order on each rank, and W put off until the rank would wait.

- F and I keep their order, each as early as its inputs allow;
- an F waits while its rank holds ``limit`` units, a unit being held from F to the end of W (of the
  last part of it, where W is cut);
- a rank that waits takes the next part of the oldest W that is not done. It does so at once
  (*eager*), or only where the part ends before an input that is on its way arrives (*patient*).

A run gets stuck only where an F lacks room and no W is put off.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np

from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.problem import Edges, Problem
from bubbleproof.theory.orders.fixed_lists import FixedLists
from bubbleproof.theory.orders.task_lists import TaskLists, task_lists


class WeightFilling(FixedLists):
    """One run; ``mains`` are the F and I of each rank in order, ``parts`` the W behind each I."""

    def __init__(
        self,
        tasks: TaskLists,
        mains: Sequence[Sequence[int]],
        parts: Mapping[int, Sequence[int]],
        limit: int,
        *,
        is_patient: bool = False,
    ) -> None:
        super().__init__(tasks)
        idle = [()] * (tasks.num_resources - len(mains))  # such as links, whose messages come later
        self.mains = [deque(order) for order in (*mains, *idle)]
        self.parts, self.limit, self.is_patient = parts, limit, is_patient
        self.put_off: list[list[deque[int]]] = [[] for _ in self.mains]  # W's with parts to do
        self.held = [0] * len(self.mains)

    def chosen(self, resource: int, now: int) -> int | None:
        """The next F or I if it can start, else a part of a W."""
        mains = self.mains[resource]
        main = mains[0] if mains else None
        if main is None or self.waits[main]:
            return self._next_part(resource, None)
        if self.arrival[main] > now:
            return self._next_part(resource, self.arrival[main] - now if self.is_patient else None)
        if main in self.parts:
            self.put_off[resource].append(deque(self.parts[main]))
        elif self.held[resource] < self.limit:
            self.held[resource] += 1
        else:
            return self._next_part(resource, None)
        return mains.popleft()

    def _next_part(self, rank: int, room: int | None) -> int | None:
        """The next part of the oldest W whose next part takes at most ``room`` ticks."""
        queue = self.put_off[rank]
        for position, parts in enumerate(queue):
            if room is None or self.tasks.ticks[parts[0]] <= room:
                task = parts.popleft()
                if not parts:
                    del queue[position]
                    self.held[rank] -= 1  # the rank does nothing else before the part ends
                return task
        return None

    def ended(self, task: int, now: int) -> None:
        """Nothing is given back that ``chosen`` has not counted."""


def main_lists(problem: Problem) -> TaskLists:
    """The tasks of a problem with the precedences among F and I alone."""
    is_main, edges = problem.actions.is_kind(Kind.F, Kind.I), problem.edges
    kept = is_main[edges.before] & is_main[edges.after]
    return task_lists(
        problem,
        Edges(before=edges.before[kept], after=edges.after[kept], lag=edges.lag[kept]),
    )


def parts_of_inputs(problem: Problem) -> dict[int, list[int]]:
    """The W behind each I, its parts in order."""
    actions, edges = problem.actions, problem.edges
    following: dict[int, int] = {
        before: after
        for before, after in zip(edges.before.tolist(), edges.after.tolist(), strict=True)
        if actions.kind[after] == Kind.W
    }
    found = {}
    for task in np.flatnonzero(actions.is_kind(Kind.I)).tolist():
        chain = [following[task]]
        while chain[-1] in following:
            chain.append(following[chain[-1]])
        found[task] = chain
    return found
