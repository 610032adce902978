"""The ground truth for tiny problems: exhaustive search over who starts when.

Time walks forward. At each instant the search either starts a task whose inputs have arrived and
whose resources are free, or lets time go on; before it does, the loads after all changes of the
instant are compared with the capacities. So every schedule is tried whose starts lie on the
instants visited, cut only by the shortest one so far and by states met before. Nothing is assumed
about microbatches or orders, and nothing is shared with ``solvers``, ``verify`` or
``theory.pipelines.timing`` but the ``Problem`` itself.

``every_tick=True`` visits every tick, which misses nothing (the data are integers). Otherwise time
jumps to the next end of a task or arrival of an input. That is enough when all tasks are
computations, acquire when they start and release when they end: in any schedule such a task can be
moved earlier until an input, a resource or a release stops it, and all of these happen at an end
or an arrival. For span_idle every tick is visited: there, starting late can be better.
"""

from __future__ import annotations

from dataclasses import dataclass

from bubbleproof.theory.model.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The least makespan in ticks and a start per task that attains it."""

    makespan: int
    start: tuple[int, ...]


def brute_force(
    problem: Problem, *, every_tick: bool = False, most: int | None = None
) -> Best | None:
    """The best schedule with a makespan of at most ``most`` (ticks), or None if there is none.

    Preconditions: about twelve tasks of a few ticks; lags of 0 or more and no cycle.
    """
    return _Search(problem, every_tick, most).run()


def least_span_idle(problem: Problem, *, most: int | None = None) -> int | None:
    """The least max over ranks of (rank_span - work) up to ``most`` ticks, or None.

    Preconditions: as for ``brute_force``; without a tight ``most``, about ten tasks.
    """
    best = _SpanSearch(problem, every_tick=True, most=most).run()
    return None if best is None else best.makespan


class _Search:
    def __init__(self, problem: Problem, every_tick: bool, most: int | None) -> None:
        self.every_tick = every_tick
        self.count = problem.num_tasks
        self.ticks = [int(d) for d in problem.duration]
        self.homes: list[list[int]] = [[] for _ in range(self.count)]
        for task, resource in zip(
            problem.occupancy.task.tolist(), problem.occupancy.resource.tolist(), strict=True
        ):
            self.homes[task].append(resource)
        self.num_resources = len(problem.resources)
        self.num_ranks = sum(resource.rank is not None for resource in problem.resources)
        self.computes = [any(r < self.num_ranks for r in homes) for homes in self.homes]
        self.inputs: list[list[tuple[int, int]]] = [[] for _ in range(self.count)]
        edges = problem.edges
        for before, after, lag in zip(
            edges.before.tolist(), edges.after.tolist(), edges.lag.tolist(), strict=True
        ):
            self.inputs[after].append((before, lag))
        self.stores = [(store.base, store.capacity) for store in problem.stores]
        events = problem.events
        self.changes = list(
            zip(
                events.task.tolist(),
                events.at_end.tolist(),
                events.store.tolist(),
                events.delta.tolist(),
                strict=True,
            )
        )
        # Without a pause in which nothing runs and nothing is under way, no schedule is longer.
        self.horizon = sum(self.ticks) + sum(max(0, lag) for lag in edges.lag.tolist())
        self.limit = self.horizon if most is None else most
        self.outputs: list[list[tuple[int, int]]] = [[] for _ in range(self.count)]
        for after, into in enumerate(self.inputs):
            for before, lag in into:
                self.outputs[before].append((after, lag))
        self.longest_lag = [max((lag for _, lag in out), default=0) for out in self.outputs]
        self.remaining = [self.path(task) for task in range(self.count)]
        self.best: Best | None = None
        self.seen: set[tuple[int, ...]] = set()

    def run(self) -> Best | None:
        if all(capacity is None or base <= capacity for base, capacity in self.stores):
            self.visit(0, {})
        return self.best

    def visit(self, now: int, start: dict[int, int]) -> None:
        state = self.state(now, start)
        if state in self.seen or self.is_too_long(now, start):
            return
        self.seen.add(state)
        for task in range(self.count):
            if task not in start and self.may_start(task, now, start):
                self.visit(now, start | {task: now})
        if not self.fits(now, start):
            return
        if len(start) == self.count:
            self.finish(start)
        elif (later := self.next_instant(now, start)) is not None:
            self.visit(later, start)

    def state(self, now: int, start: dict[int, int]) -> tuple[int, ...]:
        """All that the future depends on: -2 for a task to come, -1 for one that is over."""
        begun = [t for t in start if self.computes[t]]
        first = min((start[t] for t in begun), default=-1)
        last = max((start[t] + self.ticks[t] for t in begun), default=-1)
        pending = (
            -2
            if task not in start
            else start[task]
            if start[task] + self.ticks[task] + self.longest_lag[task] > now
            else -1
            for task in range(self.count)
        )
        return (now, first, last, *pending)

    def path(self, task: int) -> int:
        """Ticks from the start of a task to the last end of a computation that must follow it."""
        after = [lag + self.path(later) for later, lag in self.outputs[task]]
        return self.ticks[task] + max([0 if self.computes[task] else -self.horizon, *after])

    def may_start(self, task: int, now: int, start: dict[int, int]) -> bool:
        for before, lag in self.inputs[task]:
            if before not in start or now < start[before] + self.ticks[before] + lag:
                return False
        running = (t for t in start if start[t] + self.ticks[t] > now)
        return not any(set(self.homes[t]) & set(self.homes[task]) for t in running)

    def fits(self, now: int, start: dict[int, int]) -> bool:
        """Whether the loads after all changes up to ``now`` are within 0 and the capacities."""
        load = [base for base, _ in self.stores]
        for task, at_end, store, delta in self.changes:
            if task in start and start[task] + (self.ticks[task] if at_end else 0) <= now:
                load[store] += delta
        return all(
            held >= 0 and (capacity is None or held <= capacity)
            for held, (_, capacity) in zip(load, self.stores, strict=True)
        )

    def next_instant(self, now: int, start: dict[int, int]) -> int | None:
        if self.every_tick:
            return now + 1 if start and now < self.horizon else None  # the first start is at 0
        ends = {task: begin + self.ticks[task] for task, begin in start.items()}
        arrivals = {ends[b] + lag for into in self.inputs for b, lag in into if b in ends}
        return min((t for t in arrivals | set(ends.values()) if t > now), default=None)

    def is_too_long(self, now: int, start: dict[int, int]) -> bool:
        """Whether every completion is longer than allowed, or no shorter than the best.

        What is still to come starts now at the earliest, is followed by what waits for it, and a
        rank does one thing at a time.
        """
        begun = [t for t in start if self.computes[t]]
        first = min((start[t] for t in begun), default=self.horizon)
        last = max((start[t] + self.ticks[t] for t in begun), default=0)
        ready = [now] * self.num_resources
        for task, begin in start.items():
            for resource in self.homes[task]:
                ready[resource] = max(ready[resource], begin + self.ticks[task])
        for task in range(self.count):
            if task not in start:
                for resource in self.homes[task]:
                    ready[resource] += self.ticks[task]
                last = max(last, now + self.remaining[task])
        last = max([last, *ready[: self.num_ranks]]) if begun else last
        return last - first > self.allowed

    @property
    def allowed(self) -> int:
        """The largest value of interest."""
        return self.limit if self.best is None else min(self.limit, self.best.makespan - 1)

    def finish(self, start: dict[int, int]) -> None:
        if not self.all_settles(start):
            return
        compute = [t for t in range(self.count) if self.computes[t]]
        first = min((start[t] for t in compute), default=0)
        last = max((start[t] + self.ticks[t] for t in compute), default=0)
        if last - first <= self.limit and (self.best is None or last - first < self.best.makespan):
            self.best = Best(
                makespan=last - first, start=tuple(start[t] for t in range(self.count))
            )

    def all_settles(self, start: dict[int, int]) -> bool:
        """Whether the loads also fit at the ends that are still to come."""
        ends = {start[t] + self.ticks[t] for t in start}
        return all(self.fits(instant, start) for instant in ends)


class _SpanSearch(_Search):
    """The same walk for span_idle, whose value stands in ``Best.makespan``."""

    def spans(self, start: dict[int, int]) -> list[tuple[int, int]]:
        """The first start and the last end of each rank's tasks so far; (-1, -1) without any."""
        found = []
        for rank in range(self.num_ranks):
            begun = [t for t in start if rank in self.homes[t]]
            first = min((start[t] for t in begun), default=-1)
            found.append((first, max((start[t] + self.ticks[t] for t in begun), default=-1)))
        return found

    def state(self, now: int, start: dict[int, int]) -> tuple[int, ...]:
        spans = (moment for span in self.spans(start) for moment in span)
        return (*super().state(now, start), *spans)

    def idle(self, start: dict[int, int], now: int) -> int:
        """The most idle time of a rank, if what is to come there starts now and without a pause."""
        most = 0
        for rank, (first, last) in enumerate(self.spans(start)):
            here = [t for t in range(self.count) if rank in self.homes[t]]
            to_come = sum(self.ticks[t] for t in here if t not in start)
            end = max(last, now + to_come) if any(t not in start for t in here) else last
            most = max(most, end - first - sum(self.ticks[t] for t in here) if first >= 0 else 0)
        return most

    def is_too_long(self, now: int, start: dict[int, int]) -> bool:
        return self.idle(start, now) > self.allowed

    def finish(self, start: dict[int, int]) -> None:
        if self.all_settles(start) and self.idle(start, 0) <= self.allowed:
            begun = tuple(start[t] for t in range(self.count))
            self.best = Best(makespan=self.idle(start, 0), start=begun)
