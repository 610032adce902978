"""One instance through one engine, in a process that can be killed, and what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.baselines import plain_milp, plain_z3
from benchmarks.child_process import answers
from benchmarks.instances import Instance
from bubbleproof.solvers import ProofOrigin, SolveOptions, Status, solve
from bubbleproof.solvers.choices.solving_choices import solve_choices
from bubbleproof.solvers.starts import schedule_of_starts
from bubbleproof.verify import check

BASELINES = {"plain z3": plain_z3, "plain CBC": plain_milp}
PLAIN = tuple(BASELINES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """``value`` is that of a checked schedule (ticks), ``bound`` what is proved or claimed.

    ``proof`` is ``certificate`` or ``engine`` where the two meet, else empty; ``note`` says why
    nothing was measured.
    """

    instance: str
    engine: str
    value: int | None = None
    bound: int = 0
    proof: str = ""
    seconds: float = 0.0
    note: str = ""

    @property
    def is_closed(self) -> bool:
        return bool(self.proof)


def can_run(instance: Instance, engine: str) -> bool:
    """Open choices are solved by ``auto`` alone."""
    return instance.allowed is None or engine == "auto"


def measure(instance: Instance, engine: str, limit: float, threads: int) -> Run:
    """Solve, starting from nothing. Precondition: ``can_run``."""
    if engine in PLAIN:
        return _measure_plain(instance, engine, limit)
    options = SolveOptions(
        engine=engine, objective=instance.objective, time_limit=limit, threads=threads
    )
    began = time.perf_counter()
    if instance.allowed is not None:
        result = solve_choices(instance.pipeline, instance.allowed, options).result
    else:
        result = solve(instance.problem(), options)
    seconds, proof = time.perf_counter() - began, ""
    if result.status is Status.OPTIMAL:
        proof = "certificate" if result.proof is ProofOrigin.CERTIFICATE else "engine"
    return Run(
        instance=instance.name,
        engine=engine,
        value=result.value,
        bound=result.best_bound,
        proof=proof,
        seconds=seconds,
    )


def _measure_plain(instance: Instance, engine: str, seconds: float) -> Run:
    problem, began = instance.problem(), time.perf_counter()
    start, bound = BASELINES[engine](problem, instance.objective, seconds)
    spent = time.perf_counter() - began
    value = None
    if start is not None:
        verdict = check(problem, schedule_of_starts(problem, start))
        if verdict.ok and verdict.measured is not None:
            is_makespan = instance.objective == "makespan"
            value = verdict.measured.makespan if is_makespan else verdict.measured.span_idle
    proof = "engine" if value is not None and value <= bound else ""
    return Run(
        instance=instance.name, engine=engine, value=value, bound=bound, proof=proof, seconds=spent
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """Measures each run in a process of its own, which is killed where it hangs.

    ``seconds`` limits a search, ``patience`` (seconds) the process.
    """

    seconds: float
    threads: int
    patience: float

    def run(self, instance: Instance, engine: str) -> Run:
        """The measurement, or a note where the process had to be killed or died."""
        began, options = time.perf_counter(), (self.seconds, self.threads)
        try:
            return next(answers(self.patience, _tell, instance, engine, *options))
        except TimeoutError:
            note = "killed"
        except ChildProcessError:
            note = "died"
        seconds = time.perf_counter() - began
        return Run(instance=instance.name, engine=engine, seconds=seconds, note=note)


def _tell(
    tell: Callable[[Run], None], instance: Instance, engine: str, seconds: float, threads: int
) -> None:
    tell(measure(instance, engine, seconds, threads))
