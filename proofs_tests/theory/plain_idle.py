"""The causes of idle ticks a second time: tick by tick, in plain Python, from design.md §2 alone.

Nothing is shared with ``theory.idle``: tasks go by their text as in ``verify.spec``, a load is
added up anew at every tick, the moved schedule is compared with the one before the move.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import NamedTuple

from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.verify.spec import plain_problem, plain_schedule


class PlainCause(NamedTuple):
    """The word for the cause, what could have run or runs next, and whom it waits for."""

    word: str
    task: str | None
    other: str | None


class PlainIdle:
    """One schedule that keeps "one at a time", looked at tick by tick."""

    def __init__(self, problem: Problem, schedule: Schedule) -> None:
        self.problem = plain_problem(problem)
        self.names = list(self.problem.duration)
        self.start: dict[str, int] = {}
        for _, task, begin in plain_schedule(schedule).rows:
            if task in self.problem.duration:
                self.start.setdefault(task, begin)
        self.listed = [(resource, task) for resource, task, _ in plain_schedule(schedule).rows]
        self._inputs: dict[str, list[tuple[int, str]]] = {name: [] for name in self.names}
        for giver, taker, lag in self.problem.edges:
            if giver in self.start:
                self._inputs[taker].append((self.end(giver) + lag, giver))
        self._chains: dict[tuple[str, bool], int | None] = {}
        self._of_rank: dict[int, list[str]] = {}

    def end(self, task: str) -> int:
        return self.start[task] + self.problem.duration[task]

    def is_computed(self, task: str) -> bool:
        return any(r < self.problem.num_ranks for r in self.problem.homes[task])

    def of_rank(self, rank: int) -> list[str]:
        """The tasks of a resource by their time, those without length first."""
        if rank not in self._of_rank:
            mine = [task for home, task in dict.fromkeys(self.listed) if home == rank]
            mine = [task for task in mine if task in self.start]
            mine.sort(key=lambda task: (self.start[task], self.end(task)))
            self._of_rank[rank] = mine
        return self._of_rank[rank]

    @cached_property
    def computed(self) -> list[str]:
        return [t for t in self.names if t in self.start and self.is_computed(t)]

    @cached_property
    def span(self) -> range:
        """The ticks between the first start and the last end of all ranks."""
        if not self.computed:
            return range(0)
        return range(
            min(map(self.start.__getitem__, self.computed)), max(map(self.end, self.computed))
        )

    def inputs(self, task: str) -> list[tuple[int, str]]:
        """(arrival, giver) of each input that the schedule has."""
        return self._inputs[task]

    def is_ready(self, task: str, tick: int) -> bool:
        return all(arrival <= tick for arrival, _ in self.inputs(task))

    def holder(self, task: str, tick: int, rank: int) -> str | None:
        """Who holds one of the other resources of a task while it would run."""
        until = tick + self.problem.duration[task]
        for home in sorted(self.problem.homes[task] - {rank}):
            for other in self.of_rank(home):
                if other != task and self.start[other] < until and self.end(other) > tick:
                    return other
        return None

    def load(self, store: int, tick: int, moved: dict[str, int]) -> int:
        """The load of a store at a tick, with some tasks started elsewhere."""
        level = self.problem.stores[store][0]
        for task, at_end, where, delta in self.problem.events:
            if where == store and task in self.start:
                begin = moved.get(task, self.start[task])
                level += delta * (begin + self.problem.duration[task] * at_end <= tick)
        return level

    def first_full(self, task: str, tick: int, moved: dict[str, int]) -> int | None:
        """The first store whose capacity a load exceeds that the move raises."""
        for store, (_, capacity) in enumerate(self.problem.stores):
            if capacity is None or not any(
                t == task and where == store for t, _, where, _ in self.problem.events
            ):
                continue
            for now in range(tick, self.end(task) + 1):
                after = self.load(store, now, {**moved, task: tick})
                if after > capacity and after > self.load(store, now, moved):
                    return store
        return None

    def release(self, store: int, tick: int, task: str) -> str | None:
        """Who gives most of a store back at a tick."""
        given: Counter[str] = Counter()
        for other, at_end, where, delta in self.problem.events:
            if where == store and other in self.start and other != task:
                when = self.end(other) if at_end else self.start[other]
                given[other] -= delta * (when == tick)
        most = max(given.values(), default=0)
        return next((t for t in self.names if most > 0 and given[t] == most), None)

    def chain(self, task: str, *, forward: bool) -> int | None:
        """The longest chain from a computation to a task's start, or from its end to one's end."""
        if (task, forward) in self._chains:
            return self._chains[task, forward]
        found = [0] if self.is_computed(task) else []
        for before, after, lag in self.problem.edges:
            near, far = (after, before) if forward else (before, after)
            if near == task and (rest := self.chain(far, forward=forward)) is not None:
                found.append(rest + self.problem.duration[far] + lag)
        self._chains[task, forward] = max(found, default=None)
        return self._chains[task, forward]

    def waits(self, task: str, tick: int) -> tuple[str, str]:
        """What an input that has not arrived stands at: (word, whom it waits for)."""
        last = max(arrival for arrival, _ in self.inputs(task))
        givers = [giver for arrival, giver in self.inputs(task) if arrival == last]
        giver = next((g for g in givers if not self.is_computed(g)), givers[0])
        if self.end(giver) <= tick:
            return "link", giver
        if self.is_computed(giver):
            return "input", giver
        if self.start[giver] <= tick or self.is_ready(giver, tick):
            return "link", giver
        return self.waits(giver, tick)

    def causes(self, rank: int) -> dict[int, PlainCause]:
        """The cause of each idle tick of a rank."""
        mine, found = self.of_rank(rank), dict[int, PlainCause]()
        busy = {tick for task in mine for tick in range(self.start[task], self.end(task))}
        idle = [tick for tick in self.span if tick not in busy]
        latest = max(self.span, default=0) + 1
        ending = next((t for t in self.computed if self.end(t) == latest), None)
        if not mine:
            return {tick: PlainCause("finished", None, ending) for tick in idle}
        head = min(self.chain(task, forward=True) or 0 for task in mine)
        tail = min(self.chain(task, forward=False) or 0 for task in mine)
        for tick in idle:
            if tick < min(self.start[mine[0]], self.span[0] + head):
                found[tick] = PlainCause("warm-up", mine[0], None)
            elif tick >= max(map(self.end, mine)):
                is_drain = tick >= latest - tail
                other = None if is_drain else ending
                found[tick] = PlainCause("drain" if is_drain else "finished", mine[-1], other)
        for place, task in enumerate(mine):
            before = [tick for tick in idle if tick < self.start[task] and tick not in found]
            if before:
                self._stretch(rank, mine[place:], before, found)
        return found

    def _stretch(
        self, rank: int, coming: list[str], ticks: list[int], found: dict[int, PlainCause]
    ) -> None:
        """The causes of the ticks before the first of the coming tasks."""
        upcoming, end = coming[0], ticks[-1] + 1
        moved, spent, tick = dict[str, int](), set[str](), ticks[0]
        while tick < end:
            could = [
                task
                for task in coming
                if task not in spent
                and self.is_ready(task, tick)
                and self.holder(task, tick, rank) is None
                and (task == upcoming or 0 < self.problem.duration[task] <= end - tick)
            ]
            fits = [task for task in could if self.first_full(task, tick, moved) is None]
            if could:
                task = (fits or could)[0]
                until = end if task == upcoming else tick + self.problem.duration[task]
                cause = PlainCause("order", task, upcoming)
                if fits:
                    moved[task] = tick
                    spent.add(task)
                else:
                    cause, room = self._memory(task, tick, moved)
                    if room >= until:
                        spent.add(task)
                    until = min(until, room)
            else:
                until, holder = tick + 1, self.holder(upcoming, tick, rank)
                if not self.is_ready(upcoming, tick):
                    word, other = self.waits(upcoming, tick)
                    cause = PlainCause(word, upcoming, other)
                else:
                    cause = PlainCause("link", upcoming, holder)
            for now in range(tick, until):
                found[now] = cause
            tick = until

    def _memory(self, task: str, tick: int, moved: dict[str, int]) -> tuple[PlainCause, int]:
        """The cause, and the first tick that has room."""
        room, store = tick, self.first_full(task, tick, moved)
        while store is not None:
            room, full = room + 1, store
            store = self.first_full(task, room, moved) if room < self.start[task] else None
        return PlainCause("memory", task, self.release(full, room, task)), room
