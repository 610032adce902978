"""The truth about small problems with events anywhere: a walk through time over who starts when.

At each tick every set of tasks that may start is tried, and then the loads after all changes of the
tick are compared with 0 and the capacities. All ticks are visited, lags may be negative, events may
stand at any start or end, tasks may take no time. Microbatches, classes and orders of tasks mean
nothing here, and nothing is shared with the package but the columns of the ``Problem``.

What is cut off cannot end in time: a task has a window by the longest paths of precedences from
and to the others, and a resource has work to do. Nor is a state gone on from that was met before at
the same tick or an earlier one: what was in vain then is in vain now, with less time left.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from bubbleproof.theory.model.problem import Problem
from proofs_tests.sized import sized

NO_PATH = -(1 << 40)
NEVER = 1 << 40
MOST_STATES = 100_000
USUAL_STATES = sized(10_000, full=MOST_STATES)  # in sweeps, which go on without what takes more


class TooMuchWork(Exception):  # noqa: N818 - a walk that is given up, not an error of the caller
    """More states than ``most_states``."""


class State(NamedTuple):
    """What the future depends on; lists by task, resource or store are never changed in place.

    ``to_come`` are bits. ``low`` and ``high`` are windows by what has started; ``free`` is when
    each resource is, and ``work`` what is to come there; ``ending`` are the ends whose changes are
    to come, and ``load`` is without them.
    """

    now: int
    to_come: int
    low: list[int]
    high: list[int]
    free: list[int]
    work: list[int]
    ending: tuple[tuple[int, int], ...]
    load: list[int]


class Exhaustive:
    """One problem; ``schedule`` decides one makespan."""

    def __init__(self, problem: Problem, most_states: int = MOST_STATES) -> None:
        self.most_states, self.states = most_states, 0
        self.ticks: list[int] = problem.duration.tolist()
        self.tasks = range(len(self.ticks))
        self.homes: list[list[int]] = [[] for _ in self.tasks]
        occupancy = problem.occupancy
        for task, resource in zip(
            occupancy.task.tolist(), occupancy.resource.tolist(), strict=True
        ):
            self.homes[task].append(resource)
        self.resources = range(len(problem.resources))
        self.users = [
            sum(1 << task for task in self.tasks if r in self.homes[task]) for r in self.resources
        ]
        self.is_rank = [resource.rank is not None for resource in problem.resources]
        self.computes = [any(self.is_rank[r] for r in homes) for homes in self.homes]
        self.stores = [
            (store.base, NEVER if store.capacity is None else store.capacity)
            for store in problem.stores
        ]
        events = problem.events
        self.at_start: list[list[tuple[int, int]]] = [[] for _ in self.tasks]
        self.at_end: list[list[tuple[int, int]]] = [[] for _ in self.tasks]
        for task, at_end, store, delta in zip(
            events.task.tolist(),
            events.at_end.tolist(),
            events.store.tolist(),
            events.delta.tolist(),
            strict=True,
        ):
            (self.at_end if at_end else self.at_start)[task].append((store, delta))
        edges = problem.edges
        rows = zip(edges.before.tolist(), edges.after.tolist(), edges.lag.tolist(), strict=True)
        self.edges = [(before, after, self.ticks[before] + lag) for before, after, lag in rows]
        self._find_paths()
        # In a schedule that cannot be drawn together each tick has a task or a lag under way, and
        # a task waits for one lag.
        waits = [0 for _ in self.tasks]
        for before, after, ticks in self.edges:
            waits[after] = max(waits[after], ticks - self.ticks[before])
        self.longest = sum(self.ticks) + sum(waits)

    def _find_paths(self) -> None:
        """The longest paths, start to start, and with them who comes before whom."""
        tasks = self.tasks
        path = [[0 if a == b else NO_PATH for b in tasks] for a in tasks]
        for before, after, ticks in self.edges:
            path[before][after] = max(path[before][after], ticks)
        for via in tasks:
            for row in path:
                if (reach := row[via]) > NO_PATH:
                    for b, onward in enumerate(path[via]):
                        if onward > NO_PATH and reach + onward > row[b]:
                            row[b] = reach + onward
        self.is_cyclic = any(path[t][t] > 0 for t in tasks)
        self.behind = [
            [(b, path[t][b]) for b in tasks if b != t and path[t][b] > NO_PATH] for t in tasks
        ]
        # Tasks that must have started before this one, and those that may start until then.
        self.sooner = [sum(1 << b for b in tasks if path[b][t] > 0) for t in tasks]
        self.until = [
            [(b, path[b][t]) for b in tasks if b != t and NO_PATH < path[b][t] <= 0] for t in tasks
        ]
        self.path = path

    def optimum(self) -> int | None:
        """The least makespan that some schedule has; None without a schedule."""
        try:
            return self._down_from_a_schedule()
        except TooMuchWork:  # a tight makespan leaves fewer states
            return next((t for t in range(self.longest + 1) if self.schedule(t)), None)

    def _down_from_a_schedule(self) -> int | None:
        """So one makespan alone has to be refuted."""
        least, found = None, self.schedule(self.longest)
        while found is not None:
            ends = [begin + ticks for begin, ticks in zip(found, self.ticks, strict=True)]
            last = [end for end, computes in zip(ends, self.computes, strict=True) if computes]
            least = max(last, default=0)
            found = self.schedule(least - 1)
        return least

    def schedule(self, limit: int) -> tuple[int, ...] | None:
        """Starts of a schedule with a makespan of at most ``limit`` ticks, or None.

        Computations lie within 0 and ``limit``; other tasks may lie before and after.
        """
        if self.is_cyclic or limit < 0 or any(base > most for base, most in self.stores):
            return None
        margin = 0 if all(self.computes) else self.longest
        begin = [0 if computes else -margin for computes in self.computes]
        end = [limit if computes else limit + margin for computes in self.computes]
        low = [max(begin[t] + self.path[t][task] for t in self.tasks) for task in self.tasks]
        self.latest = [
            min(end[t] - self.ticks[t] - self.path[task][t] for t in self.tasks)
            for task in self.tasks
        ]
        self.closing = [limit if is_rank else limit + margin for is_rank in self.is_rank]
        if any(a > b for a, b in zip(low, self.latest, strict=True)):
            return None
        self.begun = [0 for _ in self.tasks]
        self.seen: dict[tuple[object, ...], int] = {}
        work = [0 for _ in self.resources]
        for task, homes in enumerate(self.homes):
            for home in homes:
                work[home] += self.ticks[task]
        self.order = sorted(self.tasks, key=lambda task: self.ticks[task] > 0)
        first = State(
            now=-margin,
            to_come=(1 << len(self.tasks)) - 1,
            low=low,
            high=[NEVER] * len(low),
            free=[-margin] * len(work),
            work=work,
            ending=(),
            load=[b for b, _ in self.stores],
        )
        return tuple(self.begun) if self._visit(first) else None

    def _visit(self, state: State) -> bool:
        """Whether a schedule goes on from this tick; its starts are then in ``begun``."""
        now, to_come, low, high, free, _, ending, _ = state
        users = self.users  # also those that take no time wait for the end of another
        if not to_come and not ending:
            return True
        tasks = [task for task in self.order if to_come >> task & 1]
        for task in tasks:
            latest = self.latest[task]
            if latest < now or latest < low[task] or high[task] < now:
                return False
        key = (
            to_come,
            tuple([low[task] - now if low[task] > now else 0 for task in tasks]),
            tuple([high[task] - now if high[task] < NEVER else NEVER for task in tasks]),
            tuple(
                [
                    free[r] - now if free[r] > now else 0
                    for r in self.resources
                    if users[r] & to_come
                ]
            ),
            tuple([(end - now, task) for end, task in ending]),
        )
        if self.seen.get(key, NEVER) <= now:
            return False
        self.seen[key] = now
        self.states += 1
        if self.states > self.most_states:
            raise TooMuchWork
        return self._choose(state, tasks, 0)

    def _choose(self, state: State, tasks: list[int], place: int) -> bool:
        """Start any of the tasks from ``place`` on, instants first; then let the tick pass."""
        for at in range(place, len(tasks)):
            task = tasks[at]
            if state.low[task] > state.now or state.to_come & self.sooner[task]:
                continue
            if any(state.free[home] > state.now for home in self.homes[task]):
                continue
            if self._choose(self._with(state, task), tasks, at + 1):
                self.begun[task] = state.now
                return True
        return self._pass(state)

    def _with(self, state: State, task: int) -> State:
        """The state after the task has started."""
        now, to_come, low, high, free, work, ending, load = state
        low, high, free, work = low.copy(), high.copy(), free.copy(), work.copy()
        for later, path in self.behind[task]:
            low[later] = max(low[later], now + path)
        for earlier, path in self.until[task]:
            high[earlier] = min(high[earlier], now - path)
        for home in self.homes[task]:
            free[home] = now + self.ticks[task]
            work[home] -= self.ticks[task]
        if self.at_start[task]:
            load = load.copy()
            for store, delta in self.at_start[task]:
                load[store] += delta
        if self.at_end[task]:
            ending = tuple(sorted((*ending, (now + self.ticks[task], task))))
        return State(now, to_come & ~(1 << task), low, high, free, work, ending, load)

    def _pass(self, state: State) -> bool:
        """Go on to the next tick, if this one leaves every store within its limits."""
        now, to_come, low, high, free, work, ending, load = state
        if ending and ending[0][0] <= now:
            load = load.copy()
            for end, task in ending:
                if end <= now:
                    for store, delta in self.at_end[task]:
                        load[store] += delta
            ending = tuple([row for row in ending if row[0] > now])
        for held, (_, most) in zip(load, self.stores, strict=True):
            if not 0 <= held <= most:
                return False
        now += 1
        for resource in self.resources:
            if work[resource]:
                begin = free[resource] if free[resource] > now else now
                if begin + work[resource] > self.closing[resource]:
                    return False
        return self._visit(State(now, to_come, low, high, free, work, ending, load))


def obeys(problem: Problem, start: Sequence[int]) -> bool:
    """Whether starts (ticks per task) keep every rule, instant by instant."""
    walk = Exhaustive(problem)
    end = [begin + ticks for begin, ticks in zip(start, walk.ticks, strict=True)]
    if any(start[after] < start[before] + ticks for before, after, ticks in walk.edges):
        return False
    for resource in walk.resources:
        rows = sorted((start[t], end[t]) for t in walk.tasks if resource in walk.homes[t])
        if any(later[0] < earlier[1] for earlier, later in pairwise(rows)):
            return False
    moments = {instant for task in walk.tasks for instant in (start[task], end[task])}
    for instant in [min(moments) - 1, *moments]:
        load = [base for base, _ in walk.stores]
        for times, changes in ((start, walk.at_start), (end, walk.at_end)):
            for task in walk.tasks:
                for store, delta in changes[task] if times[task] <= instant else ():
                    load[store] += delta
        if any(not 0 <= held <= most for held, (_, most) in zip(load, walk.stores, strict=True)):
            return False
    return True
