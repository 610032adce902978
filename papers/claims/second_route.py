"""A second route to what is claimed to be least: one engine, alone and by name, finds the least.

A reading claims an optimum where it says that a bubble, a makespan or a peak *is* its formula, and

- it is about the least of any order (``FamilyMeasure.least``), or
- the family says that its own schedule has the least (``Family.least``): of the bubble within the
  memory that the schedule takes on each rank, of the memory within the schedule's makespan.

The engine gets the family's problem at the smallest shapes of the reading's domain, and no
schedule, no bound and no order to begin from. What it finds least is held against the formula. It
has decided where it searched everything below, or where its answer meets a bound that was checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from math import prod
from time import perf_counter
from typing import cast

from bubbleproof.papers.claims.claim import PaperClaim
from bubbleproof.papers.claims.domain import Params
from bubbleproof.papers.claims.measured_pipelines import FamilyMeasure, made
from bubbleproof.papers.claims.reading import Number, Reading, Relation
from bubbleproof.theory.families import FamilyMember, family
from bubbleproof.theory.model.measures import Measures, measure
from bubbleproof.theory.model.problem import Problem

MOST_TASKS = 60  # beyond, an engine by itself takes minutes
SHAPES = 4  # of each reading, where no other number is asked for


class RouteOutcome(Enum):
    """What became of a formula in a case; the values are the words shown to the user."""

    EQUAL = "equal"
    DIFFERS = "differs"
    UNDECIDED = "not decided in the time"


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimumCase:
    """One case of a reading that claims an optimum."""

    claim: PaperClaim
    reading: Reading
    at: Params

    @property
    def measure(self) -> FamilyMeasure[Number]:
        """What the reading measures."""
        return cast("FamilyMeasure[Number]", self.reading.measured)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineAnswer:
    """The formula's value in a case and the engine's, None where it did not decide.

    ``proof`` says by what the engine's value is the least, in words.
    """

    case: OptimumCase
    formula: Fraction
    found: Fraction | None
    proof: str
    seconds: float

    @property
    def outcome(self) -> RouteOutcome:
        if self.found is None:
            return RouteOutcome.UNDECIDED
        return RouteOutcome.EQUAL if self.found == self.formula else RouteOutcome.DIFFERS


def claims_optimum(reading: Reading) -> bool:
    """Whether a reading says what the least is, and of a family's problem."""
    found = reading.measured
    if not isinstance(found, FamilyMeasure) or reading.relation is not Relation.EQUAL:
        return False
    what = "memory" if found.goal == "peak" else "bubble"
    return found.least is not None or what in family(found.family).least


def optimum_cases(chosen: Mapping[str, PaperClaim], most: int = SHAPES) -> list[OptimumCase]:
    """At most so many cases of every reading that claims an optimum, smallest first."""
    return [
        OptimumCase(claim=claim, reading=reading, at=at)
        for claim in chosen.values()
        for reading in claim.readings
        if claims_optimum(reading)
        for at, _ in zip(_shapes(reading), range(most), strict=False)
    ]


def _shapes(reading: Reading) -> Iterator[Params]:
    """The smallest case for each p, v and s that an engine can take, of more than one microbatch.

    One microbatch is only looked at where the domain has no more.
    """
    name = cast("FamilyMeasure[Number]", reading.measured).family
    points = reading.domain.points
    met: set[tuple[int, ...]] = set()
    for at in [at for at in points if at["m"] > 1] or points:
        shape = tuple(at.get(letter, 1) for letter in "pvs")
        if shape in met:
            continue
        met.add(shape)
        has_few = 2 * at["m"] * prod(shape) <= MOST_TASKS  # an F and a B of each, at least
        if has_few and made(name, at).problem.num_tasks <= MOST_TASKS:
            yield at


def engine_answer(case: OptimumCase, engine: str, time_limit: float) -> EngineAnswer:
    """What the engine alone finds; each of its searches has so many seconds.

    Raises ``FaultError`` where the engine contradicts what was checked.
    """
    begun, measured = perf_counter(), case.measure
    member = made(measured.family, case.at)
    search = _least_capacity if measured.goal == "peak" else _least_time
    found, proof = search(case, member, engine, time_limit)
    return EngineAnswer(
        case=case,
        formula=Fraction(case.reading.predicted(case.at)),
        found=None if found is None else Fraction(measured.read(found, case.at)),
        proof=proof,
        seconds=perf_counter() - begun,
    )


Found = tuple[Measures | None, str]  # of a schedule that has the least, and by what it is


def _least_time(case: OptimumCase, member: FamilyMember, engine: str, time_limit: float) -> Found:
    """A schedule of the least makespan, or span_idle, in the memory that the claim is about."""
    from bubbleproof.solvers import SolveOptions, Status, solve  # loads engines
    from bubbleproof.solvers.options import goal

    chosen = case.measure
    options = SolveOptions(
        engine=engine, objective=goal(chosen.goal), time_limit=time_limit, threads=1
    )
    result = solve(_within_memory(chosen, member, case.at), options)
    if result.status is not Status.OPTIMAL or result.value is None:
        return None, ""
    return result.measured, _proof(result.value, result.engine_bound, result.lower_bound)


def _least_capacity(
    case: OptimumCase, member: FamilyMember, engine: str, time_limit: float
) -> Found:
    """A schedule of the least peak within the family's makespan: below it there is none."""
    from bubbleproof.solvers import SolveOptions, Status, solve
    from bubbleproof.solvers.objectives import below

    del case
    within = measure(member.problem, member.schedule).makespan
    options = SolveOptions(engine=engine, within=within, time_limit=time_limit, threads=1)
    problem, found = member.problem, None
    while (result := solve(problem, options)).found is not None:
        found = result.found
        problem = below(member.problem, found.peak)
    if found is None or result.status is not Status.INFEASIBLE:
        return None, ""
    return found.measured, _proof(within + 1, result.engine_bound, result.lower_bound)


def _within_memory(chosen: FamilyMeasure[Number], member: FamilyMember, at: Params) -> Problem:
    """The problem in the room of the claim, or, of a family's own schedule, in what that takes."""
    problem = member.problem
    if chosen.least is not None:
        return problem if chosen.room is None else problem.with_capacity(chosen.room(at))
    peaks = measure(problem, member.schedule).peak_memory
    ranks = (
        replace(store, capacity=peak) for store, peak in zip(problem.stores, peaks, strict=False)
    )
    return replace(problem, stores=(*ranks, *problem.stores[len(peaks) :]))


def _proof(least: int, claimed: int | None, checked: int) -> str:
    """What shows that nothing is below: the engine's own search, and a checked certificate."""
    words = {"search": claimed or 0, "certificate": checked}
    return ", ".join(name for name, bound in words.items() if bound >= least) or "by its problem"
