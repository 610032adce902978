"""Repair: among the valid schedules that move the fewest rows of a broken one, the shortest.

A row *keeps its place* if it comes after every earlier row that keeps its place on the same
resource, in the order given. Of a task that stands there several times one copy may keep its place.
The number of moves counts the rows that do not keep theirs (moved elsewhere, repeated or foreign)
and the tasks that are missing.

CP-SAT finds the most rows that can keep their places in some schedule (``is_fewest``). A plain
search with these rows in their order then gives a schedule, and CP-SAT again looks for a shorter
one over all ways to keep as many (``is_shortest``). Both are claims of the solver; where a schedule
or the places kept contradict it, the repair ends with ``FaultError``. The status and the bound of
``result`` are about the problem alone: about every schedule, whatever it moves.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from ortools.sat.python import cp_model

from bubbleproof.facts import Fact, FactSource
from bubbleproof.faults import FaultError
from bubbleproof.solvers.bounds import Bounds, lower_bounds
from bubbleproof.solvers.demands import Demands
from bubbleproof.solvers.encoding import Encoding
from bubbleproof.solvers.engines import Budget
from bubbleproof.solvers.engines.cpsat import CpSatModel, run
from bubbleproof.solvers.engines.cpsat_solver import CpSatSolver
from bubbleproof.solvers.engines.engine import EngineOutcome
from bubbleproof.solvers.engines.interruption import run_interruptibly
from bubbleproof.solvers.gate import BoundClaim, schedule_from
from bubbleproof.solvers.options import SolveOptions
from bubbleproof.solvers.refutation.contradictions import overfull
from bubbleproof.solvers.result import ProofOrigin, Result, Status
from bubbleproof.solvers.search import Search
from bubbleproof.solvers.search_state import Incumbent, SearchState
from bubbleproof.solvers.solving import solve
from bubbleproof.solvers.starts import starts_by_task
from bubbleproof.theory.model.actions import NONE, Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.timing import earliest_starts
from bubbleproof.theory.pipelines.units import counted
from bubbleproof.verify.certificates.certificate_rule import without_deadlines
from bubbleproof.verify.certificates.index_order import IndexOrder
from bubbleproof.verify.check import check

RepairedRow = tuple[int, int]  # (task, resource)
PlaceInOrder = tuple[int, int]  # (resource, how many known rows stand before it there)
ENGINE = "cpsat (repair)"
FEWEST, PLAIN, ORDERED = 0.5, 0.3, 0.5  # shares of the time left, one after the other


SCOPE = "status and bound are about all schedules of the problem, whatever they move"
UNCERTIFIED = "an uncertified bound of cpsat"
SHOWN = 12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Repair(FactSource):
    """What was moved, and the schedule.

    ``moved``: (task, resource) rows that stand elsewhere in the order now; ``added``: missing
    ones; ``num_dropped`` rows were foreign, repeated or on a wrong resource. ``kept_orders``: the
    (before, after) tasks that follow each other among the rows that kept their places: what the
    schedule keeps beyond the problem's own rules. ``is_fewest``: the engine claims that fewer moves
    do not suffice; ``is_shortest``: it claims, or a bound says, that no repair of as few moves is
    shorter. ``result`` holds the schedule; its status and bound are about the problem alone.
    """

    problem: Problem
    moved: tuple[RepairedRow, ...]
    added: tuple[RepairedRow, ...]
    num_dropped: int
    kept_orders: tuple[tuple[int, int], ...]
    is_fewest: bool
    is_shortest: bool
    result: Result

    @property
    def num_moves(self) -> int:
        return len(self.moved) + len(self.added) + self.num_dropped

    @property
    def schedule(self) -> Schedule | None:
        """The repaired one."""
        return self.result.schedule

    def facts(self) -> list[Fact]:
        """What was moved; the result states its own."""
        fewest = f"no fewer suffice: {UNCERTIFIED}" if self.is_fewest else "fewer may suffice"
        moved, added = (self._labels(task for task, _ in rows) for rows in (self.moved, self.added))
        kept = ["<".join(self._labels(pair)) for pair in self.kept_orders]  # as --require takes it
        repeated = f"{counted(self.num_dropped, 'row')}: a repetition, or no task of the resource"
        dropped = repeated if self.num_dropped else ""
        return [
            Fact(
                key="moves",
                label="moves",
                value=self.num_moves,
                told=f"{self.num_moves} ({fewest})",
            ),
            Fact(key="is_fewest", value=self.is_fewest),
            Fact(key="is_shortest", value=self.is_shortest),
            Fact(key="moved", label="moved" if moved else "", value=moved, told=_shown(moved)),
            Fact(key="added", label="added" if added else "", value=added, told=_shown(added)),
            Fact(
                key="dropped",
                label="dropped" if dropped else "",
                value=self.num_dropped,
                told=dropped,
            ),
            Fact(key="kept_orders", label="kept orders", value=kept, told=_shown(kept)),
            Fact(label="shortest", value=self.is_shortest, told=self._shortest()),
            Fact(key="scope", label="scope", value=SCOPE),
        ]

    def _labels(self, tasks: Iterable[int]) -> list[str]:
        return [self.problem.label(task) for task in tasks]

    def _shortest(self) -> str:
        """How good the schedule is among the repairs of as few moves."""
        if self.result.proof is ProofOrigin.CERTIFICATE:
            return "no schedule of the problem is shorter"
        if self.is_shortest:
            return f"no repair of as few moves is shorter: {UNCERTIFIED}"
        return "a repair of as few moves may be shorter"


def _shown(words: Sequence[str]) -> str:
    shown = " ".join(words[:SHOWN])
    return shown if len(words) <= SHOWN else f"{shown} and {len(words) - SHOWN} more"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoRepair(FactSource):
    """No repair was found; ``plain`` is what a search says that moves whatever it likes."""

    plain: Result

    @property
    def status(self) -> Status:
        """That the problem has no schedule, or that none was found in the time."""
        is_impossible = self.plain.status is Status.INFEASIBLE
        return Status.INFEASIBLE if is_impossible else Status.UNKNOWN

    def facts(self) -> list[Fact]:
        """The status, and why there is no schedule where there is none."""
        reason = self.plain.reason if self.status is Status.INFEASIBLE else ""
        return [
            Fact(key="status", label="status", value=self.status.name),
            Fact(key="statement", value=self.status.value),
            Fact(key="reason", label="reason" if reason else "", value=reason),
        ]


def repair(
    problem: Problem, program: Program, options: SolveOptions | None = None
) -> Repair | None:
    """A valid schedule by the fewest moves, and the shortest of those that was found.

    None where no schedule was found in the time given (or there is none: ``explain`` tells).
    """
    return _Repairing(problem, program, options or SolveOptions()).run()


class _Repairing(SearchState):
    """One repair as it improves: which places are kept, and the best schedule with them."""

    def __init__(self, problem: Problem, program: Program, options: SolveOptions) -> None:
        super().__init__(replace(options, objective="makespan", within=None))
        self.problem = problem
        self.given, self.num_foreign = _known(problem, program)
        self.bounds = _plain_bounds(problem)
        self.kept: frozenset[PlaceInOrder] = frozenset()

    def run(self) -> Repair | None:
        if overfull(self.problem, self.bounds.order) is not None:  # of which no engine is told
            return None
        is_fewest = self._find_fewest()
        if is_fewest is None:
            return None
        plain = solve(self.problem, self.options, whole=self.budget(PLAIN))
        self._search_orders()
        is_shortest = self.makespan <= plain.lower_bound or self._shorten(plain.lower_bound)
        return self._repair(is_fewest, is_shortest, plain)

    def _find_fewest(self) -> bool | None:
        """Keep the most places; whether the engine claims the most, None without a schedule."""
        model = _RepairModel(Encoding(self.problem, self.bounds), self.given)
        model.build()
        model.model.maximize(sum(model.keeps.values()))
        outcome, kept = self._call(model, FEWEST)
        if outcome.start is None:
            if outcome.is_refuted:
                self._require_none()
            return None
        self._accept(kept, outcome.start)
        if outcome.bound is not None and outcome.bound < len(kept):
            raise FaultError(ENGINE, f"at most {outcome.bound} places to keep", f"{len(kept)} are")
        return outcome.bound == len(kept)

    def _require_none(self) -> None:
        """Raise ``FaultError`` where a plain search finds the schedule that the engine denies."""
        plain = solve(self.problem, self.options, whole=self.budget(PLAIN))
        if plain.schedule is not None:
            found = f"the checker accepts one of {plain.makespan} ({plain.origin})"
            raise FaultError(ENGINE, "the answer that there is no schedule", found)

    def _search_orders(self) -> None:
        """The best schedule with the kept rows in their order, by an ordinary search."""
        demands = Demands(orders=tuple(self._kept_orders()))
        first = [] if self.best is None else [("repair", self.best.schedule.program)]
        result = Search(
            self.problem, self.options, demands=demands, whole=self.budget(ORDERED)
        ).run(first)
        if result.schedule is not None:
            self._keep_if_shorter(self.kept, result.schedule)

    def _shorten(self, least: int) -> bool:
        """A shorter schedule with as many places kept; whether the engine claims the shortest."""
        encoding = Encoding(self.problem, self.bounds, limit=self.makespan - 1, least=least)
        if encoding.is_hopeless:
            return True
        model = _RepairModel(encoding, self.given)
        model.build()
        model.model.add(sum(model.keeps.values()) >= len(self.kept))
        model.model.minimize(model.goal)
        outcome, kept = self._call(model, 1.0)
        if outcome.start is not None:
            self._accept(kept, outcome.start)
        bound = encoding.limit + 1 if outcome.is_refuted else outcome.bound or 0
        BoundClaim(who=ENGINE, bound=bound).require(self.makespan, "repair")
        return bound == self.makespan

    def _call(
        self, model: _RepairModel, share: float
    ) -> tuple[EngineOutcome, frozenset[PlaceInOrder]]:
        budget = self.budget(share)
        return run_interruptibly(lambda: model.search(budget), self.options.stop)

    def _accept(self, kept: frozenset[PlaceInOrder], start: Ints) -> None:
        """Keep an engine's schedule if it is shorter, or the first; its places are judged, too."""
        schedule = schedule_from(ENGINE, start, self.problem)
        self._require_kept(kept, schedule)
        self._keep_if_shorter(kept, schedule)

    def _require_kept(self, kept: frozenset[PlaceInOrder], schedule: Schedule) -> None:
        """Raise ``FaultError`` where a row leaves the place that the engine says it keeps."""
        start = starts_by_task(self.problem, schedule)
        for resource, tasks in enumerate(self.given):
            rows = [task for at, task in enumerate(tasks) if (resource, at) in kept]
            for before, after in pairwise(rows):
                if before == after or start[after] < start[before] + self.problem.duration[before]:
                    names = self.problem.label(before), self.problem.label(after)
                    claim = f"{names[1]} after {names[0]} among the rows that keep their places"
                    raise FaultError(ENGINE, claim, "its schedule has them in another order")

    def _keep_if_shorter(self, kept: frozenset[PlaceInOrder], schedule: Schedule) -> None:
        """Keep a schedule that the checker accepts if it is shorter, or the first."""
        verdict = check(self.problem, schedule)
        if not verdict.ok or verdict.measured is None:
            return
        if self.value is None or verdict.measured.makespan < self.value:
            self.kept = kept
            self.offer(
                Incumbent(
                    problem=self.problem,
                    schedule=schedule,
                    measured=verdict.measured,
                    origin="repair",
                )
            )

    @property
    def makespan(self) -> int:
        """That of the best schedule so far, in ticks."""
        return self.value or 0

    def _kept_orders(self) -> Iterable[tuple[int, int]]:
        for resource, tasks in enumerate(self.given):
            kept = [task for at, task in enumerate(tasks) if (resource, at) in self.kept]
            yield from pairwise(kept)

    def _repair(self, is_fewest: bool, is_shortest: bool, plain: Result) -> Repair:
        """The answer; ``plain`` says what is known of the problem, whatever is moved."""
        if plain.status is Status.INFEASIBLE:
            found = f"the checker accepts one of {self.makespan} (repair)"
            raise FaultError("an engine", "the answer that there is no schedule", found)
        rows = {(task, home) for home, tasks in enumerate(self.given) for task in tasks}
        kept = {(self.given[home][at], home) for home, at in self.kept}
        num_repeated = sum(map(len, self.given)) - len(rows)
        is_best = self.makespan <= plain.best_bound
        return Repair(
            problem=self.problem,
            moved=tuple(sorted(rows - kept)),
            added=tuple(row for row in _homes(self.problem) if row not in rows),
            num_dropped=self.num_foreign + num_repeated,
            kept_orders=tuple(self._kept_orders()),
            is_fewest=is_fewest,
            is_shortest=is_shortest,
            result=replace(
                plain,
                status=Status.OPTIMAL if is_best else Status.FEASIBLE,
                found=None if self.best is None else self.best.found,
                origin="repair",
                seconds=time.perf_counter() - self.began,
                reason="",
                is_claimed=False,
            ),
        )


def _homes(problem: Problem) -> list[RepairedRow]:
    """Every (task, resource) that the problem asks for."""
    occupancy = problem.occupancy
    return list(zip(occupancy.task.tolist(), occupancy.resource.tolist(), strict=True))


def _known(problem: Problem, program: Program) -> tuple[list[list[int]], int]:
    """The tasks on each resource in the order given, repeated ones too; how many rows are foreign.

    Foreign: no task of the problem, or not one of this resource.
    """
    homes = set(_homes(problem))
    given: list[list[int]] = [[] for _ in problem.resources]
    num_foreign = 0
    tasks = problem.locate(program.actions)
    for task, resource in zip(tasks.tolist(), program.resource.tolist(), strict=True):
        if task != NONE and (task, resource) in homes:
            given[resource].append(task)
        else:
            num_foreign += 1
    return given, num_foreign


def _plain_bounds(problem: Problem) -> Bounds:
    """Heads and tails without the index order: here microbatches have names that matter.

    Each task is a class of its own, so that of none of them anything is said. Of deadlines only the
    engine is told.
    """
    problem = without_deadlines(problem)
    edges, duration = problem.edges, problem.duration
    heads = earliest_starts(duration, edges.before, edges.after, edges.lag)
    tails = earliest_starts(duration, edges.after, edges.before, edges.lag)
    if heads is None or tails is None:
        raise ValueError("the precedences have a cycle: no schedule can be repaired to fit them")
    nothing = replace(lower_bounds(problem).best, bound=0)
    order = IndexOrder(problem, [np.arange(problem.num_tasks)[:, None]])
    return Bounds(order=order, edges=edges, heads=heads, tails=tails, best=nothing)


class _RepairModel(CpSatModel):
    """The scheduling model with a boolean per given row: it keeps its place."""

    def __init__(self, encoding: Encoding, given: list[list[int]]) -> None:
        super().__init__(encoding)
        self.given = given
        self.keeps: dict[PlaceInOrder, cp_model.IntVar] = {}

    def build(self) -> None:
        """Add every family, and the places."""
        super().build()
        for resource, tasks in enumerate(self.given):
            self._add_places(resource, tasks)
            self._keep_one_copy(resource, tasks)

    def _add_places(self, resource: int, tasks: list[int]) -> None:
        """A row that keeps its place starts after the latest end of those before it that do."""
        reached: cp_model.IntVar | None = None
        for at, task in enumerate(tasks):
            keep = self.keeps[resource, at] = self.model.new_bool_var("")
            level = self.model.new_int_var(0, self.encoding.horizon, "")
            self.model.add(level >= self.end(task)).only_enforce_if(keep)
            if reached is not None:
                self.model.add(level >= reached)
                self.model.add(self.start[task] >= reached).only_enforce_if(keep)
            reached = level

    def _keep_one_copy(self, resource: int, tasks: list[int]) -> None:
        """Of the rows of one task at most one keeps its place."""
        copies: dict[int, list[cp_model.IntVar]] = {}
        for at, task in enumerate(tasks):
            copies.setdefault(task, []).append(self.keeps[resource, at])
        for keeps in copies.values():
            if len(keeps) > 1:
                self.model.add_at_most_one(keeps)

    def search(self, budget: Budget) -> tuple[EngineOutcome, frozenset[PlaceInOrder]]:
        """What CP-SAT answers, and the places kept in the schedule it found, if any."""
        solver = CpSatSolver()
        outcome = run(self, budget, solver)
        if outcome.start is None:
            return outcome, frozenset()
        kept = frozenset(place for place, keep in self.keeps.items() if solver.value(keep))
        return outcome, kept
