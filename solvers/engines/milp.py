"""A mixed-integer program of an encoding, built with PuLP: the disjunctive formulation.

An integer start per task and a 0-1 variable per undecided pair. Of two tasks a and b of one
resource either ``start(b) >= end(a)`` or ``start(a) >= end(b)``; the variable of the pair chooses,
and the other inequality is relaxed by an M no larger than the two start windows need. Memory beyond
its edges asks whether a moment is not after another: another 0-1 variable, or that of the pair
where the two tasks share a resource (then one ends first).

Numbers reach a MIP solver as floats, and what it calls 1 may be 1 - 1e-6. Two things keep that out
of the results. Every start is an integer variable, so that a slack below one tick disappears in
rounding; and beyond ``TRUSTED_HORIZON`` ticks, where a big M can turn that tolerance into a tick,
the engine claims no bound. A schedule goes through the checker in any case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bubbleproof.solvers.encoding import Encoding, TaskMoment
from bubbleproof.solvers.engines.engine import UNLIMITED, Budget, LoadModel
from bubbleproof.solvers.engines.pulp_alone import pulp
from bubbleproof.theory.model.actions import Ints

TRUSTED_HORIZON = 100_000  # ticks: times the solvers' integrality tolerance of 1e-6, a tenth

Term = tuple[int, pulp.LpVariable]
Indicator = tuple[int, pulp.LpVariable]  # holds where the variable has the value
Values = Mapping[pulp.LpVariable, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class MilpSolution:
    """What a MIP solver says: ``values`` of its best solution, if any, and its dual ``bound``."""

    values: Mapping[pulp.LpVariable, float] | None = None
    is_infeasible: bool = False
    bound: float | None = None


class MilpModel(LoadModel[Indicator]):
    """Minimise the objective; rows say ``sum of coefficient * variable >= least``."""

    def __init__(self, encoding: Encoding, budget: Budget = UNLIMITED) -> None:
        super().__init__(encoding)
        self.budget = budget
        self.program = pulp.LpProblem("schedule", pulp.LpMinimize)
        self.earliest: list[int] = encoding.earliest.tolist()
        self.latest: list[int] = encoding.latest.tolist()
        least = min(encoding.least, encoding.limit)
        self.goal = self.integer("goal", least, encoding.limit)
        self.program.setObjective(pulp.LpAffineExpression({self.goal: 1}))
        self.start = [
            self.integer(f"s{task}", low, max(low, high))
            for task, (low, high) in enumerate(zip(self.earliest, self.latest, strict=True))
        ]
        self.firsts: list[tuple[pulp.LpVariable, list[int]]] = []
        self.pairs: dict[tuple[int, int], pulp.LpVariable] = {}  # 1: the first task comes first
        self.moments: dict[tuple[TaskMoment, TaskMoment], pulp.LpVariable] = {}  # 1: not after

    def integer(self, name: str, low: int, high: int) -> pulp.LpVariable:
        """A new integer variable.

        Parameters
        ----------
        name
            Of the variable.
        low, high
            Its least and greatest value.
        """
        return self.program.add_variable(name, low, high, cat=pulp.LpInteger)

    def require(self, terms: Iterable[Term], least: int) -> None:
        """A row; a variable may stand in it several times.

        Parameters
        ----------
        least
            What the terms add up to at least.
        """
        self.budget.require()
        row: dict[pulp.LpVariable, int] = {}
        for coefficient, variable in terms:
            row[variable] = row.get(variable, 0) + coefficient
        row = {variable: coefficient for variable, coefficient in row.items() if coefficient}
        if not row and least > 0:  # an empty row would be dropped on the way to the solver
            row, least = {self.goal: 1}, self.encoding.limit + 1
        expression = pulp.LpAffineExpression(row)
        self.program.addConstraint(
            pulp.LpConstraint(expression, sense=pulp.LpConstraintGE, rhs=least)
        )

    def precede(self, before: int, after: int, lag: int) -> None:
        """start(after) >= end(before) + lag."""
        self.require(
            [(1, self.start[after]), (-1, self.start[before])], self.duration[before] + lag
        )

    def exclude(self, resource: int) -> None:
        """One task at a time on a resource."""
        for a, b in self.encoding.undecided_pairs(resource):
            if (a, b) not in self.pairs:
                first = self.integer(f"o{a}_{b}", 0, 1)
                self.pairs[a, b] = first
                self._apart(TaskMoment(a, True), TaskMoment(b, False), 0, (1, first))
                self._apart(TaskMoment(b, True), TaskMoment(a, False), 0, (0, first))

    def _apart(
        self, earlier: TaskMoment, later: TaskMoment, ticks: int, when: tuple[int, pulp.LpVariable]
    ) -> None:
        """later >= earlier + ticks where the variable has the given value."""
        value, variable = when
        shift = [self.duration[m.task] if m.at_end else 0 for m in (earlier, later)]
        least = shift[0] - shift[1] + ticks
        gap = [(1, self.start[later.task]), (-1, self.start[earlier.task])]
        relaxed = least - (self.earliest[later.task] - self.latest[earlier.task])
        if relaxed <= 0:
            return
        if value:
            self.require([*gap, (-relaxed, variable)], least - relaxed)
        else:
            self.require([*gap, (relaxed, variable)], least)

    def add_either(self, truths: list[Indicator]) -> None:
        """At least one of them holds."""
        self.add_sum([(literal, -1) for literal in truths], -1)

    def add_sum(self, terms: list[tuple[Indicator, int]], most: int) -> None:
        """The weights of those that hold add up to ``most`` or less."""
        row, least = [], -most
        for (value, variable), weight in terms:
            row.append((-weight if value else weight, variable))
            least += 0 if value else weight
        self.require(row, least)

    def not_after(self, moment: TaskMoment, at: TaskMoment) -> Indicator:
        """Whether a moment comes no later than another."""
        if self._is_order(moment, at):
            if (moment.task, at.task) in self.pairs:
                return 1, self.pairs[moment.task, at.task]
            if (at.task, moment.task) in self.pairs:
                return 0, self.pairs[at.task, moment.task]
        if (moment, at) not in self.moments:
            variable = self.integer(f"m{len(self.moments)}", 0, 1)
            self.moments[moment, at] = variable
            self._apart(moment, at, 0, (1, variable))
            self._apart(at, moment, 1, (0, variable))
        return 1, self.moments[moment, at]

    def _is_order(self, moment: TaskMoment, at: TaskMoment) -> bool:
        """Whether tasks that exclude each other make it the question which comes first."""
        ticks, other = self.duration[moment.task], self.duration[at.task]
        if at.at_end:
            return moment.at_end and ticks > 0
        return other > 0 or (moment.at_end and ticks > 0)

    def add_horizon(self) -> None:
        """The objective, last end - first start - work of each span, not above the limit."""
        for tasks, work in self.encoding.spans:
            first = [] if self.encoding.starts_at_0 else self._first(tasks)
            for task in tasks:
                row = [(1, self.goal), (-1, self.start[task]), *first]
                self.require(row, self.duration[task] - work)

    def _first(self, tasks: list[int]) -> list[Term]:
        """A variable that is not above the start of any of the tasks."""
        if not tasks:
            return []
        low = min(self.earliest[task] for task in tasks)
        high = min(self.latest[task] for task in tasks)
        first = self.integer(f"first{len(self.firsts)}", low, max(low, high))
        self.firsts.append((first, tasks))
        for task in tasks:
            self.require([(1, self.start[task]), (-1, first)], 0)
        return [(1, first)]

    def values_of(self, start: Ints, value: int) -> Values:
        """Every variable's value in a schedule (ticks per task) of that objective value.

        Parameters
        ----------
        start
            One start a task.
        value
            Of the objective.
        """
        begin: list[int] = start.tolist()

        def time(moment: TaskMoment) -> int:
            return begin[moment.task] + (self.duration[moment.task] if moment.at_end else 0)

        found = {self.goal: value} | dict(zip(self.start, begin, strict=True))
        found |= {first: min(begin[task] for task in tasks) for first, tasks in self.firsts}
        for (a, b), first in self.pairs.items():
            found[first] = int(time(TaskMoment(a, True)) <= begin[b])
        for (moment, at), literal in self.moments.items():
            found[literal] = int(time(moment) <= time(at))
        return found
