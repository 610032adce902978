"""``plan FILE --paper NAME``: a paper's choice among the plan's candidates, by the same costs.

What runs of the paper enters the search (``papers.planning.joint_plan``): the plan is never worse.
In JSON ``paper`` has ``name``, ``choice`` (what the paper's algorithm says), ``value`` (ticks of
what runs of it), ``executable``, ``note``, and ``joint``, the plan's ``value`` and the candidate
that ``run``s. With ``-o`` the schedule of what runs of the paper is written as ``paper.json``;
``verify`` takes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bubbleproof.commands.planning.plan_results import AnyPlan
from bubbleproof.costs.combinations import CombinationCosts
from bubbleproof.formats import UnusableInput, write_schedule
from bubbleproof.formats.clusters.cluster_toml import ClusterFile
from bubbleproof.formats.clusters.deployed_space import deployed_space
from bubbleproof.formats.problem_toml import ProblemFile
from bubbleproof.formats.schedule_file import ScheduleFile, with_claims
from bubbleproof.papers.planning.joint_deployments import with_plan
from bubbleproof.papers.planning.joint_plan import with_paper
from bubbleproof.papers.planning.paper_choice import PaperChoice, PaperInput, iteration, known_of
from bubbleproof.papers.planning.paper_deployments import (
    chooses_deployments,
    deployed_input,
    deployment_of,
)
from bubbleproof.papers.planning.planner_list import paper_choice, require_paper
from bubbleproof.papers.planning.shorter_orders import with_shorter_order
from bubbleproof.planners import Plan, PlanOptions, SolvedCandidate, plan
from bubbleproof.planners.cluster_planned import ClusterPlan
from bubbleproof.planners.known_schedules import KnownSchedule
from bubbleproof.report.amounts import ticks

NO_GRID = "nothing of the grid fits on paper"
NO_MESH = "PipeMesh shards the optimizer's state, and plan.zero has no 1 that fits these sizes"
FEW_SECONDS = 1.0  # for the shapes of the paper's own deployment


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PipelinesBeside:
    """A paper's choice; ``value`` is what runs of it takes, to the end of the step."""

    chosen: PaperChoice
    value: int | None


def chosen_by(name: str | None, file: ProblemFile) -> PaperChoice | None:
    """What the paper's planner says of a problem file; None where no paper is asked for.

    Raises ``ValueError`` for an unknown paper, ``UnusableInput`` for a file that it cannot take.
    """
    if name is None:
        return None
    require_paper(name)
    if file.plan is None:
        raise UnusableInput("plan", "this table, such as chunks = [1, 2]", "nothing", file.name)
    return paper_choice(name, PaperInput(space=file.plan, table=file.paper.get(name, {})))


def known_to(chosen: PaperChoice | None) -> tuple[KnownSchedule, ...]:
    """What the search begins with."""
    known = None if chosen is None else known_of(chosen)
    return () if known is None else (known,)


def joined(
    found: AnyPlan,
    chosen: PaperChoice | None,
    options: PlanOptions | None = None,
    inside: int = 0,
) -> tuple[AnyPlan, PipelinesBeside | None]:
    """The plan with the paper's choice among its candidates; ``options`` as they were for it.

    ``inside``: see ``with_paper``.
    """
    if chosen is None:
        return found, None
    chosen = with_shorter_order(chosen, options or PlanOptions())
    return with_paper(found, chosen, inside), PipelinesBeside(chosen=chosen, value=chosen.value)


def joined_deployments(
    name: str | None,
    file: ClusterFile,
    counts: Sequence[CombinationCosts],
    found: ClusterPlan,
    options: PlanOptions,
) -> tuple[ClusterPlan, PipelinesBeside | None]:
    """The same for a model on a cluster, where values are iterations.

    A paper with a grid of deployments takes its own, others plan the winner's; PipeMesh, whose
    pipelines have the replicas' collectives in themselves, that under ZeRO-1.
    """
    if name is None:
        return found, None
    at, cluster, inside = found.winner, file.training.cluster, 0
    if name == "pipemesh":
        mesh = _mesh_deployment(counts, at)
        if mesh is None:
            return found, PipelinesBeside(chosen=_nothing(name, NO_MESH), value=None)
        at, chosen = mesh, _mesh_choice(file, mesh)
        assert at.numbers is not None
        has_collectives = chosen.run is not None and chosen.run.pipeline.choices.sharding
        inside = at.numbers.step_end - at.numbers.rest_end if has_collectives else 0
    elif not chooses_deployments(name):
        given = deployed_input(name, deployed_space(file, at), file.training, at)
        chosen = paper_choice(name, given)
    else:
        own = deployment_of(name, counts, lambda one: deployed_space(file, one), cluster)
        if own is None:
            return found, PipelinesBeside(chosen=_nothing(name, NO_GRID), value=None)
        at, chosen = own.counted, paper_choice(name, own.given)
        told = {"deployment": str(at.combination), **chosen.choice}
        chosen = replace(chosen, choice=told)
    plan_of: AnyPlan = found.plan
    if at is not found.winner:
        few = replace(options, time_limit=min(FEW_SECONDS, options.time_limit), tell=None)
        plan_of = plan(deployed_space(file, at), few)
    joint, shown = joined(plan_of, chosen, options, inside)
    later = 0 if at.numbers is None else at.numbers.step_end - inside
    if shown is not None and shown.value is not None:
        shown = replace(shown, value=shown.value + later)
    return (with_plan(found, at, joint, inside) if isinstance(joint, Plan) else found), shown


def _mesh_deployment(
    counts: Sequence[CombinationCosts], at: CombinationCosts
) -> CombinationCosts | None:
    """The winner's deployment under ZeRO-1, where PipeMesh begins; None where it is not listed."""
    wanted = replace(at.combination, zero=1)
    return next((one for one in counts if one.combination == wanted and not one.reason), None)


def _mesh_choice(file: ClusterFile, at: CombinationCosts) -> PaperChoice:
    """PipeMesh's choice there, its collectives by the model of times.

    Others have theirs at the step's end, by the file's costs: their makespan is their cost here.
    """
    given = deployed_input("pipemesh", deployed_space(file, at), file.training, at)
    chosen = paper_choice("pipemesh", given)
    told = {"deployment": str(at.combination), **chosen.choice}
    return replace(chosen, choice=told, cost=iteration)


def _nothing(name: str, why: str) -> PaperChoice:
    return PaperChoice(
        paper=name, choice={"deployment": None}, executable=False, value=None, run=None, note=why
    )


def joint_to_json(found: AnyPlan) -> dict[str, object] | None:
    """What the plan takes, and what of its candidates runs; None where there is no plan."""
    return run_to_json(found.value, found.winner) if isinstance(found, Plan) else None


def run_to_json(value: int, winner: SolvedCandidate) -> dict[str, object]:
    """The same of a plan's value and its winner."""
    return {"value": value, "run": str(winner.candidate)}


def paper_to_json(shown: PipelinesBeside, joint: dict[str, object] | None) -> dict[str, object]:
    """The paper's part of the answer; ``joint`` is the plan's."""
    chosen = shown.chosen
    return {
        "name": chosen.paper,
        "choice": dict(chosen.choice),
        "value": shown.value,
        "executable": chosen.executable,
        "note": chosen.note,
        "joint": joint,
    }


def paper_rows(shown: PipelinesBeside | None, best: int | None, unit: str) -> list[tuple[str, str]]:
    """The paper's rows of the summary; ``best`` is the plan's value."""
    if shown is None:
        return []
    chosen = shown.chosen
    value = "nothing runs" if shown.value is None else ticks(shown.value, unit)
    rows = [
        (f"{chosen.paper} chooses", choice_text(chosen.choice)),
        (f"{chosen.paper} as printed", "runs" if chosen.executable else "does not run"),
        (f"{chosen.paper} takes", f"{value}; {chosen.note}" if chosen.note else value),
    ]
    if best is not None and shown.value:
        less = 100 * (shown.value - best) / shown.value
        rows.append(("by the same costs", f"the plan takes {less:.2f} % less"))
    return rows


def choice_text(choice: Mapping[str, object]) -> str:
    """The choice in words; what the paper leaves undecided is left out.

    >>> choice_text({"chunks": 2, "recompute": [], "offload": [2, 3], "q": None})
    'chunks=2, recompute nothing, offload=(2, 3)'
    """
    told = [_word(key, given) for key, given in choice.items() if given is not None]
    return ", ".join(told) or "nothing"


def _word(key: str, given: object) -> str:
    if not isinstance(given, list | tuple):
        return f"{key}={given}"
    name = {"offload": "off-load"}.get(key, key)
    return f"{key}=({', '.join(map(str, given))})" if given else f"{name} nothing"


def write_paper_schedule(folder: Path, file: ProblemFile, shown: PipelinesBeside) -> None:
    """What runs of the paper, with its measured numbers as claims."""
    if (run := shown.chosen.run) is None:
        return
    schedule = ScheduleFile.of(
        run.pipeline.problem(),
        with_claims(run.schedule, run.measured),
        pipeline=run.pipeline,
        name=f"{file.name}, {shown.chosen.paper}",
    )
    write_schedule(folder / "paper.json", schedule)
