"""CP-SAT with open choices: a boolean per option; what belongs to one holds where it is taken.

``ChoicesModel`` finds exact optima over all choices. With ``Symmetry.ALL`` or ``ONE`` as
``solvers.choices.choices_symmetry`` allows it loses nothing; with more order than that it only
finds good schedules (``is_restricted``). Where computation is in index order, the memory edges of
the floor hold, and those of the plain problem for each store none of whose options is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import numpy as np
from ortools.sat.python import cp_model

from bubbleproof.solvers.choices.choices_symmetry import Symmetry, order_edges
from bubbleproof.solvers.choices.option_lifetimes import OptionalLifetime, OptionLifetimes
from bubbleproof.solvers.encoding import longest_makespan
from bubbleproof.solvers.engines.choices_frame import Choice, Frame, is_anchored
from bubbleproof.solvers.engines.cpsat import add_reservoir
from bubbleproof.solvers.engines.cpsat_solver import CpSatSolver
from bubbleproof.solvers.engines.engine import UNLIMITED, Budget, OutOfTimeError
from bubbleproof.solvers.starts import rows
from bubbleproof.theory.model.actions import NONE
from bubbleproof.theory.model.problem import Edges
from bubbleproof.verify.certificates.index_order import index_order


class ChoicesModel:
    """The model of all variants at once; ``build`` adds every family.

    ``build`` raises ``OutOfTimeError`` once the budget is spent.
    """

    def __init__(self, frame: Frame, budget: Budget = UNLIMITED) -> None:
        self.budget, self.lifetimes = budget, OptionLifetimes(frame.variants)
        self.frame, self.variants = frame, frame.variants
        self.problem = frame.variants.whole
        self.model = cp_model.CpModel()
        self.duration: list[int] = self.problem.duration.tolist()
        self.is_anchored = is_anchored(self.variants)
        self.horizon = frame.limit if self.is_anchored else longest_makespan(self.problem)
        self.option = [self.model.new_bool_var("") for _ in self.variants.options]
        self.start = self._starts()
        self.interval = [self._interval(task) for task in range(self.problem.num_tasks)]
        self.goal = self.model.new_int_var(
            min(frame.least, frame.limit), max(frame.least, frame.limit), ""
        )
        self.model.add(self.goal <= frame.limit)
        self._all: dict[tuple[tuple[int, ...], tuple[int, ...]], list[cp_model.IntVar]] = {}

    def _starts(self) -> list[cp_model.IntVar]:
        low = np.zeros(self.problem.num_tasks, dtype=np.int64)
        high = self.horizon - self.problem.duration
        heads, tails, self.floor_edges = self.frame.windows()
        always = self.frame.always
        low[always] = heads
        high[always] -= tails
        self.is_hopeless = bool((high < low)[always].any())
        for task in np.flatnonzero((high < low) & (self.variants.task_option != NONE)).tolist():
            self.model.add(self.option[self.variants.task_option[task]] == 0)
        return [
            self.model.new_int_var(a, max(a, b), "")
            for a, b in zip(low.tolist(), high.tolist(), strict=True)
        ]

    def _interval(self, task: int) -> cp_model.IntervalVar:
        option, start, size = self.variants.task_option[task], self.start[task], self.duration[task]
        if option == NONE:
            return self.model.new_fixed_size_interval_var(start, size, "")
        taken = self.option[option]
        return self.model.new_optional_fixed_size_interval_var(start, size, taken, "")

    def end(self, task: int) -> cp_model.LinearExpr:
        """The end of a task.

        Parameters
        ----------
        task
            Its number.
        """
        return self.start[task] + self.duration[task]

    def build(self) -> None:
        """Add every family."""
        for add in (
            self.add_dependencies,
            self.add_index_order,
            self.add_exclusion,
            self.add_memory,
            self.add_pools,
            self.add_clashes,
            self.add_horizon,
        ):
            self.budget.require()
            add()

    def _precede(self, edges: Edges, options: Sequence[Sequence[int]] | None = None) -> None:
        """start(after) >= end(before) + lag where all of the options of the row are taken."""
        for row, (before, after, lag) in enumerate(rows(edges)):
            rule = self.model.add(self.start[after] >= self.end(before) + lag)
            if options is not None and (needed := set(options[row]) - {NONE}):
                rule.only_enforce_if([self.option[option] for option in needed])

    def add_dependencies(self) -> None:
        """start(after) >= end(before) + lag."""
        self._precede(
            self.problem.edges, [(option,) for option in self.variants.edge_option.tolist()]
        )

    def add_index_order(self) -> None:
        """Tasks in the order of their microbatches, and the memory edges that follow from it."""
        if self.frame.order is Symmetry.ALL:
            always = self.frame.always
            edges = self.floor_edges
            self._precede(
                Edges(before=always[edges.before], after=always[edges.after], lag=edges.lag)
            )
            self._add_plain_memory_edges()
        edges = order_edges(self.variants, self.frame.order)
        option = self.variants.task_option
        owners = [option[edges.before].tolist(), option[edges.after].tolist()]
        pairs = list(zip(*owners, strict=True))
        same = [row for row, pair in enumerate(pairs) if pair[0] == pair[1]]
        kept = Edges(before=edges.before[same], after=edges.after[same], lag=edges.lag[same])
        self._precede(kept, [pairs[row] for row in same])
        for sequence in self.frame.fixed:
            for before, after in pairwise(sequence):
                self.model.add(self.start[after] >= self.end(before))

    def _add_plain_memory_edges(self) -> None:
        """Where nothing that touches a store is taken, the plain problem's memory edges hold."""
        plain = self.variants.plain
        order = index_order(plain)
        options, events = self.variants.event_option, self.problem.events
        for life in order.lifecycles:
            limit = order.limit(life)
            touching = set(options[events.store == life.store].tolist()) - {NONE}
            if limit is None or not touching or limit >= len(order.row_of[life.first]):
                continue
            left = [self.option[option].negated() for option in touching]
            if limit < 1:
                self.model.add_bool_or(self.option[option] for option in touching)
                continue
            before = self.frame.always[order.row_of[life.last][:-limit]].tolist()
            after = self.frame.always[order.row_of[life.first][limit:]].tolist()
            for early, late in zip(before, after, strict=True):
                self.model.add(self.start[late] >= self.end(early)).only_enforce_if(left)

    def add_exclusion(self) -> None:
        """One task at a time on each resource."""
        occupancy = self.problem.occupancy
        for resource in np.unique(occupancy.resource).tolist():
            tasks = occupancy.task[occupancy.resource == resource].tolist()
            self.model.add_no_overlap([self.interval[task] for task in tasks])

    def add_memory(self) -> None:
        """Every store within 0 and its capacity."""
        options = self.variants.event_option.tolist()
        actives = [1 if option == NONE else self.option[option] for option in options]
        for number, store in enumerate(self.problem.stores):
            self.budget.require()
            lifetimes = self.lifetimes.of((number,))
            if lifetimes is None:
                add_reservoir(self.model, self.problem, number, self.start, actives)
            elif store.capacity is not None:
                self._add_cumulative(lifetimes, store.capacity - store.base)

    def add_pools(self) -> None:
        """The joint load of stores that options join: implied, and it prunes."""
        for pool in self.variants.pools:
            self.budget.require()
            lifetimes = self.lifetimes.of(pool)
            if lifetimes is not None:
                stores = [self.problem.stores[number] for number in pool]
                self._add_cumulative(lifetimes, sum((s.capacity or 0) - s.base for s in stores))

    def _add_cumulative(self, lifetimes: Sequence[OptionalLifetime], room: int) -> None:
        if room < 0:
            self.is_hopeless = True
            return
        intervals = [self._interval_of(lifetime) for lifetime in lifetimes]
        demands = [lifetime.amount for lifetime in lifetimes]
        self.model.add_cumulative(intervals, demands, min(room, sum(demands)))

    def _interval_of(self, lifetime: OptionalLifetime) -> cp_model.IntervalVar:
        if lifetime.first == lifetime.last and (lifetime.taken, lifetime.left) == ((), ()):
            return self.interval[lifetime.first]
        begin, end = self.start[lifetime.first], self.end(lifetime.last)
        size = self.model.new_int_var(0, self.horizon, "")
        if not lifetime.taken and not lifetime.left:
            return self.model.new_interval_var(begin, size, end, "")
        return self.model.new_optional_interval_var(begin, size, end, self._both(lifetime), "")

    def _both(self, lifetime: OptionalLifetime) -> cp_model.LiteralT:
        """A literal that says that ``taken`` are taken and ``left`` are not."""
        literals = [self.option[option] for option in lifetime.taken]
        negated = [self.option[option].negated() for option in lifetime.left]
        if len(literals) + len(negated) == 1:
            return (literals + negated)[0]
        key = lifetime.taken, lifetime.left
        if key not in self._all:
            both = self.model.new_bool_var("")
            self.model.add_bool_and([*literals, *negated]).only_enforce_if(both)
            self.model.add_bool_or(
                [both, *(x.negated() for x in literals), *(self.option[o] for o in lifetime.left)]
            )
            self._all[key] = [both]
        return self._all[key][0]

    def add_clashes(self) -> None:
        """At most one option of each clash."""
        for clash in self.variants.clashes:
            self.model.add_at_most_one(self.option[option] for option in clash)

    def add_horizon(self) -> None:
        """makespan >= end of any computation - start of any other; transfers do not count."""
        problem, options = self.problem, self.variants.task_option
        compute = np.flatnonzero(problem.rank_of_task != NONE).tolist()
        first: cp_model.IntVar | int = 0
        if not self.is_anchored:
            first = self.model.new_int_var(0, self.horizon, "first")
        for task in compute:
            rules = [self.model.add(self.goal >= self.end(task) - first)]
            if not self.is_anchored:
                rules.append(self.model.add(self.start[task] >= first))
            for rule in rules:
                if options[task] != NONE:
                    rule.only_enforce_if(self.option[options[task]])

    def outcome(self, solver: CpSatSolver, bound: int) -> Choice:
        """What the solver's values stand for.

        Parameters
        ----------
        bound
            Ticks: what the solver says that no value is below.
        """
        return Choice(
            start=solver.values(self.start),
            taken=tuple(o for o, taken in enumerate(self.option) if solver.value(taken)),
            bound=bound,
        )


def run_model(model: ChoicesModel, budget: Budget) -> Choice:
    """Minimize a model that is complete."""
    if model.is_hopeless:
        return Choice(bound=model.frame.limit + 1, is_refuted=True)
    solver = CpSatSolver()
    model.model.minimize(model.goal)
    solver.solve(model.model, budget)
    if solver.is_refuted:
        return Choice(bound=model.frame.limit + 1, is_refuted=True)
    if not solver.is_found:
        return Choice(bound=solver.bound)
    return model.outcome(solver, solver.bound)


def search_with(kind: type[ChoicesModel], frame: Frame, budget: Budget) -> Choice:
    """The best within the frame that CP-SAT finds with a model in the time given."""
    model = kind(frame, budget)
    try:
        model.build()
    except OutOfTimeError:
        return Choice()
    return run_model(model, budget)


search = partial(search_with, ChoicesModel)
