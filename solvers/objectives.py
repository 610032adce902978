"""Objectives made of several searches: the least peak, alone or after the least makespan.

The peak is the highest load of any rank's memory, base included. It is lowered step by step: each
search asks for any schedule (within the makespan allowed) whose every rank stays below the best
peak so far; the last one is refuted, most often by a bound and without an engine.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace

from bubbleproof.solvers.demands import Demands
from bubbleproof.solvers.engines.engine import Budget
from bubbleproof.solvers.options import Goal, SolveOptions
from bubbleproof.solvers.result import PeakBound, ProofOrigin, Result, Status
from bubbleproof.solvers.search import Search
from bubbleproof.solvers.search_state import whole_of
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program

StartPrograms = Iterable[tuple[str, Program]]


def least_peak(
    problem: Problem,
    options: SolveOptions,
    starts: StartPrograms,
    demands: Demands | None = None,
    whole: Budget | None = None,
) -> Result:
    """The least peak of any schedule whose makespan is at most ``options.within`` (None: any).

    For ``makespan-then-peak`` that is the least makespan, whose bounds the result then tells. For
    ``peak`` the result has no certificate: those of the steps are about less memory each.
    """
    began, whole = time.perf_counter(), whole or whole_of(options)
    done, is_second = whole.meter.units, options.objective == "makespan-then-peak"
    search = Search(problem, options, demands=demands, is_enough=not is_second, whole=whole)
    first = search.run(starts)
    if first.found is None or options.stop.is_set():
        return _unfinished(first, options.objective)
    if is_second:
        options = replace(options, within=first.makespan)
    found = _lowered(problem, options, first, first.found.peak, demands, whole)
    if is_second:
        found = replace(
            found,
            status=first.status if found.status is Status.OPTIMAL else found.status,
            lower_bound=first.lower_bound,
            certificate=first.certificate,
            engine_bound=first.engine_bound,
            objective="makespan-then-peak",
        )
    else:
        found = replace(found, lower_bound=0, certificate=None, engine_bound=None)
    return replace(found, seconds=time.perf_counter() - began, work=whole.meter.units - done)


def _unfinished(first: Result, objective: Goal) -> Result:
    """The first search alone: its OPTIMAL is not about the peak."""
    is_optimal = first.status is Status.OPTIMAL
    status = Status.FEASIBLE if is_optimal else first.status
    return replace(first, objective=objective, status=status)


def below(problem: Problem, peak: int) -> Problem:
    """The problem in which no rank's memory may reach ``peak``.

    Parameters
    ----------
    peak
        Units of memory.
    """
    stores = tuple(
        replace(s, capacity=peak - 1 if s.capacity is None else min(s.capacity, peak - 1))
        if number < problem.num_ranks
        else s
        for number, s in enumerate(problem.stores)
    )
    return replace(problem, stores=stores)


def _lowered(
    problem: Problem,
    options: SolveOptions,
    first: Result,
    peak: int,
    demands: Demands | None,
    whole: Budget,
) -> Result:
    """The result with the least peak within ``options.within`` that time allows to find.

    ``peak`` is the peak of the first one's schedule.
    """
    best = first
    while True:
        search = Search(
            below(problem, peak),
            options,
            demands=demands,
            is_enough=True,
            is_certifying=False,
            whole=whole,
        )
        found = search.run(())
        if found.status is Status.INFEASIBLE:
            is_claimed = found.infeasible_by is ProofOrigin.ENGINE
            proof = ProofOrigin.ENGINE if is_claimed else ProofOrigin.ARGUMENT
            bound = PeakBound(value=peak, proof=proof, reason=found.reason)
            return replace(best, objective="peak", status=Status.OPTIMAL, peak_bound=bound)
        if found.found is None:
            return replace(best, objective="peak", status=Status.FEASIBLE, reason=found.reason)
        best, peak = found, found.found.peak
