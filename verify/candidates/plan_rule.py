"""Rule 9 for a plan: what decides whether its winner is one, and how near to the bound it is.

A plan names a winner among the candidates of a space and has a schedule of it, with its pipeline.

1. The winner is a candidate, and the schedule's pipeline is one of the winner's choices
   (``chosen``). One that stands *beside* the shapes trains the same step; and every pipeline beside
   the shapes is what the file's numbers give: it is derived anew by a function that the caller
   passes in, and compared.
2. The plan's *value* is the schedule's makespan; of a pipeline beside the shapes the ticks until
   hosts and NICs have ended too; of a deployment with what follows its pipeline in every step.
3. No value is below the bound of all candidates (``bundle``), which a schedule without fault shows
   to be wrong.

That the schedule itself is right is decided elsewhere (``verify.every_rule``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.step_time import step_ticks
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate, PlanSpace
from bubbleproof.theory.pipelines.shapes.shaping import NotLegalError, shaped
from bubbleproof.verify.candidates.bundle import BundleVerdict, DeploymentSpace
from bubbleproof.verify.candidates.chosen import foreign_choice, foreign_step

Anew = Callable[[str], Pipeline]  # the pipeline of a name beside the shapes, or a ``ValueError``


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GivenPlan:
    """A plan of the deployment ``at``, whose space has the plan's own pipelines beside its shapes.

    ``pipeline`` is what the schedule comes with, None where it comes without; ``schedule`` is None
    where it has no times.
    """

    at: DeploymentSpace
    winner: Candidate
    pipeline: Pipeline | None
    problem: Problem
    schedule: Schedule | None


def no_deployment(space: PlanSpace) -> DeploymentSpace:
    """A space that is of no deployment: nothing follows its pipelines."""
    return DeploymentSpace(name="", space=space, after=0)


def plan_refusals(plan: GivenPlan, anew: Anew) -> tuple[str, ...]:
    """Why the plan's schedule is none of its winner's, or a pipeline beside is not the file's."""
    why = foreign_winner(plan)
    return (why,) if why is not None else foreign_beside(plan.at.space, anew)


def foreign_winner(plan: GivenPlan) -> str | None:
    """Why the schedule is of no candidate, or of another than the winner; None where it is."""
    space, winner = plan.at.space, plan.winner
    if winner not in space.candidates():
        return f"{winner} is no candidate of the problem"
    if plan.pipeline is None:
        return "the plan's schedule comes without its pipeline"
    if winner.beside:
        if dict(space.others)[winner.beside] != plan.pipeline:
            return f"the schedule is none of {winner}: it has another pipeline"
        why = foreign_step(space, plan.pipeline)
        return None if why is None else f"{winner} trains another step: {why}"
    try:
        found = shaped(space, winner)
    except NotLegalError as why_not:
        return f"{winner} is not legal: {why_not}"
    why = foreign_choice(found.pipeline, found.allowed, plan.pipeline)
    return None if why is None else f"the schedule is none of {winner}: {why}"


def foreign_beside(space: PlanSpace, anew: Anew) -> tuple[str, ...]:
    """Which pipelines beside the shapes are not what ``anew`` derives, a sentence each."""
    found = []
    for name, pipeline in space.others:
        try:
            derived = anew(name)
        except ValueError as why:
            found.append(f"nothing gives the pipeline {name!r} beside the shapes: {why}")
            continue
        if derived != pipeline:
            unlike = " and ".join(_unlike(pipeline, derived))
            found.append(f"the pipeline {name!r} is not what the file's numbers give: {unlike}")
    return tuple(found)


def _unlike(given: Pipeline, derived: Pipeline) -> list[str]:
    """In which fields two pipelines differ."""
    names = Pipeline.__dataclass_fields__
    return [f"another {name}" for name in names if getattr(given, name) != getattr(derived, name)]


def plan_value(plan: GivenPlan, makespan: int) -> int:
    """What the plan takes, in ticks. Precondition: its schedule is right.

    Parameters
    ----------
    makespan
        Of the plan's schedule, in ticks.
    """
    pipeline = makespan
    if plan.winner.beside and plan.schedule is not None:
        pipeline = step_ticks(plan.problem, plan.schedule)
    return pipeline + plan.at.follows(plan.winner)


def not_below(proved: BundleVerdict, value: int, thing: str, scope: str) -> BundleVerdict:
    """The verdict on the bound, refused where a right schedule's value is below it.

    Parameters
    ----------
    value
        Of the right schedule, in the bound's unit.
    thing, scope
        What the value is of, and what the bound is of, as the refusal names them.
    """
    if proved.bound is None or value >= proved.bound:
        return proved
    why = f"the schedule's {thing} is {value:,}, below the bound {proved.bound:,} of all {scope}"
    return replace(proved, refusals=(why,), bound=None)
