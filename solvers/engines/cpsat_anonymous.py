"""CP-SAT on a relaxation of open choices: it forgets which microbatch a transfer belongs to.

Options per microbatch break index order (``solvers.choices.choices_symmetry``). But memory depends
only on *when* load changes, and the i-th smallest times of a class keep every precedence. So let
microbatches be identical, with one option per microbatch in each family, and sort the times of
every class by themselves. With n of a family's options taken, what survives is:

- computation in index order, with all its precedences;
- for a precedence from a computation to a transfer: the i-th transfer is after the i-th
  computation; from a transfer to a computation: the i-th last is before the i-th last;
- between two transfers of the family: i-th before i-th;
- one at a time on each resource, and the load of each store at each instant.

Why each is necessary. Let the members of class A come before those of class B one to one, at times
a_j + lag <= b_j. The i-th smallest b has i members of B at or before it, so their i partners are at
a + lag at or before it as well: the i-th smallest a, plus the lag, is at most the i-th smallest b.
If only n of the m microbatches have a partner, the n in B are matched with n of A: so the i-th of n
is behind the i-th of *all* m (the computation in front of transfers), and the i-th last of n before
the i-th last of all m (behind transfers). Resources and stores ask what happens when, never to
which microbatch, and there the sorted times are the same times.

So the optimum of this model is a lower bound for every choice, and it has none of the m! copies of
each schedule. A schedule that it finds is none of the problem: only its bound is used. Memory is
said change by change: when load is acquired, the changes that are not later are counted, with
booleans that are monotone along each sorted class.

The transfers of a class are numbered from the first or, where a computation waits for them, from
the last; slot i of a family exists if more than i options are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
from ortools.sat.python import cp_model

from bubbleproof.solvers.choices.choices_symmetry import class_of_task
from bubbleproof.solvers.choices.variants import Option
from bubbleproof.solvers.engines.choices_frame import Choice, Frame
from bubbleproof.solvers.engines.cpsat_choices import ChoicesModel, search_with
from bubbleproof.solvers.engines.cpsat_solver import CpSatSolver
from bubbleproof.solvers.engines.engine import UNLIMITED, Budget
from bubbleproof.solvers.engines.sorted_loads import Series, SortedLoads, closure
from bubbleproof.solvers.identical import identical
from bubbleproof.theory.model.actions import NONE, Bools
from bubbleproof.theory.model.problem import Edges
from bubbleproof.verify.certificates.index_order import index_order

Ranked = Callable[[int, int], cp_model.LinearExprT]  # of the i-th of so many


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """The transfers of one class: slot i has start ``start[i]`` and exists if ``there[i]``.

    ``is_reversed``: slot 0 is the last one. ``family`` numbers the family they belong to.
    """

    start: tuple[cp_model.IntVar, ...]
    there: tuple[cp_model.IntVar, ...]
    duration: int
    is_reversed: bool
    family: int
    members: tuple[int, ...]


class AnonymousModel(ChoicesModel):
    """The relaxation. Preconditions: ``can_be_anonymous(variants)``, and the order is ``ALL``.

    Raises ``ValueError`` for microbatches that are not all identical.
    """

    def __init__(self, frame: Frame, budget: Budget = UNLIMITED) -> None:
        if (alike := identical(index_order(frame.variants.whole))) is None:
            raise ValueError("variants of microbatches that differ have names")
        self.members, self.class_of = alike.members, class_of_task(alike)
        super().__init__(frame, budget)
        self.num_samples = alike.num_microbatches
        self._surely: list[tuple[int, int]] = []  # (a, b): b starts when a has ended
        # Options per microbatch become counts: ``there[family][i]``: more than i are taken.
        self.there = [
            [self.model.new_bool_var("") for _ in range(self.num_samples)] for _ in self.families
        ]
        for row in self.there:
            for more, fewer in zip(row[1:], row, strict=False):
                self.model.add_implication(more, fewer)
        self.slots = {c: self._slots(c) for c in self._option_classes()}

    @cached_property
    def families(self) -> tuple[Option | None, ...]:
        """What is alike in the options of one family."""
        return tuple(
            dict.fromkeys(self.variants.family_of(o) for o in range(len(self.variants.options)))
        )

    def _option_classes(self) -> Iterator[int]:
        for number, row in enumerate(self.members):
            if self.variants.task_option[row[0]] != NONE:
                yield number

    def _slots(self, number: int) -> Slots:
        members = self.members[number].tolist()
        task, edges, option = members[0], self.problem.edges, self.variants.task_option
        waits_for = option[edges.before[edges.after == task]] == NONE
        awaited = option[edges.after[edges.before == task]] == NONE
        family = self.families.index(self.variants.family_of(int(option[task])))
        return Slots(
            start=tuple(self.start[member] for member in members),
            there=tuple(self.there[family]),
            duration=self.duration[task],
            is_reversed=bool(awaited.any() and not waits_for.any()),
            family=family,
            members=tuple(members),
        )

    def _count_is(self, family: int, count: int) -> list[cp_model.LiteralT]:
        """Literals that hold together exactly if ``count`` (1 or more) options are taken."""
        row = self.there[family]
        literals: list[cp_model.LiteralT] = [row[count - 1]]
        return literals if count == len(row) else [*literals, row[count].negated()]

    def _place(self, slots: Slots, i: int, count: int) -> int:
        """The slot of the i-th of ``count`` transfers."""
        return count - 1 - i if slots.is_reversed else i

    def add_dependencies(self) -> None:
        """start(after) >= end(before) + lag, for what is always there and then rank by rank."""
        option, edges = self.variants.task_option, self.problem.edges
        rows = set()
        for row in range(len(edges)):
            before, after = int(edges.before[row]), int(edges.after[row])
            lag = int(edges.lag[row])
            if option[before] == NONE and option[after] == NONE:
                self.model.add(self.start[after] >= self.end(before) + lag)
            else:
                rows.add((int(self.class_of[before]), int(self.class_of[after]), lag))
        for before, after, lag in sorted(rows):
            self._precede_ranked(before, after, lag)
        for slots in self.slots.values():
            self._sort(slots)
        self.loads = SortedLoads(self.model, self._prior())

    def _prior(self) -> Bools:
        """prior[b, a]: b surely starts when a has ended, if both are there."""
        always, edges = self.frame.always, self.floor_edges
        safe = edges.lag >= 0
        pairs = [
            *zip(
                always[edges.before[safe]].tolist(), always[edges.after[safe]].tolist(), strict=True
            )
        ]
        pairs += self._surely
        return closure(self.problem.num_tasks, pairs)

    def _sort(self, slots: Slots) -> None:
        for (one, _), (other, there) in zip(
            zip(slots.start, slots.there, strict=True),
            zip(slots.start[1:], slots.there[1:], strict=True),
            strict=False,
        ):
            early, late = (other, one) if slots.is_reversed else (one, other)
            self.model.add(early + slots.duration <= late).only_enforce_if(there)
        forward = slots.members[::-1] if slots.is_reversed else slots.members
        self._surely += pairwise(forward)

    def _precede_ranked(self, before: int, after: int, lag: int) -> None:
        one, other = self.slots.get(before), self.slots.get(after)
        if one is not None and other is not None:
            self._between(one, other, lag)
        elif one is not None:
            self._before_computation(one, self.members[after].tolist(), lag)
        elif other is not None:
            self._after_computation(self.members[before].tolist(), other, lag)

    def _after_computation(self, tasks: list[int], slots: Slots, lag: int) -> None:
        if slots.is_reversed:
            self._for_each_rank(
                slots.family,
                lambda i, _: self.end(tasks[i]) + lag,
                lambda i, count: slots.start[count - 1 - i],
            )
            return
        for task, start, there in zip(tasks, slots.start, slots.there, strict=True):
            self.model.add(start >= self.end(task) + lag).only_enforce_if(there)
        if lag >= 0:
            self._surely += zip(tasks, slots.members, strict=True)

    def _before_computation(self, slots: Slots, tasks: list[int], lag: int) -> None:
        if not slots.is_reversed:
            self._for_each_rank(
                slots.family,
                lambda i, _: slots.start[i] + slots.duration + lag,
                lambda i, count: self.start[tasks[self.num_samples - count + i]],
            )
            return
        for task, start, there in zip(reversed(tasks), slots.start, slots.there, strict=True):
            rule = self.model.add(self.start[task] >= start + slots.duration + lag)
            rule.only_enforce_if(there)
        if lag >= 0:
            self._surely += zip(slots.members, reversed(tasks), strict=True)

    def _between(self, one: Slots, other: Slots, lag: int) -> None:
        if one.family != other.family:
            raise ValueError(f"an edge joins options of two kinds: {one.family} and {other.family}")
        self._for_each_rank(
            one.family,
            lambda i, count: one.start[self._place(one, i, count)] + one.duration + lag,
            lambda i, count: other.start[self._place(other, i, count)],
        )

    def _for_each_rank(self, family: int, early: Ranked, late: Ranked) -> None:
        """Where ``count`` options are taken: early(i, count) <= late(i, count) for each i below."""
        for count in range(1, self.num_samples + 1):
            taken = self._count_is(family, count)
            for i in range(count):
                self.model.add(early(i, count) <= late(i, count)).only_enforce_if(taken)

    def add_index_order(self) -> None:
        """Computation in index order, with the edges that hold whatever is chosen."""
        always, edges = self.frame.always, self.floor_edges
        self._precede(Edges(before=always[edges.before], after=always[edges.after], lag=edges.lag))

    def _interval(self, task: int) -> cp_model.IntervalVar:
        if self.variants.task_option[task] == NONE:
            return super()._interval(task)
        return self.model.new_interval_var(0, 0, 0, "")  # slots have intervals of their own

    def add_exclusion(self) -> None:
        """One task at a time on each resource."""
        occupancy, option = self.problem.occupancy, self.variants.task_option
        for resource in np.unique(occupancy.resource).tolist():
            tasks = occupancy.task[occupancy.resource == resource]
            intervals = [self.interval[task] for task in tasks[option[tasks] == NONE].tolist()]
            for number in sorted(set(self.class_of[tasks[option[tasks] != NONE]].tolist())):
                intervals += self.slot_intervals(self.slots[number])
            self.model.add_no_overlap(intervals)

    def slot_intervals(self, slots: Slots) -> list[cp_model.IntervalVar]:
        """Where the transfers run."""
        return [
            self.model.new_optional_fixed_size_interval_var(start, slots.duration, there, "")
            for start, there in zip(slots.start, slots.there, strict=True)
        ]

    def add_memory(self) -> None:
        """Every store within its capacity."""
        for number, store in enumerate(self.problem.stores):
            self.budget.require()
            if store.capacity is None:
                continue
            if number in self.variants.touched:
                self.loads.add(self._series(number), store.capacity - store.base)
            elif (lifetimes := self.lifetimes.of((number,))) is not None:
                self._add_cumulative(lifetimes, store.capacity - store.base)

    def add_pools(self) -> None:
        """The joint load of stores between which load moves: implied, and it prunes."""
        for pool in self.variants.safe_pools:
            self.budget.require()
            lifetimes = self.lifetimes.of(pool)
            if lifetimes is None:
                continue
            certain = [
                lifetime for lifetime in lifetimes if (lifetime.taken, lifetime.left) == ((), ())
            ]
            intervals = [self._interval_of(lifetime) for lifetime in certain]
            demands = [lifetime.amount for lifetime in certain]
            for slots, amount in self._in_flight(pool):
                found = self.slot_intervals(slots)
                intervals += found
                demands += [amount] * len(found)
            stores = [self.problem.stores[number] for number in pool]
            room = sum((s.capacity or 0) - s.base for s in stores)
            if room < 0:
                self.is_hopeless = True
                return
            self.model.add_cumulative(intervals, demands, min(room, sum(demands)))

    def _in_flight(self, pool: tuple[int, ...]) -> Iterator[tuple[Slots, int]]:
        """What each class of transfers adds to the joint load of a pool while it runs."""
        events = self.problem.events
        for slots in self.slots.values():
            own = (events.task == slots.members[0]) & ~events.at_end & np.isin(events.store, pool)
            if amount := int(events.delta[own].sum()):
                yield slots, amount

    def _series(self, store: int) -> list[Series]:
        """The changes of a store, one series per class and side of its tasks."""
        events, members = self.problem.events, self.members
        found = []
        occupancy = self.problem.occupancy
        for number, row in enumerate(members.tolist()):
            for at_end in (False, True):
                own = (events.task == row[0]) & (events.store == store) & (events.at_end == at_end)
                if not (delta := int(events.delta[own].sum())):
                    continue
                slots = self.slots.get(number)
                start = tuple(self.start[task] for task in row)
                ticks = self.duration[row[0]]
                found.append(
                    Series(
                        members=tuple(row),
                        at_end=at_end,
                        there=None if slots is None else slots.there,
                        delta=delta,
                        is_reversed=slots is not None and slots.is_reversed,
                        start=start,
                        duration=ticks,
                        resources=frozenset(occupancy.resource[occupancy.task == row[0]].tolist()),
                    )
                )
        return found

    def add_clashes(self) -> None:
        """At most one option of each clash: n options of one family leave m - n to its rival."""
        rivals = {
            tuple(sorted(self.families.index(self.variants.family_of(o)) for o in clash))
            for clash in self.variants.clashes
        }
        for clash in sorted(rivals):
            taken = [there for family in clash for there in self.there[family]]
            self.model.add(sum(taken) <= self.num_samples)

    def add_horizon(self) -> None:
        """makespan >= end of any computation; a computation of an option, if it is there."""
        compute = self.problem.rank_of_task != NONE
        if not self.is_anchored:
            raise ValueError("variants whose transfers lie outside the computation have names")
        for task in self.frame.always[compute[self.frame.always]].tolist():
            self.model.add(self.goal >= self.end(task))

    def outcome(self, solver: CpSatSolver, bound: int) -> Choice:
        """The bound alone: the times belong to no microbatch.

        Parameters
        ----------
        bound
            Ticks: what the solver says that no value is below.
        """
        del solver
        return Choice(bound=bound)


search = partial(search_with, AnonymousModel)  # a bound for every choice within the frame
