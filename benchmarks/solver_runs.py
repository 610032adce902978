"""One instance through one engine, in a process that can be killed, and what came of it."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Protocol

from benchmarks.instances import Instance, instances
from bubbleproof.solvers import Proof, SolveOptions, Status, solve
from bubbleproof.solvers.choices import solve_choices
from bubbleproof.solvers.result import Result
from bubbleproof.solvers.starts import schedule_of_starts
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify import check

PLAIN = ("plain z3", "plain CBC")
GRACE = 30.0  # seconds beyond twice the limit until a run is killed
Baseline = Callable[[Problem, str, float], tuple[Ints | None, int]]


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


def measure(instance: Instance, engine: str, seconds: float, threads: int) -> Run:
    """Solve, starting from nothing. Precondition: ``can_run``."""
    if engine in PLAIN:
        return _measure_plain(instance, engine, seconds)
    options = SolveOptions(
        engine=engine, objective=instance.objective, time_limit=seconds, threads=threads
    )
    began = time.perf_counter()
    if instance.allowed is not None:
        result = solve_choices(instance.pipeline, instance.allowed, options).result
    else:
        result = solve(instance.problem(), options)
    return _run_of(instance, engine, result, time.perf_counter() - began)


def _run_of(instance: Instance, engine: str, result: Result, seconds: float) -> Run:
    proof = ""
    if result.status is Status.OPTIMAL:
        proof = "certificate" if result.proof is Proof.CERTIFICATE else "engine"
    return Run(
        instance=instance.name, engine=engine, value=result.value, bound=result.best_bound,
        proof=proof, seconds=seconds,
    )  # fmt: skip


def _measure_plain(instance: Instance, engine: str, seconds: float) -> Run:
    problem, began = instance.problem(), time.perf_counter()
    start, bound = _baseline(engine)(problem, instance.objective, seconds)
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


def _baseline(engine: str) -> Baseline:
    if engine == "plain z3":
        from benchmarks.baseline_z3 import plain_z3

        return plain_z3
    from benchmarks.baseline_milp import plain_milp

    return plain_milp


class Runner(Protocol):
    """Something that measures."""

    def run(self, instance: Instance, engine: str) -> Run: ...


class Lane:
    """A worker process that is replaced when it hangs or dies."""

    def __init__(self, seconds: float, threads: int) -> None:
        self.seconds, self.threads = seconds, threads
        self.patience = 2 * seconds + GRACE
        self._begin()

    def _begin(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.ours, theirs = context.Pipe()
        self.process = context.Process(
            target=serve, args=(theirs, self.seconds, self.threads), daemon=False
        )
        self.process.start()
        theirs.close()

    def run(self, instance: Instance, engine: str) -> Run:
        """The measurement, or a note where the worker had to be killed or died."""
        note, began = "killed", time.perf_counter()
        self.ours.send((instance.name, engine))
        try:
            if self.ours.poll(self.patience):
                found: Run = self.ours.recv()
                return found
        except EOFError:
            note = "died"
        self.end()
        self._begin()
        seconds = time.perf_counter() - began
        return Run(instance=instance.name, engine=engine, seconds=seconds, note=note)

    def end(self) -> None:
        """Stop the worker."""
        self.ours.close()
        self.process.kill()
        self.process.join()


def serve(connection: Connection, seconds: float, threads: int) -> None:
    """Measure what is asked for until the other side is gone."""
    known = {instance.name: instance for instance in instances()}
    while True:
        try:
            name, engine = connection.recv()
        except (EOFError, KeyboardInterrupt):
            return
        connection.send(measure(known[name], engine, seconds, threads))
