"""A part of a schedule arranged anew by CP-SAT: the tasks of a window of time.

What starts before the window stays where it is; what starts behind it keeps its order, and counts
as the *tail* of the tasks of the window: the ticks from a task's end to the end of the schedule on
the longest path behind it. The longest start + duration + tail is the new makespan.

Either any makespan within a limit will do: a tight limit is what makes the search short. Or no task
may end later in sum: of windows of one makespan that is better whose longest start + duration +
tail, taken rank by rank and summed, is less. Then another window may gain.
"""

from __future__ import annotations

from collections.abc import Sequence

from ortools.sat.python import cp_model

from bubbleproof.solvers.engines.cpsat_solver import CpSatSolver
from bubbleproof.solvers.engines.engine import Budget
from bubbleproof.solvers.engines.window import FOREVER, Occupied, Window, WindowResult


class WindowModel:
    """The model of a window; its solutions are no longer than ``limit``."""

    def __init__(self, window: Window, limit: int) -> None:
        self.window, self.limit, self.model = window, limit, cp_model.CpModel()
        columns = zip(window.head, window.duration, window.tail, strict=True)
        self.start = [
            self.model.new_int_var(low, max(low, limit - tail - size), "")
            for low, size, tail in columns
        ]
        self.first = min(window.head)

    def end(self, task: int) -> cp_model.LinearExprT:
        """The end of a task.

        Parameters
        ----------
        task
            Its number in the window.
        """
        return self.start[task] + self.window.duration[task]

    def build(self) -> None:
        """Add every family."""
        for before, after, lag in self.window.edges:
            self.model.add(self.start[after] >= self.end(before) + lag)
        for tasks in self.window.groups:
            self.model.add_no_overlap(
                self.model.new_fixed_size_interval_var(
                    self.start[task], self.window.duration[task], ""
                )
                for task in tasks
            )
        for room, held in self.window.rooms:
            self._hold(room, held)
        for later, earlier in self.window.either:
            self.model.add_bool_or(self._ended(task, later) for task in earlier)
        for variable, value in zip(self.start, self.window.start, strict=True):
            self.model.add_hint(variable, value)

    def minimize_sum(self) -> None:
        """The longest path of each rank, summed, and before that the longest of all."""
        longest = self.model.new_int_var(self.window.least, self.limit, "")
        own: list[cp_model.LinearExprT] = []
        for tasks in self.window.groups:
            own.append(most := self.model.new_int_var(0, self.limit, ""))
            for task in tasks:
                self.model.add(most >= self.end(task) + self.window.tail[task])
            self.model.add(longest >= most)
        self.model.minimize(longest * len(own) * 2 + cp_model.LinearExpr.sum(own))

    def _hold(self, room: int, held: Sequence[Occupied]) -> None:
        intervals = []
        for first, last, _ in held:
            begin = self.first if first == FOREVER else self.start[first]
            end = self._until(last)
            size = self.model.new_int_var(0, self.limit, "")
            intervals.append(self.model.new_interval_var(begin, size, end, ""))
        amounts = [amount for *_, amount in held]
        self.model.add_cumulative(intervals, amounts, min(room, sum(amounts)))

    def _until(self, last: int) -> cp_model.LinearExprT:
        if last == FOREVER:
            return self.limit
        return self.end(last) if last >= 0 else -2 - last

    def _ended(self, before: int, after: int) -> cp_model.IntVar:
        literal = self.model.new_bool_var("")
        self.model.add(self.start[after] >= self.end(before)).only_enforce_if(literal)
        return literal


def search(window: Window, budget: Budget, work: float, *, limit: int | None) -> WindowResult:
    """Starts within ``limit``, or without one better starts than are known.

    Parameters
    ----------
    work
        Of CP-SAT's own count, at most.
    limit
        Ticks; None for the window's own.
    """
    model = WindowModel(window, window.limit if limit is None else limit)
    model.build()
    if limit is None:
        model.minimize_sum()
    solver = CpSatSolver()
    solver.parameters.max_deterministic_time = work
    solver.parameters.linearization_level = 0
    solver.parameters.use_dynamic_precedence_in_disjunctive = True
    solver.parameters.use_disjunctive_constraint_in_cumulative = False
    solver.solve(model.model, budget)
    if solver.is_found:
        return WindowResult(start=[solver.value(start) for start in model.start])
    return WindowResult(is_refuted=solver.is_refuted)
