"""Solving: bounds first, then list scheduling and published orders, then an exact engine.

Most instances need no engine: a greedy or published schedule meets Jackson's bound. Everything is
judged by ``verify`` before it is returned: a schedule by the checker, a bound by its certificate.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import get_args

import numpy as np

from bubbleproof.solvers.bounds import Bounds, lower_bounds
from bubbleproof.solvers.encoding import Encoding, Objective
from bubbleproof.solvers.engines import ENGINES, Budget, engine
from bubbleproof.solvers.greedy import greedy_programs
from bubbleproof.solvers.result import Result, Status
from bubbleproof.theory.actions import NONE, Ints
from bubbleproof.theory.measures import Measures
from bubbleproof.theory.problem import Problem
from bubbleproof.theory.schedule import Program, Schedule
from bubbleproof.theory.timing import UntimedProgram, find_cycle, left_shift
from bubbleproof.verify.certificate import OneMachine, check_certificate
from bubbleproof.verify.check import check

OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
Progress = Callable[[str, int | None, int, float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveOptions:
    """How to solve: engine, objective, time limit in seconds, seed and number of threads.

    ``auto`` calls an engine (CP-SAT) only when the bounds leave a gap. ``progress`` is called with
    (who, best value or None, lower bound, seconds) whenever something improves. Setting ``stop``
    from another thread ends the search with what it has.
    """

    engine: str = "auto"
    objective: Objective = "makespan"
    time_limit: float = 60.0
    seed: int = 1
    threads: int = 2
    progress: Progress | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        names = ("auto", *ENGINES)
        if self.engine not in names:
            raise ValueError(f"engine must be one of {' '.join(names)}, got {self.engine!r}")
        if self.objective not in OBJECTIVES:
            known = " ".join(OBJECTIVES)
            raise ValueError(f"objective must be one of {known}, got {self.objective!r}")
        if not self.time_limit > 0:
            raise ValueError(f"time limit must be above 0 seconds, got {self.time_limit}")
        if not 0 <= self.seed < 1 << 31:
            raise ValueError(f"seed must be 0 to 2**31 - 1, got {self.seed}")
        if self.threads < 1:
            raise ValueError(f"threads must be 1 or more, got {self.threads}")


def solve(
    problem: Problem,
    options: SolveOptions | None = None,
    starts: Iterable[tuple[str, Program]] = (),
) -> Result:
    """The best schedule found, with a checked bound.

    ``starts`` are named programs to begin from (published orders); those that do not fit are passed
    over. A time-out is never INFEASIBLE. Raises ``ValueError`` for a problem that computes nothing.
    """
    if (problem.rank_of_task == NONE).all():
        raise ValueError("a problem to solve needs at least one task on a rank, got none")
    return _Solve(problem, options or SolveOptions()).run(starts)


class _Solve:
    """One solve: the incumbent and the bounds as they improve."""

    def __init__(self, problem: Problem, options: SolveOptions) -> None:
        self.problem, self.options = problem, options
        self.began = time.perf_counter()
        self.schedule: Schedule | None = None
        self.measured: Measures | None = None
        self.origin = ""
        self.bounds: Bounds = lower_bounds(problem)
        self.certificate: OneMachine | None = None
        self.engine_bound: int | None = None

    def run(self, starts: Iterable[tuple[str, Program]]) -> Result:
        if (reason := self._contradiction()) is not None:
            return self._result(Status.INFEASIBLE, reason)
        if self.bounds.is_cyclic:
            return self._cyclic()
        self._certify()
        for name, program in starts:
            self._try_program(name, program)
        for program in greedy_programs(self.problem, self.bounds):
            if self._closed:
                break
            self._try_program("greedy", program)
        if self.options.engine != "auto" or not self._closed:
            infeasible = self._call_engine()
            if infeasible and self.schedule is None:
                reason = f"{self._engine} refuted every schedule (not certified)"
                return self._result(Status.INFEASIBLE, reason)
        if self.schedule is None:
            return self._result(Status.UNKNOWN)
        return self._result(Status.OPTIMAL if self._closed else Status.FEASIBLE)

    @property
    def _engine(self) -> str:
        return "cpsat" if self.options.engine == "auto" else self.options.engine

    @property
    def _value(self) -> int | None:
        """The objective's value of the incumbent."""
        return None if self.measured is None else self._value_of(self.measured)

    def _value_of(self, measured: Measures) -> int:
        is_makespan = self.options.objective == "makespan"
        return measured.makespan if is_makespan else measured.span_idle

    @property
    def _closed(self) -> bool:
        """Whether the checked schedule meets a bound."""
        return self._value is not None and self._value <= max(
            self._lower_bound, self.engine_bound or 0
        )

    @property
    def _lower_bound(self) -> int:
        return 0 if self.certificate is None else self.certificate.bound

    def _certify(self) -> None:
        if self.options.objective != "makespan":
            return
        finding = check_certificate(self.problem, self.bounds.best)
        assert finding.ok, f"our own certificate was refused: {finding.violations}"
        self.certificate = self.bounds.best
        self._report("bounds")

    def _contradiction(self) -> str | None:
        """A reason that no schedule exists, found without search."""
        problem, order = self.problem, self.bounds.order
        for store in problem.stores:
            if store.capacity is not None and store.base > store.capacity:
                return (
                    f"{store.name}: its base load {store.base} exceeds its capacity "
                    f"{store.capacity} {problem.memory_unit}"
                )
        for life in order.lifecycles if order is not None else ():
            limit = order.limit(life) if order is not None else None
            if limit is not None and limit < 1:
                store = problem.stores[life.store]
                task = problem.label(int(order.members[life.first, 0])) if order else ""
                return (
                    f"{store.name}: {task} needs {life.acquired} beside the base load "
                    f"{store.base}, but the capacity is {store.capacity} {problem.memory_unit}"
                )
        return None

    def _cyclic(self) -> Result:
        """A cycle of waits that takes time contradicts itself; others we cannot time."""
        edges, duration = self.bounds.edges, self.problem.duration
        cycle = find_cycle(self.problem.num_tasks, edges.before, edges.after)
        waits = [self.problem.label(task) for task in cycle]
        chain = " waits for ".join([*waits, waits[0]])
        ticks = 0
        for after, before in pairwise([*cycle, cycle[0]]):
            between = (edges.before == before) & (edges.after == after)
            ticks += int(duration[before] + edges.lag[between].max())
        if ticks > 0:
            return self._result(Status.INFEASIBLE, f"the precedences have a cycle: {chain}")
        reason = f"a cycle of precedences that takes no time cannot be solved: {chain}"
        return self._result(Status.UNKNOWN, reason)

    def _try_program(self, name: str, program: Program) -> None:
        try:
            schedule = left_shift(self.problem, program)
        except UntimedProgram:
            return
        self._try_schedule(name, schedule)

    def _try_schedule(self, name: str, schedule: Schedule) -> bool:
        """Whether the checker accepts the schedule; keep it if it is the best so far."""
        verdict = check(self.problem, schedule)
        if not verdict.ok or verdict.measured is None:
            return False
        if self._value is None or self._value_of(verdict.measured) < self._value:
            self.schedule, self.measured, self.origin = schedule, verdict.measured, name
            self._report(name)
        return True

    def _call_engine(self) -> bool:
        """Let an engine improve the incumbent; whether it claims that no schedule exists at all."""
        options = self.options
        encoding = Encoding(
            self.problem, self.bounds, objective=options.objective, limit=self._value
        )
        budget = Budget(
            deadline=self.began + options.time_limit,
            seed=options.seed,
            threads=options.threads,
            report=self._engine_progress,
            stop=options.stop,
        )
        outcome = engine(self._engine)(encoding, self._starts_by_task(), budget)
        assert not outcome.is_refuted or self.schedule is None, "a checked schedule was refuted"
        if outcome.start is not None:
            accepted = self._try_schedule(
                self._engine, schedule_of_starts(self.problem, outcome.start)
            )
            assert accepted, "the engine returned a schedule that the checker refuses"
        if outcome.bound is not None and outcome.bound > self._lower_bound:
            best = self._value
            self.engine_bound = outcome.bound if best is None else min(outcome.bound, best)
        return outcome.is_refuted

    def _starts_by_task(self) -> Ints | None:
        if self.schedule is None:
            return None
        start = np.zeros(self.problem.num_tasks, dtype=np.int64)
        start[self.problem.locate(self.schedule.program.actions)] = self.schedule.start
        return np.asarray(start - start.min(), dtype=np.int64)

    def _engine_progress(self, value: int | None, bound: int | None) -> None:
        if self.options.progress is not None:
            seconds = time.perf_counter() - self.began
            best = self._value if value is None else value
            known = max(bound or 0, self._lower_bound)
            self.options.progress(self._engine, best, known, seconds)

    def _report(self, who: str) -> None:
        if self.options.progress is not None:
            seconds = time.perf_counter() - self.began
            self.options.progress(who, self._value, self._lower_bound, seconds)

    def _result(self, status: Status, reason: str = "") -> Result:
        return Result(
            status=status,
            schedule=self.schedule,
            measured=self.measured,
            lower_bound=self._lower_bound,
            certificate=self.certificate,
            engine_bound=self.engine_bound,
            origin=self.origin,
            seconds=time.perf_counter() - self.began,
            reason=reason,
            objective=self.options.objective,
        )


def schedule_of_starts(problem: Problem, start: Ints) -> Schedule:
    """The schedule with the given start per task: rows by resource, then start, then end."""
    occupancy = problem.occupancy
    begin = start[occupancy.task]
    end = begin + problem.duration[occupancy.task]
    rows = np.lexsort((end, begin, occupancy.resource))
    task = occupancy.task[rows]
    program = Program(actions=problem.actions.take(task), resource=occupancy.resource[rows])
    return Schedule(program=program, start=start[task])
