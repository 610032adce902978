"""The plan of a model on a cluster for people and for programs: deployments, and the winner."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bubbleproof.commands.planning.plan_results import (
    bound_text,
    front_to_json,
    plan_to_json,
    winner_to_json,
)
from bubbleproof.costs.utilisation import teraflops, utilisation
from bubbleproof.formats.clusters.cluster_toml import ClusterFile
from bubbleproof.formats.problem_toml import ProblemFile
from bubbleproof.planners.case_proofs import NEVER
from bubbleproof.planners.cluster_planned import (
    ClusterPlan,
    DeploymentRow,
    NoClusterPlan,
    SolvedDeployment,
)
from bubbleproof.planners.deployment_times import DeploymentTimes
from bubbleproof.planners.jitter import Timed
from bubbleproof.planners.outcome import Outcome
from bubbleproof.planners.own_run import NotLegalRun, OwnRun, changed
from bubbleproof.planners.restriction import Restriction
from bubbleproof.report.amounts import Scale, ticks
from bubbleproof.report.plan_page import Corner
from bubbleproof.solvers import Status

COLUMNS = ("deployment", "iteration (us)", "bound (us)", "MFU", "peak", "status", "why")
NUMBERS = re.compile(r"[0-9][0-9.,]*")
MOST_SHOWN = 12
UNIT = "us"
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
OF_DEPLOYMENT = "any order of this deployment's pipelines that were open"
AnyClusterPlan = ClusterPlan | NoClusterPlan


def combination_rows(file: ClusterFile, found: AnyClusterPlan) -> list[tuple[str, ...]]:
    """The deployments: the shortest iteration first, then the least bound, then what cannot run.

    Where there are many, the first of them, and how many others there are for each reason, numbers
    aside; of those that do not fit the nearest to it is the example.
    """
    rows = sorted(found.rows, key=_place)
    shown = [_row(file, row) for row in rows[:MOST_SHOWN]]
    groups: dict[tuple[Outcome, str], list[DeploymentRow]] = {}
    for row in rows[MOST_SHOWN:]:
        groups.setdefault((row.status, NUMBERS.sub("#", row.reason)), []).append(row)
    for (status, _), alike in groups.items():
        one = min(alike, key=lambda row: row.on_card if status is Outcome.INFEASIBLE else 0)
        why = f"such as {one.combination}: {one.reason}" if len(alike) > 1 else one.reason
        shown.append((f"and {len(alike)} more", "", "", "", "", status.name, why))
    return shown


def _place(row: DeploymentRow) -> tuple[int, int]:
    if isinstance(row, SolvedDeployment):
        return 0, row.value
    if row.status is Outcome.INFEASIBLE:  # the nearest to fitting first
        return 3, row.on_card or NEVER
    places = {Outcome.UNKNOWN: 1, Outcome.BOUNDED: 2, Outcome.TOO_LARGE: 4}
    return places.get(row.status, 5), row.bound


def _row(file: ClusterFile, row: DeploymentRow) -> tuple[str, ...]:
    value, peak = "", ""
    if isinstance(row, SolvedDeployment):
        value = f"{row.value:,}"
        peak = Scale.of("bytes", row.peak_memory).amount(row.peak_memory)
    return (
        str(row.combination),
        value,
        "" if row.bound in (0, NEVER) else f"{row.bound:,}",
        _utilisation(file, row),
        peak,
        row.status.name,
        row.reason,
    )


def corners_of(found: ClusterPlan) -> list[Corner]:
    """Where each deployment that fits lies between time and memory."""
    return [
        Corner(
            name=str(row.combination),
            ticks=row.value if isinstance(row, SolvedDeployment) else row.bound,
            memory=row.on_card,
            is_found=isinstance(row, SolvedDeployment),
        )
        for row in found.rows
        if row.bound not in (0, NEVER)
    ]


def _utilisation(file: ClusterFile, row: DeploymentRow) -> str:
    """In percent; where there is a bound alone, at most so much."""
    if isinstance(row, SolvedDeployment):
        return f"{100 * utilisation(file.training, row.value):.1f} %"
    if row.bound in (0, NEVER):
        return ""
    return f"<= {100 * utilisation(file.training, row.bound):.1f} %"


def iteration_rows(file: ClusterFile, found: AnyClusterPlan) -> list[tuple[str, str]]:
    """What to run and how good it is; or why nothing, and what would do."""
    rows = [("status", found.statement), ("deployments", f"{len(found.rows):,}")]
    if isinstance(found, NoClusterPlan):
        for nearest in found.nearest if found.status is Status.INFEASIBLE else ():
            memory = Scale.of("bytes", nearest.memory).amount(nearest.memory)
            rows.append(("fits with", f"{memory} on each card, as {nearest.combination}"))
        return [*rows, ("time", f"{found.seconds:.2f} s")]
    return [
        *rows,
        ("run", str(found.winner.combination)),
        ("iteration", ticks(found.value, UNIT)),
        ("lower bound", bound_text(found.value, found.lower_bound, UNIT, found.bounded)),
        ("of it after the pipeline", ticks(found.step_end, UNIT)),
        (
            "model FLOPs per card",
            f"{teraflops(file.training, found.value):.1f} TFLOPS, "
            f"{100 * utilisation(file.training, found.value):.1f} % of its rate (MFU)",
        ),
    ]


def no_plan_to_json(file: ClusterFile, found: NoClusterPlan) -> dict[str, object]:
    """For programs, that there is no plan."""
    return {
        **_deployments_to_json(file, found),
        "value": None,
        "winner": None,
        "mfu": None,
        "least_capacity": found.nearest[0].memory if found.nearest else None,
        "verified": False,
    }


def cluster_plan_to_json(
    file: ClusterFile, deployed: ProblemFile, found: ClusterPlan, timed: Timed
) -> dict[str, object]:
    """The result for programs; see ``plan_cluster``."""
    winner = winner_to_json(found.plan.winner)
    return {
        **_deployments_to_json(file, found),
        "value": found.value,
        "winner": {**found.winner.combination.to_json(), **winner},
        "mfu": round(utilisation(file.training, found.value), 4),
        "least_capacity": None,
        "makespan": found.plan.value,
        "step_end": found.step_end,
        "microbatches": found.winner.microbatches,
        "shapes": plan_to_json(deployed, found.plan, timed)["candidates"],
        "verified": found.plan.verdict.ok,
    }


def _deployments_to_json(file: ClusterFile, found: AnyClusterPlan) -> dict[str, object]:
    return {
        "name": file.name,
        "status": found.status.name,
        "statement": found.statement,
        "objective": "iteration",
        "unit": UNIT,
        "lower_bound": None if found.lower_bound == NEVER else found.lower_bound,
        "lower_bound_of": found.bounded,
        "candidates": [_to_json(row) for row in sorted(found.rows, key=_place)],
        "pareto": front_to_json(found.solved),
        "nearest": found.nearest[0].combination.to_json() if found.nearest else None,
        "reason": found.reason,
        "seconds": round(found.seconds, 3),
    }


def _to_json(row: DeploymentRow) -> dict[str, object]:
    return {
        **row.combination.to_json(),
        "status": row.status.name,
        "value": row.value if isinstance(row, SolvedDeployment) else None,
        "lower_bound": None if row.bound in (0, NEVER) else row.bound,
        "lower_bound_of": OF_DEPLOYMENT,
        "peak_memory": row.peak_memory if isinstance(row, SolvedDeployment) else None,
        "reason": row.reason,
    }


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


def _less(best: int, other: int) -> str:
    return f"{100 * (best - other) / best:.2g} %"


def restriction_rows(of: Restriction | None, best: int) -> list[tuple[str, str]]:
    """What it costs that the plan is for one framework; ``best`` is the plan's iteration."""
    if of is None:
        return []
    told = f"{of.framework}; {of.left_out:,} deployments that it does not run are left out"
    cost = "nothing that was found"
    if of.value is not None and of.value < best:
        cost = f"{_less(best, of.value)}: {of.value:,} us as {of.run}"
    most = f"at most {_less(best, of.bound)} less without it"
    return [
        ("planned for", told),
        ("cost of this restriction", f"{cost}; {most}"),
        ("lower bound without it", f"{ticks(of.bound, UNIT)} ({of.bounded})"),
    ]


def restriction_to_json(of: Restriction) -> dict[str, object]:
    """The same for programs."""
    return {
        "name": of.framework,
        "left_out": of.left_out,
        "unrestricted": of.value,
        "run": of.run,
        "lower_bound": of.bound,
        "lower_bound_of": of.bounded,
    }
