"""Schedules that repeat from the first microbatch to the last, by CP-SAT ("modulo scheduling").

R microbatches start their tasks at s, the next R of them at s + P, and so on, for a *period* of P
ticks. With s = q P + r (0 <= r < P) one period says all:

- precedences stand between starts, as always;
- two tasks of a resource do not overlap, nor does one the next period's copy of the other;
- when a task starts, of what is kept from F to the end e of L there are q_e - q_F, one more where
  r < r_e, and one less where r < r_F.

At the beginning and the end fewer microbatches are under way than in the middle, so that a period
that fits fits everywhere. ``span``, the ticks from the first start to the last end of the R
microbatches, is what the ends of the schedule cost.
"""

from __future__ import annotations

from collections.abc import Sequence

from ortools.sat.python import cp_model

from bubbleproof.solvers.engines.cpsat_solver import CpSatSolver
from bubbleproof.solvers.engines.cycle import Cycle
from bubbleproof.solvers.engines.engine import Budget
from bubbleproof.solvers.memory_rules import Lifetime
from bubbleproof.solvers.starts import rows
from bubbleproof.theory.model.actions import Ints


class PeriodicModel:
    """The model of one period of ``ticks``."""

    def __init__(self, cycle: Cycle, ticks: int, span: int) -> None:
        self.cycle, self.ticks = cycle, ticks
        self.model = cp_model.CpModel()
        self.duration: list[int] = cycle.few.duration.tolist()
        last = min(span, cycle.longest)
        self.start, self.turn, self.rest = [], [], []
        for head, size in zip(cycle.heads.tolist(), self.duration, strict=True):
            self.start.append(self.model.new_int_var(head, max(head, last - size), ""))
        for start in self.start:
            turn, rest = self._divided(start)
            self.turn.append(turn)
            self.rest.append(rest)
        self.span = self.model.new_int_var(0, last, "")
        self._late: dict[int, tuple[cp_model.IntVar, cp_model.IntVar]] = {}

    def _divided(self, time: cp_model.LinearExprT) -> tuple[cp_model.IntVar, cp_model.IntVar]:
        turn = self.model.new_int_var(0, self.cycle.longest // self.ticks + 1, "")
        rest = self.model.new_int_var(0, self.ticks - 1, "")
        self.model.add(time == turn * self.ticks + rest)
        return turn, rest

    def build(self) -> None:
        """Add every family."""
        for before, after, lag in rows(self.cycle.few.edges):
            self.model.add(self.start[after] >= self.start[before] + self.duration[before] + lag)
        for before, after, turns in self.cycle.repeats:
            end = self.start[before] + self.duration[before]
            self.model.add(self.start[after] + turns * self.ticks >= end)
        for resource in range(len(self.cycle.few.resources)):
            self._exclude(resource)
        for held in self.cycle.held:
            self._hold(held.lifetimes, held.room)
        for start, size in zip(self.start, self.duration, strict=True):
            self.model.add(self.span >= start + size)

    def _exclude(self, resource: int) -> None:
        occupancy = self.cycle.few.occupancy
        tasks = occupancy.task[occupancy.resource == resource].tolist()
        self.model.add_no_overlap(
            self.model.new_fixed_size_interval_var(self.rest[t] + shift, self.duration[t], "")
            for t in tasks
            for shift in (0, self.ticks)
        )

    def _hold(self, lifetimes: Sequence[Lifetime], room: int) -> None:
        for task in dict.fromkeys(lifetime.first for lifetime in lifetimes):
            load: list[cp_model.LinearExprT] = []
            for lifetime in lifetimes:
                turn, rest = self._end(lifetime.last)
                load.append(lifetime.amount * (turn - self.turn[lifetime.first]))
                load.append(lifetime.amount * self._is_before(self.rest[task], rest))
                if lifetime.first != task:
                    begun = self.rest[lifetime.first]
                    load.append(-lifetime.amount * self._is_surely_before(self.rest[task], begun))
            self.model.add(cp_model.LinearExpr.sum(load) <= room)

    def _end(self, task: int) -> tuple[cp_model.IntVar, cp_model.IntVar]:
        if task not in self._late:
            self._late[task] = self._divided(self.start[task] + self.duration[task])
        return self._late[task]

    def _is_before(self, one: cp_model.IntVar, other: cp_model.IntVar) -> cp_model.IntVar:
        """A boolean that is true where ``one`` < ``other``."""
        literal = self.model.new_bool_var("")
        self.model.add(one >= other).only_enforce_if(~literal)
        return literal

    def _is_surely_before(self, one: cp_model.IntVar, other: cp_model.IntVar) -> cp_model.IntVar:
        """A boolean that is true only where ``one`` < ``other``."""
        literal = self.model.new_bool_var("")
        self.model.add(one < other).only_enforce_if(literal)
        return literal


def search(
    cycle: Cycle, ticks: int, span: int, budget: Budget, work: float, known: Ints | None = None
) -> Ints | None:
    """Starts of the ``few`` microbatches within a span, with a period of ``ticks``, if found.

    Any will do or, from ``known`` ones on, those of least span.

    Parameters
    ----------
    ticks
        Of a period, 1 or more.
    span
        Ticks within which each microbatch stays.
    work
        Of CP-SAT's own count, at most.
    known
        Starts in ticks, one a task of ``few``; None for none.
    """
    ends = cycle.heads + cycle.few.duration
    if ticks < int(cycle.few.duration.max()) or int(ends.max()) > min(span, cycle.longest):
        return None
    model = PeriodicModel(cycle, ticks, span)
    model.build()
    solver = CpSatSolver()
    solver.parameters.linearization_level = 0
    solver.parameters.max_deterministic_time = work
    if known is not None:
        model.model.minimize(model.span)
        for start, value in zip(model.start, known.tolist(), strict=True):
            model.model.add_hint(start, value)
    solver.solve(model.model, budget)
    return solver.values(model.start) if solver.is_found else None
