"""A plan of a model on a cluster in which a paper's deployment stands among the others.

Values are iterations: ticks of the pipeline and of what follows it (gradients, weights, optimizer).
Pipelines that then stand beside the winner's shapes bound the plan too, each by its own bound. One
that has the replicas' collectives in itself (PipeMesh's) is not followed by them: ``inside`` ticks
less come after it.
"""

from __future__ import annotations

from dataclasses import replace

from bubbleproof.costs.combinations import CombinationCosts
from bubbleproof.papers.planning.joint_plan import less
from bubbleproof.planners.cluster_planned import ClusterPlan, DeploymentRow, solved_deployment
from bubbleproof.planners.outcome import solved_outcome
from bubbleproof.planners.planned import Plan
from bubbleproof.solvers import Status


def with_plan(
    found: ClusterPlan, at: CombinationCosts, joint: Plan, inside: int = 0
) -> ClusterPlan:
    """The cluster's plan where the deployment ``at`` may also run what ``joint`` found.

    ``inside`` is taken off the cost and the bound of what stands beside in ``joint``. That is the
    winner where it takes less than what was found, or is a plan of the same deployment.
    """
    later = at.numbers.step_end
    value, name = joint.value + later, str(at.combination)
    if value >= found.value and at is not found.winner:
        return found
    beside = tuple(less(one, -inside).bounded for one in joint.judged if one.candidate.beside)
    own = found.bundled.get(name) or tuple(
        one.bounded for one in joint.judged if one.is_legal and not one.candidate.beside
    )
    lower = min([found.lower_bound, *(one.bound - inside + later for one in beside)])
    if joint.winner.candidate.beside:
        joint, later = _whole(joint, inside), later - inside
    return replace(
        found,
        status=_status(value, lower),
        rows=tuple(_row(row, found, at, joint, value) for row in found.rows),
        winner=at,
        plan=joint,
        value=value,
        lower_bound=lower,
        step_end=later,
        bundled={**found.bundled, name: (*own, *beside)},
    )


def _whole(joint: Plan, inside: int) -> Plan:
    """With the pipelines beside at their own cost; the winner stays what it is."""
    place = joint.judged.index(joint.winner)
    judged = tuple(less(one, -inside) if one.candidate.beside else one for one in joint.judged)
    winner = less(joint.winner, -inside)
    judged = (*judged[:place], winner, *judged[place + 1 :])
    return replace(joint, judged=judged, winner=winner)


def _status(value: int, bound: int) -> Status:
    return Status.OPTIMAL if bound >= value else Status.FEASIBLE


def _row(
    row: DeploymentRow, found: ClusterPlan, at: CombinationCosts, joint: Plan, value: int
) -> DeploymentRow:
    """The new winner's row has its value, the old one's its reason."""
    if row.combination == at.combination:
        bound = min(row.bound, joint.lower_bound + value - joint.value)
        status = solved_outcome(value, bound)
        told = replace(row, status=status, reason="the plan", bound=bound)
        return solved_deployment(
            told,
            value=value,
            peak_memory=joint.winner.peak_memory,
            candidate=joint.winner.candidate,
            beside=at.numbers.beside,
        )
    if row.combination == found.winner.combination:
        return replace(row, reason=f"longer than the plan, {at.combination}")
    return row
