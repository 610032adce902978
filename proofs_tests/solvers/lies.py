"""Lies of engines: a true answer falsified, what it is put in place of, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from unittest.mock import patch

import numpy as np

from bubbleproof.faults import FaultError
from bubbleproof.solvers import Result, SolveOptions, bound_search, search
from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.encoding import Encoding
from bubbleproof.solvers.engines import Budget, EngineOutcome, cpsat
from bubbleproof.solvers.engines.engine import Engine
from bubbleproof.solvers.lists.modulo_lists import ModuloLists
from bubbleproof.solvers.refutation.propagation import PropagationResult
from bubbleproof.theory.model.actions import Action, Ints
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.patience import PATIENCE

NOTHING = PropagationResult(certificate=None, schedule=None)


Lie = Callable[[EngineOutcome], EngineOutcome]


QUICK = SolveOptions(time_limit=PATIENCE, threads=1)


# 1F1B's: (m + p - 1)(tF + tB) = 12 ticks at least; one microbatch after the other takes 18.
SMALL = Pipeline(num_ranks=2, num_microbatches=3)


PROBLEM = SMALL.problem()


def in_turn(pipeline: Pipeline) -> tuple[str, Program]:
    """One microbatch after the other, under its name."""
    rows = [
        [Action.parse(f"{g}{kind}{j}") for j in range(pipeline.num_microbatches) for kind in "FB"]
        for g in range(pipeline.num_ranks)
    ]
    return "in turn", Program.from_orders(rows)


@cache
def optimal(pipeline: Pipeline) -> Ints:
    """The starts of a best schedule."""
    problem = pipeline.problem()
    budget = Budget(deadline=float("inf"), threads=1)
    found = cpsat.search(Encoding(problem, lower_bounds(problem)), None, budget).start
    return np.zeros(0, dtype=np.int64) if found is None else found


def shown(result: Result) -> str:
    proof = "" if result.proof is None else f" {result.proof.name}"
    return f"{result.status.name} {result.value} bound {result.best_bound}{proof}"


def reasoned(result: Result) -> str:
    """With the certified bound and the reason."""
    return f"{shown(result)}, {result.lower_bound} is certified; {result.reason}"


def told(work: Callable[[], str]) -> str:
    """What came of it; only a fault is expected, another error is told by its name."""
    try:
        return work()
    except FaultError as error:
        return f"fault: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def answering(lie: Lie, truth: EngineOutcome | None = None) -> Callable[[str], Engine]:
    """In place of ``engine``: by any name, the truth (CP-SAT's unless given) falsified."""

    def searched(encoding: Encoding, hint: Ints | None, budget: Budget) -> EngineOutcome:
        return lie(truth or cpsat.search(encoding, hint, budget))

    return lambda _: searched


def alone(
    lie: Lie, truth: EngineOutcome | None = None, *, is_certifying: bool = False
) -> ExitStack:
    """While it is open nothing but the engine finds a schedule or a bound."""
    stack = ExitStack()
    stack.enter_context(patch.object(search, "listed_programs", lambda *_: iter(())))
    stack.enter_context(patch.object(ModuloLists, "turns", lambda _: iter(())))
    stack.enter_context(patch.object(search, "engine", answering(lie, truth)))
    if not is_certifying:
        stack.enter_context(patch.object(search, "NARROWING", 0))
        stack.enter_context(patch.object(bound_search, "CERTIFYING", 0))
    return stack


def starts() -> Ints:
    """Those of a best schedule of ``PROBLEM``."""
    return optimal(SMALL)


def truth() -> EngineOutcome:
    """What an engine that does not lie would say."""
    return EngineOutcome(start=starts(), bound=12)


def _with_the_last_at_0(found: Ints) -> Ints:
    return np.where(found < found.max(), found, 0)


LIES: dict[str, Lie] = {
    "starts at 0": lambda o: replace(o, start=0 * starts()),
    "a start too early": lambda o: replace(o, start=_with_the_last_at_0(starts())),
    "a schedule of another problem": lambda o: replace(
        o, start=optimal(SMALL.with_changes(backward=1))
    ),
    "a schedule of more tasks": lambda o: replace(
        o, start=optimal(SMALL.with_changes(num_microbatches=4))
    ),
    "starts that are no integers": lambda o: replace(o, start=starts() + np.array(0.5)),
    "starts beyond all time": lambda o: replace(o, start=starts() + (1 << 62)),
    "a bound above its schedule": lambda _: EngineOutcome(start=starts(), bound=13),
    "a bound above what is known": lambda _: EngineOutcome(bound=19),
    "a bound that is no integer": lambda o: replace(o, bound=12.5),  # type: ignore[arg-type]  # a lie
    "refuted what is known": lambda _: EngineOutcome(is_refuted=True),
    "refuted its own schedule": lambda _: EngineOutcome(start=starts(), is_refuted=True),
}
