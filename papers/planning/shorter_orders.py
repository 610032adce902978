"""A shorter order for what runs of a paper, by the solver, its pipeline as it is.

A choice that is one of the space's candidates is a start of the search there. One that is not (its
collectives, its host's steps and the numbers it recomputes by are none of the file's choices) is
solved here instead, for a while, so that the joint plan's side is not the published order alone.
"""

from __future__ import annotations

from dataclasses import replace

from bubbleproof.papers.planning.paper_choice import AcceptedSchedule, PaperChoice
from bubbleproof.planners.planned import PlanOptions
from bubbleproof.solvers import solve
from bubbleproof.theory.pipelines.programs.step_time import step_ticks
from bubbleproof.verify import check

MOST_SECONDS = 5.0  # or units of work, where those limit the plan
SHARE = 3  # of the plan's own, at most one part in so many


def with_shorter_order(chosen: PaperChoice, options: PlanOptions) -> PaperChoice:
    """The choice with the best run that was found of its kind (``improved``)."""
    known = chosen.improved or chosen.run
    if known is None or known.candidate is not None or options.stop.is_set():
        return chosen
    found = _solved(known, options)
    return chosen if found is None else replace(chosen, improved=found)


def _solved(known: AcceptedSchedule, options: PlanOptions) -> AcceptedSchedule | None:
    """A run that takes fewer ticks, everything told; None where none was found."""
    problem = known.pipeline.problem()
    whole = options.time_limit if options.work is None else options.work
    few = options.at_most(min(MOST_SECONDS, whole / SHARE))
    how = few.solving(few.time_limit, few.work)
    schedule = solve(problem, how, [("the paper's order", known.schedule.program)]).schedule
    if schedule is None:
        return None
    verdict = check(problem, schedule)
    if not verdict.ok or verdict.measured is None:
        return None
    if step_ticks(problem, schedule) >= known.ticks:
        return None
    return replace(known, schedule=schedule, measured=verdict.measured)
