"""Where an iteration's time goes: of the plan, of the deployments next to it, and of one's own.

Of each the parts of ``time_parts`` in milliseconds, which sum to the iteration, and what of it
would have to be shorter for it to be the plan. A paper's pipeline, which is none of the shapes, has
no parts here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bubbleproof.commands.planning.own_run import NotLegalRun, OwnRun, changed
from bubbleproof.costs.combinations import AnyCount, CombinationCosts, legal
from bubbleproof.costs.time_parts import TimeParts, time_parts
from bubbleproof.formats.clusters.cluster_toml import ClusterFile
from bubbleproof.formats.clusters.deployed_space import deployed_space
from bubbleproof.planners.cluster_planned import ClusterPlan, NoClusterPlan, SolvedDeployment
from bubbleproof.theory.pipelines.shapes.shaping import shaped

NEXT = 5  # deployments beside the plan
TIME_COLUMNS = (
    "deployment",
    "iteration (ms)",
    "compute",
    "tensor",
    "exchange",
    "bubble",
    "gradients",
    "optimizer",
    "to be the plan",
)
PARTS_EXPLAINED = (
    "milliseconds: compute, the products of the rank that computes longest; tensor and exchange, "
    "what waits for\ntensor groups, and for context, experts and ZeRO 2 and 3, add; bubble, the "
    "rest of the pipeline's makespan;\ngradients and optimizer, the step's end."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentTimes:
    """A deployment with its shape, and where its iteration's microseconds go."""

    name: str
    parts: TimeParts


def deployment_times(
    file: ClusterFile, counts: Sequence[AnyCount], found: ClusterPlan
) -> tuple[DeploymentTimes, ...]:
    """The plan's times first, then those of the next in turn."""
    of = {one.combination: one for one in legal(counts)}
    solved = [row for row in found.solved if not row.candidate.beside]
    nearest = sorted(solved, key=lambda row: row.value)[: 1 + NEXT]
    return tuple(_times(file, of[row.combination], row) for row in nearest)


def _times(file: ClusterFile, one: CombinationCosts, row: SolvedDeployment) -> DeploymentTimes:
    pipeline = shaped(deployed_space(file, one), row.candidate).pipeline
    makespan = row.value - one.numbers.step_end
    return DeploymentTimes(
        name=f"{row.combination}, {row.candidate}",
        parts=time_parts(file.training, one, pipeline, row.candidate.layers or (), makespan),
    )


def time_rows(times: Sequence[DeploymentTimes]) -> list[tuple[str, ...]]:
    """A row of each, in milliseconds."""
    best = times[0].parts
    return [
        (
            each.name,
            _ms(each.parts.iteration),
            *(_ms(took) for took in each.parts.named.values()),
            "it is" if each.parts is best else each.parts.to_beat(best),
        )
        for each in times
    ]


def _ms(microseconds: int) -> str:
    return f"{microseconds / 1000:,.1f}"


def times_to_json(times: Sequence[DeploymentTimes]) -> list[dict[str, object]]:
    """The same for programs, in microseconds."""
    return [
        {"deployment": each.name, "iteration": each.parts.iteration, **each.parts.named}
        for each in times
    ]


def own_rows(own: OwnRun, found: ClusterPlan | NoClusterPlan, mfu: float) -> list[tuple[str, str]]:
    """What one's own configuration takes beside the plan, and what to change.

    One that is no candidate may be shorter than the plan: nothing is to change then.
    """
    outside = f" (outside of what was planned: {own.reason})" if own.reason else ""
    rows = [
        ("yours", f"{own.combination}, {own.candidate}{outside}"),
        ("its iteration", f"{own.iteration:,} us, {100 * mfu:.1f} % MFU"),
    ]
    if not isinstance(found, ClusterPlan) or found.value > own.iteration:
        return rows
    less = 100 * (1 - found.value / own.iteration)
    return [
        *rows,
        ("the plan takes", f"{less:.1f} % less" if less else "as much"),
        ("to change", ", ".join(_changes(own, found)) or "nothing: it is the plan"),
    ]


def refused_rows(why: NotLegalRun) -> list[tuple[str, str]]:
    """That one's own configuration is none."""
    return [("yours", f"not legal: {str(why).removeprefix('yours ')}")]


def own_to_json(own: OwnRun, found: ClusterPlan, mfu: float) -> dict[str, object]:
    """The same for programs."""
    change = _changes(own, found) if found.value <= own.iteration else []
    return {**own.to_json(), "mfu": round(mfu, 4), "change": change}


def _changes(own: OwnRun, found: ClusterPlan) -> list[str]:
    return changed(own, found.winner.combination, found.plan.winner.candidate)
