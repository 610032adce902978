"""The joint plan with a paper's choice among its candidates, all by the paper's costs.

A paper's choice that is one of the file's candidates is where the search begins. One that is not
(its collectives, its host's steps and what it recomputes by are none of the file's choices) stands
*beside* the file's shapes, whole, and so does the best of the paper's kind that our planners found.
Each has a certified bound of its own. Every candidate has the paper's costs, which are no less than
its makespan, so that bounds on makespans bound them too. The winner is the least of all: never
worse than what runs of the paper.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from bubbleproof.papers.planning.paper_choice import BETTER, AcceptedSchedule, PaperChoice
from bubbleproof.planners.looks import FirstSearch, first_look
from bubbleproof.planners.outcome import (
    Ground,
    Outcome,
    OutcomeReason,
    comparison,
    solved_outcome,
    unsolved_outcome,
)
from bubbleproof.planners.planned import (
    CandidateResult,
    NoPlanFound,
    Plan,
    SolvedCandidate,
    place_of,
    verdict_of,
)
from bubbleproof.solvers import Status
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate, PlanSpace
from bubbleproof.theory.pipelines.shapes.shaping import ShapedPipeline

AnyResult = TypeVar("AnyResult", bound=CandidateResult)


def with_paper(
    found: Plan | NoPlanFound, chosen: PaperChoice, inside: int = 0
) -> Plan | NoPlanFound:
    """The plan of the file's candidates and the paper's, by the paper's costs.

    ``inside`` ticks of what the paper's own pipelines do follow every other one (collectives).
    """
    listed = [_costed(one, chosen) for one in found.judged]
    runs = dict(_beside(listed, chosen))
    space = replace(found.space, others=tuple((name, run.pipeline) for name, run in runs.items()))
    others = space.candidates()[len(found.judged) :]
    listed += [less(_judged(one, runs[one.beside]), inside) for one in others]
    solved = [one for one in listed if isinstance(one, SolvedCandidate)]
    if not solved:
        return _no_plan(found, space, listed)
    best = min(solved, key=place_of)
    bound = min((one.bound for one in listed if one.is_legal), default=0)
    known = found.winner.schedule if isinstance(found, Plan) else None
    winner = _told_again(best, best.value)
    return Plan(
        space=space,
        status=Status.OPTIMAL if bound >= best.value else Status.FEASIBLE,
        judged=tuple(winner if one is best else _told_again(one, best.value) for one in listed),
        winner=winner,
        verdict=found.verdict
        if isinstance(found, Plan) and winner.schedule is known
        else verdict_of(winner),
        seconds=found.seconds,
        reason=found.reason,
    )


def _no_plan(
    found: Plan | NoPlanFound, space: PlanSpace, listed: list[CandidateResult]
) -> NoPlanFound:
    """Nothing has a schedule that the paper's costs have a meaning for."""
    is_plan = isinstance(found, Plan)
    return NoPlanFound(
        space=space,
        status=Status.UNKNOWN if is_plan else found.status,
        judged=tuple(listed),
        least_capacity=found.least_capacity if isinstance(found, NoPlanFound) else None,
        seconds=found.seconds,
        reason=found.reason,
    )


def _costed(one: CandidateResult, chosen: PaperChoice) -> CandidateResult:
    """With the paper's costs; without a schedule where the paper's costs have no meaning for it."""
    if not isinstance(one, SolvedCandidate):
        return one
    cost = chosen.cost(one.pipeline, one.schedule)
    if cost is None:
        why = f"what {chosen.paper} counts beside has no meaning for it"
        reason = OutcomeReason(ground=Ground.NO_COST, text=why)
        return one.without_schedule(Outcome.UNKNOWN, reason)
    return one if cost == one.value else replace(one, value=cost, has_more=True)


def _told_again(one: AnyResult, best: int) -> AnyResult:
    """With the reason against the new best; one that is out, or is another, keeps its own."""
    if one.reason.ground is not Ground.COMPARISON:
        return one
    by = f" by an uncertified bound of {one.word}" if one.word and one.certificate is None else ""
    value = one.value if isinstance(one, SolvedCandidate) else None
    told = replace(one, reason=comparison(value, one.bound, best, by))
    is_open = one.status is Outcome.UNKNOWN
    return replace(told, status=unsolved_outcome(one.bound, best)) if is_open else told


def _beside(
    listed: list[CandidateResult], chosen: PaperChoice
) -> Iterator[tuple[str, AcceptedSchedule]]:
    """The paper's pipelines that are none of the candidates', each with its shortest schedule."""
    run, better = chosen.run, chosen.improved
    if run is not None and better is not None and run.pipeline == better.pipeline:
        run = min(run, better, key=lambda one: one.ticks)
        better = None
    values = {one.candidate: one.value for one in listed if isinstance(one, SolvedCandidate)}
    for name, one in ((chosen.paper, run), (f"{chosen.paper}{BETTER}", better)):
        if one is None:
            continue
        value = None if one.candidate is None else values.get(one.candidate)
        if value is None or value > one.ticks:
            yield name, one


def less(one: AnyResult, ticks: int) -> AnyResult:
    """With its cost and its bound less by so many ticks."""
    if not isinstance(one, SolvedCandidate) or not ticks:
        return one
    return replace(one, value=one.value - ticks, has_more=True, bound=one.bound - ticks)


def _judged(candidate: Candidate, run: AcceptedSchedule) -> SolvedCandidate:
    """The paper's run as a candidate in which nothing is open, with a bound."""
    shape = ShapedPipeline(pipeline=run.pipeline, allowed=None)
    seen, value = first_look(FirstSearch(shaped=shape, most=0)), run.ticks
    return SolvedCandidate(
        candidate=candidate,
        status=solved_outcome(value, seen.bound),
        reason=comparison(value, seen.bound, value),
        pipeline=run.pipeline,
        schedule=run.schedule,
        measured=run.measured,
        origin=candidate.beside,
        bound=seen.bound,
        certificate=seen.certificate,
        value=value,
        has_more=value != run.measured.makespan,
    )
