"""Engines that lie, through every search; prints what came of each lie as one JSON object.

Run as ``python -O -m proofs_tests.solvers.lying_engines``: without asserts. Each lie replaces one
untrusted part by one that falsifies a true answer. The value is ``fault: ...``, or what the search
returned: status, value, best bound and what it rests on.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from bubbleproof.cli import main
from bubbleproof.solvers import (
    Result,
    SolveOptions,
    Status,
    bound_search,
    repair_search,
    solve,
)
from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.choices import choices_search
from bubbleproof.solvers.choices.solving_choices import solve_variants
from bubbleproof.solvers.engines import ENGINES, Budget, EngineOutcome, cpsat
from bubbleproof.solvers.engines.choices_frame import Choice, Frame, choices_engine
from bubbleproof.solvers.explain import explain
from bubbleproof.solvers.lists.large import LargeSearch
from bubbleproof.solvers.pareto_front import pareto
from bubbleproof.solvers.refutation.propagation import PropagationResult
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.certificates.certificate import Drup, Lemma
from bubbleproof.verify.certificates.certificate_rule import Certificate
from proofs_tests.sized import sized
from proofs_tests.solvers.lies import (
    LIES,
    NOTHING,
    PROBLEM,
    QUICK,
    SMALL,
    Lie,
    alone,
    in_turn,
    reasoned,
    shown,
    starts,
    told,
    truth,
)
from proofs_tests.solvers.test_choices import forced_apart

NARROW = "bubbleproof.solvers.refutation.propagation.narrow"  # loaded when its turn comes
SEARCHES = (*ENGINES, "span_idle", "auto")
Cases = Iterator[tuple[str, str]]
# 78 by its one-machine bound, 80 the optimum (two engines).
TOML = """
ranks = 4
microbatches = 8
[links]
latency = 1
[durations]
forward = 2
backward = 4
[memory]
capacity = 4
"""
LATE = Pipeline(
    num_ranks=4, num_microbatches=8, forward=2, backward=4, latency=1, capacity=4
).problem()


def lies_of(search: str) -> list[tuple[str, Lie]]:
    """By default each lie to two or three searches, and three or four lies to each search."""
    place = SEARCHES.index(search)
    return [lie for at, lie in enumerate(LIES.items()) if (at - place) % sized(3, full=1) == 0]


def one_search() -> Cases:
    """Each engine's name and each goal of one search."""
    goals = [(name, replace(QUICK, engine=name)) for name in ENGINES]
    goals += [("span_idle", replace(QUICK, engine="cpsat", objective="span_idle"))]
    goals += [("auto", QUICK)]
    for name, options in goals:
        for what, lie in lies_of(name):
            with alone(lie, truth()):
                yield f"{name}: {what}", told(partial(_solved, PROBLEM, options, [in_turn(SMALL)]))


def uncontradicted() -> Cases:
    """No schedule that is known contradicts these: the result calls them the engine's word."""
    slow = 2 * starts()  # 2 * 12 less the 2 that the last backward ends earlier: 22 ticks
    honest = replace(QUICK, engine="cpsat")
    lies: dict[str, tuple[Lie, bool]] = {
        "a poor schedule": (lambda _: EngineOutcome(start=slow), False),
        "a poor schedule called the best": (lambda _: EngineOutcome(start=slow, bound=22), False),
        "the same, where a certificate is sought": (
            lambda _: EngineOutcome(start=slow, bound=22),
            True,
        ),
        "a bound below the certified one": (lambda o: replace(o, bound=1), False),
    }
    for what, (lie, is_certifying) in lies.items():
        with alone(lie, is_certifying=is_certifying):
            if is_certifying:  # only what is made to disprove the claim may find a schedule
                with patch(NARROW, lambda *_, **__: NOTHING):
                    yield what, told(lambda: shown(solve(PROBLEM, honest)))
            else:
                yield what, told(lambda: shown(solve(PROBLEM, honest)))


def certificates() -> Cases:
    """Forged ones, out of propagation, the SAT engine and in place of the one-machine bound."""
    best = lower_bounds(LATE).best
    longer = Pipeline(num_ranks=4, num_microbatches=9, forward=2, backward=4, latency=1, capacity=4)
    forged: dict[str, Certificate] = {
        "no lemma": Drup(bound=79, lemmas=()),
        "a lemma out of nothing": Drup(
            bound=500, lemmas=(Lemma(literals=((">=", 0, 900),)), Lemma())
        ),
        "of the other objective": replace(best, objective="span_idle", bound=79),
        "of another problem": lower_bounds(longer.problem()).best,
    }
    for what, certificate in forged.items():
        found = PropagationResult(certificate=certificate, schedule=None)  # type: ignore[arg-type]  # a lie
        with (
            patch(NARROW, lambda *_, found=found, **__: found),
            patch.object(bound_search, "CERTIFYING", 0),  # the engine's word remains
        ):
            yield f"certificate: {what}", told(lambda: reasoned(solve(LATE, QUICK)))
    forgery = Drup(bound=80, lemmas=())
    with (
        patch(NARROW, lambda *_, **__: NOTHING),
        patch("bubbleproof.solvers.refutation.proofs.settle", lambda *_, **__: forgery),
    ):
        yield "certificate: of the SAT engine", told(lambda: reasoned(solve(LATE, QUICK)))
    for goal in ("makespan", "span_idle"):
        other = replace(best, bound=79) if goal == "makespan" else best
        given = replace(lower_bounds(LATE, goal), best=other)
        with patch.object(bound_search, "lower_bounds", lambda *_, given=given: given):
            options = replace(QUICK, objective=goal)
            yield (
                f"certificate: in place of {goal}'s",
                told(
                    lambda options=options: reasoned(solve(LATE, options))  # type: ignore[misc]  # bound
                ),
            )
    # What if the checker itself were wrong? Then a schedule can still give it the lie.
    true = type("Finding", (), {"ok": True, "violations": ()})
    over = PropagationResult(certificate=Drup(bound=500, lemmas=()), schedule=None)
    with (
        patch(NARROW, lambda *_, **__: over),
        patch("bubbleproof.solvers.gate.check_certificate", lambda *_: true),
    ):
        yield "certificate: accepted, above a schedule", told(partial(_solved, LATE, QUICK))


def _solved(
    problem: Problem, options: SolveOptions, starts: Sequence[tuple[str, Program]] = ()
) -> str:
    return shown(solve(problem, options, starts))


def objectives() -> Cases:
    """The searches for the least peak, after an honest or a lying first one."""
    for goal in ("peak", "makespan-then-peak"):
        options = replace(QUICK, engine="cpsat", objective=goal)
        for what in ("starts at 0", "a schedule of more tasks", "refuted its own schedule"):
            with alone(LIES[what]):
                yield f"{goal}: {what}", told(partial(_solved, PROBLEM, options))
    calls: list[int] = []

    def high_then_true(outcome: EngineOutcome) -> EngineOutcome:
        """First a poor schedule, called the best; then the truth, which is better."""
        calls.append(0)
        return EngineOutcome(start=2 * starts(), bound=22) if len(calls) == 1 else outcome

    with alone(high_then_true):
        options = replace(QUICK, engine="cpsat", objective="makespan-then-peak")
        yield "makespan-then-peak: a poor first makespan", told(partial(_solved, PROBLEM, options))
    with alone(lambda o: o if o.start is None else replace(o, bound=99)):
        yield "pareto: a bound above its schedule", told(_front)
    calls.clear()
    with alone(high_then_true):
        yield "pareto: one cap called worse than another", told(_front)


def _front() -> str:
    front = pareto(PROBLEM, replace(QUICK, engine="cpsat"))
    return " ".join(f"{point.peak}:{point.makespan}" for point in front.points)


def large() -> Cases:
    """Short instances that are lengthened; the engine is called by its module."""
    many = LATE_MANY.problem()
    true_run = cpsat.run
    for what in ("starts at 0", "one task less", "no integers"):

        def lying(*arguments: Any, what: str = what) -> EngineOutcome:
            found = true_run(*arguments)
            if found.start is None:
                return found
            falsified = {
                "starts at 0": 0 * found.start,
                "one task less": found.start[1:],
                "no integers": found.start + 0.5,
            }
            return replace(found, start=falsified[what])  # type: ignore[arg-type]  # a lie

        with (
            alone(lambda o: o),
            patch.object(LargeSearch, "by_list_scheduling", lambda _: iter(())),
            patch.object(cpsat, "run", lying),
        ):
            yield f"large: {what}", told(partial(_solved, many, QUICK))


LATE_MANY = Pipeline(num_ranks=2, num_microbatches=16, forward=2, backward=4, latency=1, capacity=2)


def choices() -> Cases:
    """The models of open choices: 10 ticks at least, with its one option taken."""
    variants = forced_apart()
    zeros = np.zeros(variants.whole.num_tasks, dtype=np.int64)
    lies: dict[str, Callable[[Choice], Choice]] = {
        "starts at 0": lambda c: replace(c, start=zeros, taken=(0,), is_refuted=False),
        "starts of another size": lambda c: replace(
            c, start=zeros[1:], taken=(0,), is_refuted=False
        ),
        "nothing taken": lambda c: replace(c, taken=()),
        "an unknown option": lambda c: replace(c, taken=(7,)),
        "a bound above its schedule": lambda c: replace(c, bound=99),
        "refuted its own schedule": lambda c: replace(c, is_refuted=True),
        "a bound that is no integer": lambda c: replace(c, bound=9.5),  # type: ignore[arg-type]  # a lie
        "refuted everything": lambda _: Choice(is_refuted=True),
        "truth": lambda c: c,
    }
    for what, lie in lies.items():

        def engine(name: Any, lie: Callable[[Choice], Choice] = lie) -> Callable[..., Choice]:
            def searched(frame: Frame, budget: Budget) -> Choice:
                return lie(choices_engine(name)(frame, budget))

            return searched

        with patch.object(choices_search, "choices_engine", engine):
            yield f"choices: {what}", told(lambda: shown(solve_variants(variants, QUICK).result))
    bounds = lower_bounds(variants.floor)
    given = replace(bounds, best=replace(bounds.best, bound=99))
    with patch.object(bound_search, "lower_bounds", lambda *_: given):
        found = told(lambda: reasoned(solve_variants(variants, QUICK).result))
    yield "certificate: of the floor of all choices", found


def repairs() -> Cases:
    """The fewest moves of a broken order, and the shortest schedule of as few."""
    true_run = cpsat.run
    program = in_turn(SMALL)[1]
    lies: dict[str, Lie] = {
        "starts at 0": lambda o: replace(o, start=0 * starts()),
        "a schedule of more tasks": lambda o: replace(o, start=np.arange(99)),
        "another schedule than its places": lambda o: replace(o, start=starts()),
        "fewer places than it keeps": lambda o: replace(o, bound=3),
        "refuted": lambda _: EngineOutcome(is_refuted=True),
    }
    for what, lie in lies.items():

        def lying(*arguments: Any, lie: Lie = lie) -> EngineOutcome:
            return lie(true_run(*arguments))

        with patch.object(repair_search, "run", lying):
            yield f"repair: {what}", told(partial(_repaired, program))


def _repaired(program: Program) -> str:
    found = repair_search.repair(PROBLEM, program, QUICK)
    return "None" if found is None else f"{found.num_moves} moves, {shown(found.result)}"


def reasons() -> Cases:
    """Why there is no schedule, asked of a problem that has one."""
    with alone(LIES["starts at 0"]):
        yield "explain: starts at 0", told(lambda: str(explain(PROBLEM, QUICK)))


def command() -> Cases:
    """The command's last word: one line and the status 2."""

    def at_0(outcome: EngineOutcome) -> EngineOutcome:
        return replace(outcome, start=None if outcome.start is None else 0 * outcome.start)

    with tempfile.TemporaryDirectory() as folder, alone(at_0):
        problem = Path(folder, "small.toml")
        problem.write_text(TOML, encoding="utf-8")
        said = io.StringIO()
        words = ["bubbleproof", "solve", str(problem), "--engine", "z3"]
        with patch.object(sys, "argv", words), contextlib.redirect_stderr(said):
            try:
                main()
            except SystemExit as end:
                yield "command: status", str(end.code)
        yield "command: last line", said.getvalue().splitlines()[-1]


def results() -> Cases:
    """Results that contradict themselves cannot be made."""
    true = solve(PROBLEM, QUICK)
    falsified: dict[str, Callable[[], Result]] = {
        "a value below its bound": lambda: replace(true, engine_bound=13),
        "optimal above its bound": lambda: replace(true, lower_bound=11),
        "infeasible with a schedule": lambda: replace(true, status=Status.INFEASIBLE),
        "optimal without a schedule": lambda: replace(true, found=None),
    }
    for what, make in falsified.items():
        yield f"result: {what}", told(lambda make=make: shown(make()))  # type: ignore[misc]  # a lie


PARTS = (
    one_search,
    uncontradicted,
    certificates,
    objectives,
    large,
    choices,
    repairs,
    reasons,
    command,
    results,
)

if __name__ == "__main__":
    sys.stdout.write(json.dumps({name: what for part in PARTS for name, what in part()}))
