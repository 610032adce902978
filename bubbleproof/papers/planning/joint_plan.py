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
from bubbleproof.planners.planned import CandidateResult, Plan
from bubbleproof.planners.planning import verdict_of
from bubbleproof.solvers import Status
from bubbleproof.theory.pipelines.plan_space import Candidate
from bubbleproof.theory.pipelines.shaping import ShapedPipeline


def with_paper(found: Plan, chosen: PaperChoice, inside: int = 0) -> Plan:
    """The plan of the file's candidates and the paper's, by the paper's costs.

    ``inside`` ticks of what the paper's own pipelines do follow every other one (collectives).
    """
    listed = [_costed(one, chosen) for one in found.judged]
    runs = dict(_beside(listed, chosen))
    space = replace(found.space, others=tuple((name, run.pipeline) for name, run in runs.items()))
    others = space.candidates()[len(found.judged) :]
    listed += [less(_judged(one, runs[one.beside]), inside) for one in others]
    known = [one for one in listed if one.value is not None]
    winner = min(known, key=lambda one: (one.value or 0, one.peak_memory or 0), default=None)
    if winner is None:
        return replace(found, space=space, judged=tuple(listed), winner=None)
    place = listed.index(winner)
    listed = [_told_again(one, winner.value) for one in listed]
    joint = replace(found, space=space, judged=tuple(listed), winner=listed[place])
    winner, is_closed = listed[place], joint.lower_bound >= (winner.value or 0)
    return replace(
        joint,
        status=Status.OPTIMAL if is_closed else Status.FEASIBLE,
        verdict=found.verdict if winner.schedule is _schedule(found) else verdict_of(winner),
        least_capacity=None,
    )


def _schedule(found: Plan) -> object:
    return None if found.winner is None else found.winner.schedule


def _costed(one: CandidateResult, chosen: PaperChoice) -> CandidateResult:
    """With the paper's costs; without a schedule where the paper's costs have no meaning for it."""
    if one.pipeline is None or one.schedule is None:
        return one
    cost = chosen.cost(one.pipeline, one.schedule)
    if cost is None:
        why = f"what {chosen.paper} counts beside has no meaning for it"
        reason = OutcomeReason(ground=Ground.NO_COST, text=why)
        none = replace(one, pipeline=None, schedule=None, measured=None, origin="", reason=reason)
        return replace(none, status=Outcome.UNKNOWN)
    return one if cost == one.value else replace(one, cost=cost)


def _told_again(one: CandidateResult, best: int | None) -> CandidateResult:
    """With the reason against the new best; one that is out, or is another, keeps its own."""
    if one.reason.ground is not Ground.COMPARISON:
        return one
    by = f" by the word of {one.word}" if one.word and one.certificate is None else ""
    told = replace(one, reason=comparison(one.value, one.bound, best, by))
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
    values = {one.candidate: one.value for one in listed}
    for name, one in ((chosen.paper, run), (f"{chosen.paper}{BETTER}", better)):
        if one is None:
            continue
        value = None if one.candidate is None else values.get(one.candidate)
        if value is None or value > one.ticks:
            yield name, one


def less(one: CandidateResult, ticks: int) -> CandidateResult:
    """With its cost and its bound less by so many ticks."""
    if one.value is None or not ticks:
        return one
    return replace(one, cost=one.value - ticks, bound=one.bound - ticks)


def _judged(candidate: Candidate, run: AcceptedSchedule) -> CandidateResult:
    """The paper's run as a candidate in which nothing is open, with a bound."""
    shape = ShapedPipeline(pipeline=run.pipeline, allowed=None)
    seen, value = first_look(FirstSearch(shaped=shape, most=0)), run.ticks
    return CandidateResult(
        candidate=candidate,
        status=solved_outcome(value, seen.bound),
        reason=comparison(value, seen.bound, value),
        pipeline=run.pipeline,
        schedule=run.schedule,
        measured=run.measured,
        origin=candidate.beside,
        bound=seen.bound,
        certificate=seen.certificate,
        cost=None if value == run.measured.makespan else value,
    )
