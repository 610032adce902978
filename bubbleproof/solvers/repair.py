"""Repair: the valid schedule that moves the fewest tasks of a broken one.

A task *keeps its place* if it comes after every earlier task that keeps its place on the same
resource, in the order given. The others are moved, and so are tasks that are missing; tasks that
are foreign or stand twice are dropped. CP-SAT finds the largest set that can keep its place in some
schedule; the best schedule with that set in its order is then an ordinary solve.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from ortools.sat.python import cp_model

from bubbleproof.solvers.bounds import Bounds, lower_bounds
from bubbleproof.solvers.demands import Demands
from bubbleproof.solvers.encoding import Encoding
from bubbleproof.solvers.engines import Budget
from bubbleproof.solvers.engines.cpsat import CpSatModel, run
from bubbleproof.solvers.engines.thread import run_interruptibly
from bubbleproof.solvers.options import SolveOptions
from bubbleproof.solvers.result import Result
from bubbleproof.solvers.search import Search
from bubbleproof.solvers.starts import schedule_of_starts
from bubbleproof.theory.actions import NONE
from bubbleproof.theory.problem import Problem
from bubbleproof.theory.schedule import Program
from bubbleproof.theory.timing import earliest_starts

Row = tuple[int, int]  # (task, resource)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """``moved``: (task, resource) rows that stand elsewhere in the order now; ``added``: missing
    ones; ``num_dropped`` rows were foreign, repeated or on a wrong resource. ``is_fewest``: the
    engine claims that fewer moves do not suffice. ``result`` holds the schedule.
    """

    moved: tuple[Row, ...]
    added: tuple[Row, ...]
    num_dropped: int
    is_fewest: bool
    result: Result

    @property
    def num_moves(self) -> int:
        return len(self.moved) + len(self.added) + self.num_dropped


def repair(
    problem: Problem, program: Program, options: SolveOptions | None = None
) -> Repair | None:
    """The nearest valid schedule, and the shortest of those with the same tasks in place.

    None where no schedule was found in the time given (or there is none: ``explain`` tells).
    """
    options = options or SolveOptions()
    began = time.perf_counter()
    given, num_dropped = _known(problem, program)
    model = _RepairModel(Encoding(problem, _plain_bounds(problem)), given)
    model.build()
    model.model.minimize(sum(1 - keep for keep in model.keeps.values()))
    budget = Budget(
        deadline=began + options.time_limit / 2,
        seed=options.seed,
        threads=options.threads,
        stop=options.stop,
    )
    found = run_interruptibly(lambda: model.search(budget), options.stop)
    if found is None:
        return None
    kept, start, is_fewest = found
    orders = [pair for rows in given for pair in pairwise(row for row in rows if row in kept)]
    demands = Demands(orders=tuple((before, after) for (before, _), (after, _) in orders))
    left = max(0.01, options.time_limit - (time.perf_counter() - began))
    search = Search(problem, replace(options, time_limit=left), demands=demands)
    first = schedule_of_starts(problem, start)
    result = search.run([("repair", first.program)])
    if result.schedule is None:
        return None
    rows = {row for ranked in given for row in ranked}
    homes = zip(problem.occupancy.task.tolist(), problem.occupancy.resource.tolist(), strict=True)
    return Repair(
        moved=tuple(sorted(rows - kept)),
        added=tuple(row for row in homes if row not in rows),
        num_dropped=num_dropped,
        is_fewest=is_fewest,
        result=result,
    )


def _known(problem: Problem, program: Program) -> tuple[list[list[Row]], int]:
    """The rows of each resource that name a task of it, each once, and the number of others."""
    homes = set(
        zip(problem.occupancy.task.tolist(), problem.occupancy.resource.tolist(), strict=True)
    )
    given: list[list[Row]] = [[] for _ in problem.resources]
    seen: set[Row] = set()
    task = problem.locate(program.actions)
    for row in zip(task.tolist(), program.resource.tolist(), strict=True):
        if row[0] != NONE and row in homes and row not in seen:
            seen.add(row)
            given[row[1]].append(row)
    return given, len(task) - len(seen)


def _plain_bounds(problem: Problem) -> Bounds:
    """Heads and tails without the index order: here microbatches have names that matter."""
    edges, duration = problem.edges, problem.duration
    heads = earliest_starts(duration, edges.before, edges.after, edges.lag)
    tails = earliest_starts(duration, edges.after, edges.before, edges.lag)
    if heads is None or tails is None:
        raise ValueError("the precedences have a cycle: no schedule can be repaired to fit them")
    nothing = replace(lower_bounds(problem).best, bound=0)
    return Bounds(order=None, edges=edges, heads=heads, tails=tails, best=nothing)


class _RepairModel(CpSatModel):
    """The scheduling model with a boolean per given row: it keeps its place."""

    def __init__(self, encoding: Encoding, given: list[list[Row]]) -> None:
        super().__init__(encoding)
        self.given = given
        self.keeps: dict[Row, cp_model.IntVar] = {}

    def build(self) -> None:
        """Add every family, and the places."""
        super().build()
        for rows in self.given:
            self._add_places(rows)

    def _add_places(self, rows: list[Row]) -> None:
        """A row that keeps its place starts after the latest end of those before it that do."""
        reached: cp_model.IntVar | None = None
        for row in rows:
            task = row[0]
            keep = self.keeps[row] = self.model.new_bool_var("")
            level = self.model.new_int_var(0, self.encoding.horizon, "")
            self.model.add(level >= self.end(task)).only_enforce_if(keep)
            if reached is not None:
                self.model.add(level >= reached)
                self.model.add(self.start[task] >= reached).only_enforce_if(keep)
            reached = level

    def search(self, budget: Budget) -> tuple[set[Row], np.ndarray, bool] | None:
        """(rows that keep their place, starts, whether none can keep more), or None."""
        solver = cp_model.CpSolver()
        outcome = run(self, budget, solver)
        if outcome.start is None:
            return None
        kept = {row for row, keep in self.keeps.items() if solver.boolean_value(keep)}
        return kept, outcome.start, outcome.bound == len(self.keeps) - len(kept)
