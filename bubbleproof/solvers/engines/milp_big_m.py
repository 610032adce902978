"""The disjunctive formulation: an integer start per task, a 0-1 variable per undecided pair.

Of two tasks a and b of one resource either ``start(b) >= end(a)`` or ``start(a) >= end(b)``; the
variable of the pair chooses, and the other inequality is relaxed by an M no larger than the two
start windows need. Memory beyond its edges asks whether a moment is not after another: another
0-1 variable, or that of the pair where the two tasks share a resource (then one ends first).
"""

from __future__ import annotations

from bubbleproof.solvers.encoding import Encoding, Load, Moment
from bubbleproof.solvers.engines.engine import Budget
from bubbleproof.solvers.engines.milp import MilpModel, Term
from bubbleproof.solvers.engines.pulp_alone import pulp
from bubbleproof.theory.model.actions import Ints


class BigMModel(MilpModel):
    """Starts, orders of pairs, and moments by a moment."""

    def __init__(self, encoding: Encoding, budget: Budget | None = None) -> None:
        super().__init__(encoding, budget)
        self.start = [
            self.integer(f"s{task}", low, max(low, high))
            for task, (low, high) in enumerate(zip(self.earliest, self.latest, strict=True))
        ]
        self.pairs: dict[tuple[int, int], pulp.LpVariable] = {}  # 1: the first task comes first
        self.moments: dict[tuple[Moment, Moment], pulp.LpVariable] = {}  # 1: not after
        self.implied: set[tuple[Moment, Moment, bool]] = set()

    def start_of(self, task: int, sign: int = 1) -> tuple[list[Term], int]:
        return [(sign, self.start[task])], 0

    def precede(self, before: int, after: int, lag: int) -> None:
        self.require(
            [(1, self.start[after]), (-1, self.start[before])], self.duration[before] + lag
        )

    def exclude(self, resource: int) -> None:
        for a, b in self.encoding.undecided_pairs(resource):
            if (a, b) not in self.pairs:
                first = self.integer(f"o{a}_{b}", 0, 1)
                self.pairs[a, b] = first
                self._apart(Moment(a, True), Moment(b, False), 0, (1, first))
                self._apart(Moment(b, True), Moment(a, False), 0, (0, first))

    def _apart(
        self, earlier: Moment, later: Moment, ticks: int, when: tuple[int, pulp.LpVariable]
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

    def add_memory(self) -> None:
        """Every store within 0 and its capacity."""
        self.precede_all(self.encoding.memory_edges)
        for stair in self.encoding.memory.stairs:
            by = Moment(stair.later, False)
            ended = [self._not_after(Moment(task, True), by, True) for task in stair.either]
            self._sum([(1, literal) for literal in ended], 1)
        for load in self.encoding.loads:
            self._add_load(load)

    def _add_load(self, load: Load) -> None:
        """least <= known + sum of the deltas of the moments not after ``load.at`` <= most."""
        for limit, sign in ((load.least, 1), (load.most, -1)):
            if limit is not None:
                # What helps may count only if it happens, what hurts only fail to if it does not.
                counted = [
                    (sign * delta, self._not_after(moment, load.at, sign * delta > 0))
                    for moment, delta in load.undecided
                ]
                self._sum(counted, sign * (limit - load.known))

    def _sum(self, counted: list[tuple[int, tuple[int, pulp.LpVariable]]], least: int) -> None:
        """The sum of the weights whose literal (value, variable) holds is at least ``least``."""
        terms = []
        for weight, (value, variable) in counted:
            terms.append((weight if value else -weight, variable))
            least -= 0 if value else weight
        self.require(terms, least)

    def _not_after(self, moment: Moment, at: Moment, helps: bool) -> tuple[int, pulp.LpVariable]:
        """A literal that is true only if (or, unless it ``helps``, whenever) moment <= at."""
        if self._is_order(moment, at):
            if (moment.task, at.task) in self.pairs:
                return 1, self.pairs[moment.task, at.task]
            if (at.task, moment.task) in self.pairs:
                return 0, self.pairs[at.task, moment.task]
        if (moment, at) not in self.moments:
            self.moments[moment, at] = self.integer(f"m{len(self.moments)}", 0, 1)
        literal = self.moments[moment, at]
        if (moment, at, helps) not in self.implied:
            self.implied.add((moment, at, helps))
            if helps:
                self._apart(moment, at, 0, (1, literal))
            else:
                self._apart(at, moment, 1, (0, literal))
        return 1, literal

    def _is_order(self, moment: Moment, at: Moment) -> bool:
        """Whether tasks that exclude each other make it the question which comes first."""
        ticks, other = self.duration[moment.task], self.duration[at.task]
        if at.at_end:
            return moment.at_end and ticks > 0
        return other > 0 or (moment.at_end and ticks > 0)

    def values_of(self, start: Ints) -> dict[pulp.LpVariable, int]:
        begin: list[int] = start.tolist()

        def time(moment: Moment) -> int:
            return begin[moment.task] + (self.duration[moment.task] if moment.at_end else 0)

        found = dict(zip(self.start, begin, strict=True))
        for (a, b), first in self.pairs.items():
            found[first] = int(time(Moment(a, True)) <= begin[b])
        for (moment, at), literal in self.moments.items():
            found[literal] = int(time(moment) <= time(at))
        return found
