"""What one microbatch does to a store, in the order that its precedences force.

A *moment* is the start or the end of a task. The longest path of precedences from one task to
another, durations and lags included, is the least time between their starts; so it says how many
ticks at least lie between two moments. A path of 0 ticks or more *forces* the first moment to be no
later than the second. Nothing else does: neither the kinds of tasks nor their numbers.

The changes of one (stage, slice) of a microbatch on a store form a *chain* where paths among the
tasks of that stage and slice force all their moments into one row. In any schedule and at any
instant, those that have happened are then the first so many of the row, and what this microbatch
holds is the level after the last of them. Moments of a row may fall on one instant; then the level
between them is never held. So a chain tells what is held at least, and not what is reached.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np

from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem

Moment = tuple[int, bool]  # task, whether at its end
Chain = list[tuple[Moment, int]]  # what happens, in order, and the level (units) after it
Owner = tuple[int, int, int]  # store, stage, slice


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifecycle:
    """What one microbatch holds in one store through the tasks of one (stage, slice).

    ``first`` and ``last`` are classes. At the instant at which its task of ``first`` starts, it
    holds exactly ``acquired``; from then until that of ``last`` ends, ``held`` or more; before and
    after, nothing. ``is_simple``: nothing happens between.
    """

    store: int
    first: int
    last: int
    acquired: int
    held: int
    is_simple: bool


class ForcedOrder:
    """The order of the moments of one microbatch: ``tasks[c]`` is its task of class c."""

    def __init__(self, problem: Problem, tasks: Ints) -> None:
        self.problem, self.tasks = problem, tasks
        self.class_of: dict[int, int] = {task: c for c, task in enumerate(tasks.tolist())}
        self.ticks: dict[int, int] = dict(
            zip(tasks.tolist(), problem.duration[tasks].tolist(), strict=True)
        )

    @cached_property
    def chains(self) -> dict[Owner, Chain | None]:
        """The chain of each (store, stage, slice); None where no one row is forced."""
        events, actions = self.problem.events, self.problem.actions
        changes: dict[Owner, dict[Moment, int]] = {}
        for row in np.flatnonzero(np.isin(events.task, self.tasks)).tolist():
            task, store = int(events.task[row]), int(events.store[row])
            owner = store, int(actions.stage[task]), int(actions.slice[task])
            sums, moment = changes.setdefault(owner, {}), (task, bool(events.at_end[row]))
            sums[moment] = sums.get(moment, 0) + int(events.delta[row])
        return {owner: self._chain(sums) for owner, sums in changes.items()}

    def lifecycle(self, store: int, chain: Chain) -> Lifecycle | None:
        """The chain as a lifecycle, or None where it is no such thing.

        It begins with a start that acquires, *before* anything else happens (at the same instant a
        release could hide it), ends with an end, and returns to 0 then and not before.
        """
        moments, levels = [moment for moment, _ in chain], [level for _, level in chain]
        (first, begins_late), (last, ends_late) = moments[0], moments[-1]
        if begins_late or not ends_late or (self._least_ticks(*moments[:2]) or 0) <= 0:
            return None
        if levels[-1] != 0 or min(levels[:-1]) <= 0:
            return None
        return Lifecycle(
            store=store,
            first=self.class_of[first],
            last=self.class_of[last],
            acquired=levels[0],
            held=min(levels[:-1]),
            is_simple=len(chain) == 2,
        )

    def _chain(self, changes: dict[Moment, int]) -> Chain | None:
        """A forced row is one by earliest times too, where equal ones stand as paths do."""
        if any(task not in self._place for task, _ in changes):
            return None  # a circle of precedences leads there
        moments = sorted(
            changes,
            key=lambda moment: (self._earliest(moment), self._place[moment[0]], moment[1]),
        )
        for moment, following in pairwise(moments):
            ticks = self._least_ticks(moment, following)
            if ticks is None or ticks < 0:
                return None
        levels = np.cumsum([changes[moment] for moment in moments]).tolist()
        return list(zip(moments, levels, strict=True))

    def _shift(self, moment: Moment) -> int:
        return self.ticks[moment[0]] if moment[1] else 0

    def _earliest(self, moment: Moment) -> int:
        return self._heads[moment[0]] + self._shift(moment)

    def _least_ticks(self, first: Moment, later: Moment) -> int | None:
        """The longest path from one moment to the other; None without a path."""
        between = self._paths({first[0]: 0}).get(later[0])
        return None if between is None else between + self._shift(later) - self._shift(first)

    def _paths(self, start: dict[int, int]) -> dict[int, int]:
        """The longest paths from starts that are given; only what they reach is gone over."""
        found, open_ = dict(start), sorted((self._place[task], task) for task in start)
        while open_:
            _, task = heappop(open_)
            for later, ticks in self._after.get(task, ()):
                if later not in found and later in self._place:
                    heappush(open_, (self._place[later], later))
                arrival = found[task] + ticks
                found[later] = max(arrival, found.get(later, arrival))
        return found

    @cached_property
    def _heads(self) -> dict[int, int]:
        return self._paths(dict.fromkeys(self._place, 0))

    @cached_property
    def _after(self) -> dict[int, list[tuple[int, int]]]:
        """From each task to those of its stage and slice that wait for it, start to start."""
        edges, actions = self.problem.edges, self.problem.actions
        inside = np.isin(edges.before, self.tasks) & np.isin(edges.after, self.tasks)
        for column in (actions.stage, actions.slice):
            inside &= column[edges.before] == column[edges.after]
        columns = edges.before[inside], edges.after[inside], edges.lag[inside]
        found: dict[int, list[tuple[int, int]]] = {}
        for before, after, lag in zip(*(column.tolist() for column in columns), strict=True):
            found.setdefault(before, []).append((after, self.ticks[before] + lag))
        return found

    @cached_property
    def _place(self) -> dict[int, int]:
        """The tasks in an order of paths, without those that a circle holds up."""
        waiting = dict.fromkeys(self.ticks, 0)
        for found in self._after.values():
            for later, _ in found:
                waiting[later] += 1
        ready = [task for task, count in waiting.items() if not count]
        for task in ready:
            for later, _ in self._after.get(task, ()):
                waiting[later] -= 1
                if not waiting[later]:
                    ready.append(later)
        return {task: place for place, task in enumerate(ready)}
