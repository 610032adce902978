"""What one microbatch does to a store, in the order that its precedences force.

A *moment* is the start or the end of a task. The longest path of precedences from one task to
another, durations and lags included, is the least time between their starts; so it says how many
ticks at least lie between two moments. A path of 0 ticks or more *forces* the first moment to be no
later than the second. Nothing else does: neither the kinds of tasks nor their numbers.

The changes of one (stage, slice) of a microbatch on a store form a *chain* where paths among the
tasks of that stage and slice force all their moments into one row. In any schedule and at any
instant, those that have happened are then the first so many of the row, and what this microbatch
holds is the level after the last of them. Moments of a row may fall on one instant; then the level
between them is never held. So a chain tells what is held at least, and not what is reached: where
some changes are over for sure and others may be, the least level in between (``is_too_full``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem

LifecycleMoment = tuple[int, bool]  # task, whether at its end
Chain = list[tuple[LifecycleMoment, int]]  # what happens, in order, and the level (units) after it
Owner = tuple[int, int, int, int]  # store, stage, slice, microbatch
Passed = Callable[
    [LifecycleMoment], tuple[bool, bool]
]  # whether it is over for sure, whether it may be
IMPOSSIBLE = 1 << 64  # units or ticks; all of a problem's add up to less than 2**60


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """What one microbatch holds in one store through the tasks of one (stage, slice).

    At the instant at which its task ``first`` starts, it holds exactly ``acquired``; from then
    until its task ``last`` ends, ``held`` or more; before and after, nothing.
    """

    store: int
    first: int
    last: int
    acquired: int
    held: int


class ForcedOrder:
    """The order of the moments of the microbatches whose ``tasks`` are given."""

    def __init__(self, problem: Problem, tasks: Ints) -> None:
        self.problem, self.tasks = problem, tasks
        self._ticks: list[int] = problem.duration.tolist()

    @cached_property
    def chains(self) -> dict[Owner, Chain | None]:
        """The chain of each owner; None where no one row is forced."""
        events, actions = self.problem.events, self.problem.actions
        changes: dict[Owner, dict[LifecycleMoment, int]] = {}
        for row in np.flatnonzero(np.isin(events.task, self.tasks)).tolist():
            task, store = int(events.task[row]), int(events.store[row])
            stage, microbatch = int(actions.stage[task]), int(actions.microbatch[task])
            owner = store, stage, int(actions.slice[task]), microbatch
            sums, moment = changes.setdefault(owner, {}), (task, bool(events.at_end[row]))
            sums[moment] = sums.get(moment, 0) + int(events.delta[row])
        return {owner: self._chain(sums) for owner, sums in changes.items()}

    def lifecycle(self, store: int, chain: Chain) -> Lifecycle | None:
        """The chain as a lifecycle, or None where it is no such thing.

        It begins with a start that acquires, *before* anything else happens (at the same instant a
        release could hide it), ends with an end, and returns to 0 then and not before.

        Parameters
        ----------
        store
            The number of the store that the chain is of.
        """
        moments, levels = [moment for moment, _ in chain], [level for _, level in chain]
        (first, begins_late), (last, ends_late) = moments[0], moments[-1]
        if begins_late or not ends_late or self._least_ticks(*moments[:2]) <= 0:
            return None
        if levels[-1] != 0 or (held := min(levels[:-1])) <= 0:
            return None
        return Lifecycle(store, first, last, levels[0], held)

    def _chain(self, changes: dict[LifecycleMoment, int]) -> Chain | None:
        """Where the moments are forced into one row, the more are forced before, the later."""
        passed = {
            moment: sum(self._least_ticks(other, moment) >= 0 for other in changes)
            for moment in changes
        }
        moments = sorted(changes, key=lambda moment: (passed[moment], moment[1]))
        if any(self._least_ticks(*two) < 0 for two in pairwise(moments)):
            return None
        levels = np.cumsum([changes[moment] for moment in moments]).tolist()
        return list(zip(moments, levels, strict=True))

    def _least_ticks(self, first: LifecycleMoment, later: LifecycleMoment) -> int:
        """The longest path from one moment to the other; far below 0 where there is none."""
        path = self._paths.get(first[0], {}).get(later[0], -IMPOSSIBLE)
        return path + self._ticks[later[0]] * later[1] - self._ticks[first[0]] * first[1]

    @cached_property
    def _paths(self) -> dict[int, dict[int, int]]:
        """From each task the longest paths to those of its stage, slice and microbatch."""
        edges, actions = self.problem.edges, self.problem.actions
        inside = np.isin(edges.before, self.tasks) & np.isin(edges.after, self.tasks)
        for column in (actions.stage, actions.slice, actions.microbatch):
            inside &= column[edges.before] == column[edges.after]
        before, after = edges.before[inside].tolist(), edges.after[inside].tolist()
        arcs: dict[int, list[tuple[int, int]]] = {}
        for task, later, lag in zip(before, after, edges.lag[inside].tolist(), strict=True):
            arcs.setdefault(task, []).append((later, self._ticks[task] + lag))
        found: dict[int, dict[int, int]] = {}
        for task in reversed(in_order(self.problem.num_tasks, before, after)):
            found[task] = {task: 0}
            for later, ticks in arcs.get(task, ()):
                for end, path in found.get(later, {}).items():
                    found[task][end] = max(ticks + path, found[task].get(end, ticks + path))
        return found


def in_order(num_tasks: int, before: Sequence[int], after: Sequence[int]) -> list[int]:
    """The tasks that no circle of precedences holds up, none before one that it waits for.

    Parameters
    ----------
    num_tasks
        Tasks are 0 to ``num_tasks`` - 1.
    before, after
        The tasks of each precedence, of one length.
    """
    waiting, freed = [0] * num_tasks, [list[int]() for _ in range(num_tasks)]
    for task, later in zip(before, after, strict=True):
        freed[task].append(later)
        waiting[later] += 1
    ready = [task for task in range(num_tasks) if not waiting[task]]
    for task in ready:
        for later in freed[task]:
            waiting[later] -= 1
            if not waiting[later]:
                ready.append(later)
    return ready


def is_too_full(problem: Problem, chains: dict[int, list[Chain]], passed: Passed) -> bool:
    """Whether some store with a capacity must hold more than it."""
    for number, owners in chains.items():
        store = problem.stores[number]
        if store.capacity is not None:
            held = sum(_least_level(chain, passed) for chain in owners)
            if store.base + held > store.capacity:
                return True
    return False


def _least_level(chain: Chain, passed: Passed) -> int:
    """The least level after a prefix of the chain that holds all that is over and may be over.

    ``IMPOSSIBLE`` where something is over that cannot be.
    """
    levels, is_blocked = [0], False
    for moment, level in chain:
        is_over, may_be_over = passed(moment)
        is_blocked = is_blocked or not may_be_over
        if is_over:
            if is_blocked:
                return IMPOSSIBLE
            levels = [level]
        elif not is_blocked:
            levels.append(level)
    return min(levels)
