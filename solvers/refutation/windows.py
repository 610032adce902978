"""Start windows that shrink by deductions, each with its reasons.

Time 0 is the first start of a computation of the anchored span; the objective is supposed to be at
most ``limit`` ticks. Every change of a window and every order learnt is an *event* that knows the
events it follows from and the certificate steps that establish it. Once a window is empty, the
events behind it give the proof, and nothing else of the search enters it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np

from bubbleproof.solvers.bounds import Bounds
from bubbleproof.solvers.starts import rows
from bubbleproof.theory.model.actions import Bools
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.timing import in_order, successors
from bubbleproof.verify.certificates.certificate import Lemma

UNKNOWN = -(1 << 61)  # no path gives this bound
GIVEN = -1  # the event behind whatever holds from the beginning

Path = tuple[int, int, int]  # to which node, after how many ticks, by which event


@dataclass(frozen=True, slots=True)
class Event:
    """Something deduced: from which earlier events, by which steps of a certificate."""

    reasons: tuple[int, ...]
    steps: tuple[Lemma, ...] = ()


@dataclass(slots=True)
class _Supposition:
    event: int
    pair: tuple[int, int]
    changes: list[tuple[int, int, int, int]] = field(default_factory=list)
    learnt: list[tuple[int, int]] = field(default_factory=list)


class Windows:
    """Windows for an objective of at most ``limit``.

    ``bounds[0]`` are earliest starts and ``bounds[1]`` negated latest ends, per task and then per
    span; time reversal swaps the two. ``prior[b, a]``: a is known to end by the start of b.
    """

    def __init__(
        self, problem: Problem, given: Bounds, limit: int, *, span: int | None = None
    ) -> None:
        self.problem = problem
        num_tasks, num_ranks = problem.num_tasks, problem.num_ranks
        self.num_tasks = num_tasks
        self.ticks: list[int] = problem.duration.tolist() + [0] * num_ranks
        nodes = len(self.ticks)
        self.bounds: tuple[list[int], list[int]] = ([UNKNOWN] * nodes, [UNKNOWN] * nodes)
        self.causes: tuple[list[int], list[int]] = ([GIVEN] * nodes, [GIVEN] * nodes)
        self.paths: tuple[list[list[Path]], list[list[Path]]] = (
            [[] for _ in range(nodes)],
            [[] for _ in range(nodes)],
        )
        self.events: list[Event] = []
        self.failure: Event | None = None
        self.suppositions: list[_Supposition] = []
        self.changed: set[int] = set()
        self.pending: tuple[list[int], list[int]] = ([], [])
        self.prior, rank = _closure(problem, given)
        self.rank = (rank, [-place for place in rank])  # the order in which to follow paths
        self.prior_event: dict[tuple[int, int], int] = {}
        edges = given.edges
        for before, after, lag in rows(edges):
            self._add_path(before, after, self.ticks[before] + lag, GIVEN)
        self._add_spans(limit, span)
        origin = num_tasks + (span or 0)
        for way in (0, 1):
            self.bounds[way][origin], self.causes[way][origin] = 0, self._event(())
            self.pending[way].append(origin)
        self.flush()
        self.causes = ([GIVEN] * nodes, [GIVEN] * nodes)
        self.changed = set(range(num_tasks))

    def _add_spans(self, limit: int, span: int | None) -> None:
        occupancy = self.problem.occupancy
        compute = occupancy.resource < self.problem.num_ranks
        rows = list(
            zip(occupancy.task[compute].tolist(), occupancy.resource[compute].tolist(), strict=True)
        )
        length = [limit] * self.problem.num_ranks
        for task, rank in rows:
            length[rank] += 0 if span is None else self.ticks[task]
        for task, rank in rows:
            node = self.num_tasks + (0 if span is None else rank)
            self._add_path(node, task, 0, GIVEN)
            self._add_path(task, node, self.ticks[task] - length[rank], GIVEN)

    def _add_path(self, before: int, after: int, ticks: int, event: int) -> None:
        back = ticks + self.ticks[after] - self.ticks[before]
        self.paths[0][before].append((after, ticks, event))
        self.paths[1][after].append((before, back, event))

    def deduce(self, reasons: Iterable[int], *steps: Lemma) -> int:
        """The event of steps that follow from earlier events.

        Parameters
        ----------
        reasons
            Earlier events.
        """
        return self._event(tuple(set(reasons)), steps)

    def at_least(self, way: int, task: int, value: int, **proof: Any) -> Lemma:
        """The lemma that the near end of the task's window is ``value`` or more.

        Parameters
        ----------
        way
            0 for the earliest start, 1 for the latest end, negated.
        task
            The task's index.
        value
            Ticks.
        """
        literal = ("<=", task, -value - self.ticks[task]) if way else (">=", task, value)
        return Lemma(literals=(literal,), **proof)

    def raise_(self, way: int, task: int, value: int, event: int) -> None:
        """By the event, the near end of the task's window is ``value`` or more.

        Parameters
        ----------
        way
            0 for the earliest start, 1 for the latest end, negated.
        task
            The task's index.
        value
            Ticks.
        event
            What it follows from.
        """
        if self.failure is None and value > self.bounds[way][task]:
            self._set(way, task, value, (event,))
            self.pending[way].append(task)

    def learn(self, before: int, after: int, event: int) -> None:
        """By the event, ``before`` ends by the start of ``after``.

        Parameters
        ----------
        before, after
            Indices of tasks.
        event
            What it follows from.
        """
        if self.failure is not None or self.prior[after, before]:
            return
        self.prior[after, before] = True
        self.prior_event[before, after] = event
        if self.suppositions:
            self.suppositions[-1].learnt.append((before, after))
        self._add_path(before, after, self.ticks[before], event)
        self.changed |= {before, after}
        self.pending[0].append(before)
        self.pending[1].append(after)

    def _event(self, reasons: tuple[int, ...], steps: tuple[Lemma, ...] = ()) -> int:
        self.events.append(Event(reasons, steps))
        return len(self.events) - 1

    def _set(self, way: int, node: int, value: int, reasons: tuple[int, ...]) -> None:
        near, cause = self.bounds[way], self.causes[way]
        if self.suppositions:
            self.suppositions[-1].changes.append((way, node, near[node], cause[node]))
        near[node], cause[node] = value, self._event(reasons)
        self.changed.add(node)
        far = self.bounds[1 - way][node]
        if far != UNKNOWN and value + self.ticks[node] + far > 0:
            self.failure = Event((cause[node], self.causes[1 - way][node]))

    def flush(self) -> None:
        """Follow the paths from all that changed since the last time."""
        for way in (0, 1):
            nodes = set(self.pending[way])
            self.pending[way].clear()
            self._follow(way, nodes)

    def _follow(self, way: int, nodes: set[int]) -> None:
        """Longest paths onward, in the order of paths; one in a circle has no end, and fails."""
        near, cause, paths = self.bounds[way], self.causes[way], self.paths[way]
        rank, hops = self.rank[way], dict.fromkeys(nodes, 0)
        nodes = {node for node in nodes if near[node] != UNKNOWN}
        queue = [(rank[node], node) for node in nodes]
        heapify(queue)
        while queue and self.failure is None:
            _, node = heappop(queue)
            nodes.discard(node)
            begun = near[node]
            for other, ticks, event in paths[node]:
                if begun + ticks > near[other]:
                    self._set(way, other, begun + ticks, (cause[node], event))
                    hops[other] = hops[node] + 1
                    if hops[other] > len(near):
                        self.failure = Event((cause[other],))
                    if self.failure is not None:
                        return
                    if other not in nodes:
                        nodes.add(other)
                        heappush(queue, (rank[other], other))

    def suppose(self, before: int, after: int) -> None:
        """Try the order; ``retract`` or ``refute`` ends it.

        Parameters
        ----------
        before, after
            Indices of tasks.
        """
        event = self._event(())
        self.suppositions.append(_Supposition(event, (before, after)))
        self.learn(before, after, event)

    def retract(self) -> Event | None:
        """Undo the last supposition; the failure it led to, if any."""
        undone, failure = self.suppositions.pop(), self.failure
        for way, node, value, cause in reversed(undone.changes):
            self.bounds[way][node], self.causes[way][node] = value, cause
        for before, after in reversed(undone.learnt):
            self.paths[0][before].pop()
            self.paths[1][after].pop()
            self.prior[after, before] = False
            del self.prior_event[before, after]
        self.failure = None
        self.changed.clear()
        for waiting in self.pending:
            waiting.clear()
        return failure

    def refute(self, failure: Event) -> None:
        """The last supposition led to ``failure``: undo it, and learn the reverse or pass it on."""
        event, (before, after) = self.suppositions[-1].event, self.suppositions[-1].pair
        steps, outside = self.explain(failure, event)
        self.retract()
        del self.events[event:]
        if event not in outside:
            self.failure = Event(tuple(sorted(outside)), steps)
            return
        opened = Lemma(rule="suppose", literals=(("<", before, after),))
        closed = Lemma(rule="absurd")
        reasons = tuple(sorted(outside - {event}))
        self.learn(after, before, self._event(reasons, (opened, *steps, closed)))

    def explain(self, failure: Event, since: int) -> tuple[tuple[Lemma, ...], set[int]]:
        """The steps after event ``since`` that the failure needs, and the events up to it.

        Parameters
        ----------
        since
            An event; those up to it are not explained.
        """
        needed, outside, open_ = set(), set(), list(failure.reasons)
        while open_:
            event = open_.pop()
            if event <= since:
                outside.add(event)
            elif event not in needed:
                needed.add(event)
                open_ += self.events[event].reasons
        steps = [step for event in sorted(needed) for step in self.events[event].steps]
        return (*steps, *failure.steps), outside - {GIVEN}

    def proof(self, failure: Event) -> tuple[Lemma, ...]:
        """The steps of a certificate that no schedule exists, from the failure that shows it."""
        return self.explain(failure, GIVEN)[0]


def _closure(problem: Problem, given: Bounds) -> tuple[Bools, list[int]]:
    """prior[b, a]: a path of non-negative lags leads from a to b; and a topological place per node.

    The nodes of spans come after the tasks and have place 0.
    """
    place = [0] * (problem.num_tasks + problem.num_ranks)
    prior = np.zeros((problem.num_tasks, problem.num_tasks), dtype=np.bool_)
    edges = given.edges
    order, first = successors(problem.num_tasks, edges.before)
    tasks = in_order(problem.num_tasks, edges.before, edges.after)
    for done, task in enumerate(tasks or (), start=1):
        place[task] = done
        for edge in order[first[task] : first[task + 1]].tolist():
            after = int(edges.after[edge])
            if edges.lag[edge] >= 0:
                prior[after] |= prior[task]
                prior[after, task] = True
    return prior, place
