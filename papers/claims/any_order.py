"""What the best order can do where a paper's rule leaves orders open: over all of them, not ours.

A claim that some order of a rule reaches a value says little when one order of ours misses it. Here
the best of all orders is measured: over every way to break a printed generator's ties, or, where a
rule fixes no more than the placement and the memory, over every order there is. Both take small
cases alone. The solver that finds the least makespan is not believed: its schedule and its bound
both went through ``verify``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from math import inf

from bubbleproof.papers.claims.domain import Params
from bubbleproof.papers.claims.measured_pipelines import (
    FamilyMeasure,
    MeasuredValue,
    idle_ratio,
    made,
)
from bubbleproof.theory.families.svpp import most_forwards
from bubbleproof.theory.families.svpp_literal import tie_breaks
from bubbleproof.theory.model.measures import Measures, measure
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.timing import left_shift

MOST_WORK = 60.0  # about a minute: not seconds, or a busy machine would decide a claim


def makespan_of_any_order(problem: Problem, starts: Iterable[tuple[str, Program]] = ()) -> int:
    """The ticks that a checked schedule takes and that a checked certificate proves least.

    ``starts`` are named programs to begin from. Raises ``RuntimeError`` where the solver finds no
    such pair in ``MOST_WORK``: then nothing is known, and a claim must not be decided by it.
    """
    return _of_least_makespan(problem, starts).makespan


def _of_least_makespan(problem: Problem, starts: Iterable[tuple[str, Program]]) -> Measures:
    """What was measured of a schedule of the least makespan."""
    from bubbleproof.solvers.options import SolveOptions  # loads engines when they are called
    from bubbleproof.solvers.result import ProofOrigin
    from bubbleproof.solvers.solving import solve

    options = SolveOptions(threads=1, certified=True, work=MOST_WORK, time_limit=inf)
    result = solve(problem, options, starts)
    if result.proof is not ProofOrigin.CERTIFICATE or result.measured is None:
        raise RuntimeError(f"no certified optimum: {result.status.value}")
    return result.measured


def least(
    measure: FamilyMeasure[MeasuredValue], room: Callable[[Params], int] | None = None
) -> FamilyMeasure[MeasuredValue]:
    """The least of any order of the family's tasks, within ``room`` units per rank.

    Without ``room`` memory is unlimited. Every order does the same work, so the least idle ratio is
    that of the least makespan, which is what is minimised.
    """

    def value(at: Params) -> MeasuredValue:
        member = made(measure.family, at)
        problem = member.problem if room is None else member.problem.with_capacity(room(at))
        found = _of_least_makespan(problem, [(measure.family, member.schedule.program)])
        return measure.read(found, at)

    return replace(measure, least=value, room=room)


def _over_ties(at: Params) -> list[Measures]:
    """The measures of section 4.3's generator, one for every way to break its ties."""
    member = made("svpp-printed", at)
    forwards = at.get("f", most_forwards(member.pipeline))
    return [
        measure(member.problem, left_shift(member.problem, program))
        for program in tie_breaks(member.pipeline, forwards)
    ]


def least_over_ties(at: Params) -> Fraction:
    """The least idle ratio that section 4.3's generator has by any tie-break."""
    return min(found.idle_ratio for found in _over_ties(at))


def peak_over_ties(at: Params) -> Fraction:
    """The largest peak of any tie-break, over A."""
    units = at["p"] * at["v"] * at["s"]
    return Fraction(max(max(found.peak_activations) for found in _over_ties(at)), units)


def least_idle_ratio(
    name: str, room: Callable[[Params], int] | None = None
) -> FamilyMeasure[Fraction]:
    """The least idle ratio of any order."""
    return least(idle_ratio(name), room)
