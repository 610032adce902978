"""A schedule that repeats, made faster by CP-SAT: its order on every resource, changed a little.

Every task starts anew each period of P ticks. Of two tasks a and b of a resource, of d and e ticks,
that start at x and y, exactly one whole q has d <= y - x + q P <= P - e: the *turn* of b against a,
the number of periods by which that b comes later which follows this a next. All turns together are
the order of each resource, and they say what is held: of those kept from the start of f to the end
of e a store has turn(t, f) - turn(t, e) when t starts, all on one resource, turn(t, t) being 1.

So memory is linear in turns, with nothing to be told for moments of time. The turns of a known
schedule may each change by one. What is too much for a store is allowed and has its price, so that
a longer period's turns are a beginning for a shorter one: units beyond its room at worst, times P,
and unit-ticks beyond P times the room.
"""

from __future__ import annotations

from collections.abc import Container

import numpy as np
from ortools.sat.python import cp_model

from bubbleproof.solvers.engines.cpsat_solver import CpSatSolver
from bubbleproof.solvers.engines.cycle import PRICE, Cycle, Turns
from bubbleproof.solvers.engines.engine import Budget
from bubbleproof.solvers.memory_rules import LimitedStore
from bubbleproof.solvers.starts import rows
from bubbleproof.theory.model.actions import Ints

REACH = 3  # periods by which a start may move
MOST = 1 << 60  # of what is minimized: of larger numbers CP-SAT makes no model


class TurnsModel:
    """The model of a period of ``ticks``, near ``starts`` of such ``turns``.

    Those of tasks that are not ``free`` stay.
    """

    def __init__(
        self, cycle: Cycle, ticks: int, starts: Ints, turns: Turns, free: Container[int]
    ) -> None:
        self.cycle, self.ticks, self.model = cycle, ticks, cp_model.CpModel()
        self.duration: list[int] = cycle.few.duration.tolist()
        low, high = int(starts.min()) - REACH * ticks, int(starts.max()) + REACH * ticks
        self.start = [self._near(int(start), low, high) for start in starts]
        reach = {pair: int(pair[0] in free) for pair in turns}
        self.turn = {
            pair: self._near(turn, turn - reach[pair], turn + reach[pair])
            for pair, turn in turns.items()
        }
        self.one = self.model.new_constant(1)
        self.prices: list[cp_model.LinearExprT] = []
        self.held: list[cp_model.LinearExprT] = []

    def _near(self, value: int, low: int, high: int) -> cp_model.IntVar:
        variable = self.model.new_int_var(low, high, "")
        self.model.add_hint(variable, value)
        return variable

    def build(self) -> None:
        """Add every family."""
        for before, after, lag in rows(self.cycle.few.edges):
            self.model.add(self.start[after] >= self.start[before] + self.duration[before] + lag)
        for before, after, turns in self.cycle.repeats:
            end = self.start[before] + self.duration[before]
            self.model.add(self.start[after] + turns * self.ticks >= end)
        for (one, other), turn in self.turn.items():
            apart = self.start[other] - self.start[one] + turn * self.ticks
            most = self.ticks - self.duration[other]
            self.model.add_linear_constraint(apart, self.duration[one], most)
        for held in self.cycle.held:
            self._hold(held)
        total = cp_model.LinearExpr.sum(self.held)
        self.model.minimize(PRICE * cp_model.LinearExpr.sum(self.prices) + total)

    def _hold(self, held: LimitedStore) -> None:
        stays = [
            life.amount
            * (self.start[life.last] + self.duration[life.last] - self.start[life.first])
            for life in held.lifetimes
        ]
        self.held += stays
        room, most = held.room, sum(life.amount for life in held.lifetimes) * len(self.start)
        worst = self.model.new_int_var(0, most, "")
        beyond = self.model.new_int_var(0, most * self.ticks, "")
        self.model.add(beyond >= cp_model.LinearExpr.sum(stays) - room * self.ticks)
        for task in dict.fromkeys(life.first for life in held.lifetimes):
            load = [
                life.amount * (self._against(task, life.first) - self._against(task, life.last))
                for life in held.lifetimes
            ]
            self.model.add(worst >= cp_model.LinearExpr.sum(load) - room)
        self.prices += [worst * self.ticks, beyond]

    def _against(self, one: int, other: int) -> cp_model.LinearExpr:
        pair = one, other
        if one == other or pair in self.turn:
            return self.turn.get(pair, self.one)
        return 1 - self.turn[other, one]


def search(
    cycle: Cycle,
    ticks: int,
    starts: Ints,
    turns: Turns,
    budget: Budget,
    work: float,
    free: Container[int] | None = None,
) -> Ints | None:
    """Starts with a period of ``ticks`` near known ones, if found and no number is too large.

    Any will do or, where some tasks are ``free``, those of least price.

    Precondition: each store is used by the tasks of one resource.

    Parameters
    ----------
    ticks
        Of a period, 1 or more.
    starts
        Where to begin from, in ticks, one a task of ``few``.
    turns
        Those to begin from, ``turns_of`` the same or of a longer period.
    work
        Of CP-SAT's own count, at most.
    free
        Tasks whose turns against others may change; None for all.
    """
    every = range(cycle.few.num_tasks)
    units = sum(life.amount for held in cycle.held for life in held.lifetimes)
    if (2 * PRICE + 1) * units * len(starts) * ticks > MOST:
        return None
    model = TurnsModel(cycle, ticks, starts, turns, every if free is None else free)
    model.build()
    solver = CpSatSolver()
    solver.parameters.max_deterministic_time = work
    solver.parameters.stop_after_first_solution = free is None
    solver.solve(model.model, budget)
    if not solver.is_found:
        return None
    found = solver.values(model.start)
    return np.asarray(found - found.min(), dtype=np.int64)
