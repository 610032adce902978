"""The scheduling model as clauses, for objective values up to a limit.

Variables: the start of each task in the order encoding (``sat_clauses``), one boolean per pair of
tasks that both orders are open to, and for every other comparison that a memory asks for. Time 0 is
the first start of a computation, of any for the makespan and of rank 0's for ``span_idle``; each
rank then has a variable for its own first start.

All times are divided by the greatest common divisor g of the durations and lags. For the makespan
that loses nothing: take a schedule of any makespan whose first computation starts at 0 and let
every task start at g floor(start / g). Ends move alike, since durations are multiples of g.
Precedences and orders survive, as floor is monotone and lags are multiples of g. What a store holds
at g k afterwards is what it held right before g (k + 1), so capacities are kept. The last end moves
no later, so the makespan does not grow. For ``span_idle`` g is 1: a rank's first start may move
earlier by more than its last end, and indeed the optimum need not be a multiple of g.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from copy import copy
from itertools import pairwise

import numpy as np

from bubbleproof.solvers.encoding import Encoding, Objective, TaskMoment
from bubbleproof.solvers.engines.engine import UNLIMITED, Budget, LoadModel
from bubbleproof.solvers.engines.sat_clauses import FALSE, TRUE, OrderClauses, TooLargeError
from bubbleproof.solvers.starts import rows
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem

MAX_CLAUSES = 4_000_000  # about 1 GB while a solver takes them in
CLAUSES = 1_000_000  # are a unit of work: they take about a second to write and to take in
MAX_PAIRS = 2_000_000  # of tasks that share a resource

Arc = tuple[int, int, int]  # start(second) >= start(first) + ticks


def tick_size(problem: Problem, objective: Objective) -> int:
    """g, the ticks that one step of the model stands for."""
    if objective != "makespan":
        return 1
    return math.gcd(*problem.duration.tolist(), *problem.edges.lag.tolist()) or 1


class SatModel(LoadModel[int]):
    """Clauses that are satisfiable exactly if some schedule is within ``limit`` (ticks)."""

    def __init__(
        self,
        encoding: Encoding,
        limit: int,
        budget: Budget = UNLIMITED,
        *,
        size: int | None = None,
    ) -> None:
        """``size`` is the ticks of a step, g unless given."""
        super().__init__(encoding)
        users = np.bincount(self.problem.occupancy.resource)
        if int((users * (users - 1) // 2).sum()) > MAX_PAIRS:
            raise TooLargeError
        self.size = size or tick_size(self.problem, encoding.objective)
        self.limit = limit // self.size
        self.duration = (self.problem.duration // self.size).tolist()
        self.longest = -(-int(encoding.horizon) // self.size)
        self.budget, left = budget, (budget.work - budget.meter.units) * CLAUSES
        self.cnf = OrderClauses(
            most=int(min(MAX_CLAUSES, left)), is_over=lambda: not budget.seconds
        )
        self.spans = self._spans()
        low, high = self._windows()
        for least, greatest in zip(low, high, strict=True):
            self.cnf.variable(least, greatest)
        self.encoding = _within(encoding, np.array(low) * self.size, np.array(high) * self.size)
        self.before: dict[tuple[int, int], int] = {}

    def build(self) -> None:
        """Write every family, and count what was written."""
        try:
            super().build()
        finally:
            self.budget.meter.spend(len(self.cnf.clauses) / CLAUSES)

    def _spans(self) -> list[Arc]:
        """Each computation lies within its span, whose first start is a variable of its own."""
        arcs = []
        for number, (tasks, work) in enumerate(self.encoding.spans, start=self.problem.num_tasks):
            length = self.limit + work // self.size
            for task in tasks:
                arcs += [(number, task, 0), (task, number, self.duration[task] - length)]
        return arcs

    def _windows(self) -> tuple[list[int], list[int]]:
        """The least and greatest value of each variable, as the sure paths leave them.

        With no pause in which nothing runs, all starts lie within ``longest`` of time 0.
        """
        count = self.problem.num_tasks
        num_spans = len(self.encoding.spans)
        low, high = [-self.longest] * (count + num_spans), [self.longest] * (count + num_spans)
        low[count] = high[count] = 0
        if self.encoding.starts_at_0:
            low[:count] = (-(-self.encoding.earliest // self.size)).tolist()
            high[:count] = [
                min(latest // self.size, self.limit) for latest in self.encoding.latest.tolist()
            ]
        arcs = [*self._edges(), *self.spans]
        falling = [-value for value in high]
        _raise(low, arcs, falling)
        _raise(falling, [(after, before, ticks) for before, after, ticks in arcs], low)
        return low, [-value for value in falling]

    def _edges(self) -> Iterator[Arc]:
        encoding = self.encoding
        for edges in (encoding.dependencies, encoding.index_order, encoding.memory_edges):
            yield from (self._arc(*row) for row in rows(edges))

    def _arc(self, before: int, after: int, lag: int) -> Arc:
        return before, after, self.duration[before] + lag // self.size

    def precede(self, before: int, after: int, lag: int) -> None:
        """start(after) >= end(before) + lag."""
        self.cnf.differ(*self._arc(before, after, lag))

    def exclude(self, resource: int) -> None:
        """One task at a time on a resource."""
        for a, b in self.encoding.undecided_pairs(resource):
            self.add_pair(a, b)
        self._order_classes(resource)

    def add_pair(self, a: int, b: int) -> None:
        """Either order of two tasks, decided by a boolean where the windows leave both open.

        Parameters
        ----------
        a, b
            Numbers of tasks that share a resource.
        """
        if (a, b) in self.before:
            return
        first, second = self.duration[a], self.duration[b]
        if not self.cnf.can_differ(a, b, first):
            literal = FALSE
        elif not self.cnf.can_differ(b, a, second):
            literal = TRUE
        else:
            literal = self.cnf.boolean()
        self.before[a, b], self.before[b, a] = literal, -literal
        self.cnf.differ(a, b, first, unless=-literal)
        self.cnf.differ(b, a, second, unless=literal)

    def _order_classes(self, resource: int) -> None:
        """What precedes a task that precedes b precedes b: said for neighbours of a class."""
        tasks = set(self.encoding.tasks_on(resource).tolist())
        for row in self.encoding.bounds.order.row_of.values():
            for earlier, later in pairwise(row.tolist()):
                for other in tasks:
                    pairs = self.before.get((later, other)), self.before.get((earlier, other))
                    if pairs[0] is not None and pairs[1] is not None:
                        self.cnf.add([-pairs[0], pairs[1]])

    def add_either(self, truths: list[int]) -> None:
        """At least one of them holds.

        Parameters
        ----------
        truths
            Literals.
        """
        self.cnf.add(truths)

    def add_sum(self, terms: list[tuple[int, int]], most: int) -> None:
        """The weights of those that hold add up to ``most`` or less."""
        self.cnf.add_sum(terms, most)

    def not_after(self, moment: TaskMoment, at: TaskMoment) -> int:
        """The literal that a moment comes no later than another."""
        task, other = moment.task, at.task
        if not at.at_end and self.duration[task] and self.duration[other]:
            known = self.before.get((task, other))
            if known is not None:  # it cannot start by then without having ended
                return known
        shift = self.duration[task] if moment.at_end else 0
        shift -= self.duration[other] if at.at_end else 0
        if self.cnf.must_differ(task, other, shift):
            return TRUE
        if not self.cnf.can_differ(task, other, shift):
            return FALSE
        literal = self.cnf.boolean()
        self.cnf.differ(task, other, shift, unless=-literal)
        self.cnf.differ(other, task, 1 - shift, unless=literal)
        return literal

    def add_horizon(self) -> None:
        """The objective, not above the limit."""
        for arc in self.spans:
            self.cnf.differ(*arc)

    def starts(self, model: list[int]) -> Ints:
        """The start of each task in ticks, the first at 0; ``model`` lists all true literals.

        Parameters
        ----------
        model
            A literal for each variable of the formula, negative where it is false.
        """
        values = self.values(model)
        return np.asarray(values - values.min(), dtype=np.int64)

    def values(self, model: list[int]) -> Ints:
        """The start of each task in ticks as the variables say it.

        Parameters
        ----------
        model
            A literal for each variable of the formula, negative where it is false.
        """
        cnf, values = self.cnf, np.zeros(self.problem.num_tasks, dtype=np.int64)
        holds = np.array([True, *(literal > 0 for literal in model)])
        for task in range(self.problem.num_tasks):
            low, high = cnf.low[task], cnf.high[task]
            first = cnf.base[task] + low
            values[task] = high - int(holds[first : first + high - low].sum())
        return values * self.size


def _within(encoding: Encoding, earliest: Ints, latest: Ints) -> Encoding:
    """The encoding with windows in the time of this model (ticks; more than tasks at the end)."""
    found = copy(encoding)
    found.__dict__.pop("loads", None)
    found.earliest = earliest[: encoding.problem.num_tasks]
    found.latest = latest[: encoding.problem.num_tasks]
    return found


def _raise(value: list[int], arcs: list[Arc], other_end: list[int]) -> None:
    """Longest paths: value[b] >= value[a] + ticks, until done or a window is empty."""
    out: dict[int, list[tuple[int, int]]] = {}
    for before, after, ticks in arcs:
        out.setdefault(before, []).append((after, ticks))
    queue, waiting = deque(out), set(out)
    while queue:
        node = queue.popleft()
        waiting.discard(node)
        for other, ticks in out.get(node, ()):
            if value[other] < value[node] + ticks:
                value[other] = value[node] + ticks
                if value[other] + other_end[other] > 0:
                    return
                if other not in waiting:
                    waiting.add(other)
                    queue.append(other)
