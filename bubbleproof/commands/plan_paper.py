"""``plan FILE --paper NAME``: a paper's choice beside the joint plan, by the same costs.

In JSON ``paper`` has ``name``, ``choice`` (what the paper's algorithm says), ``value`` (ticks of
what runs of it), ``executable``, ``note``, and ``joint``: the least ticks by the same costs, of the
joint plan's schedules and the paper's (``run`` tells whose they are). With ``-o`` the schedule of
what runs is written as ``paper.json``, and where the best is one of the paper's kind but not of the
file's candidates, that as ``joint.json``; ``verify`` takes both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bubbleproof.commands.results import with_claims
from bubbleproof.costs.combinations import Counted
from bubbleproof.formats import UnusableInput, write_schedule
from bubbleproof.formats.cluster_toml import ClusterFile, deployed_space
from bubbleproof.formats.problem_toml import ProblemFile
from bubbleproof.formats.schedule_file import ScheduleFile
from bubbleproof.planners import Plan, PlanOptions
from bubbleproof.planners.cluster_planned import ClusterPlan
from bubbleproof.planners.known_schedules import Known
from bubbleproof.planners.papers import paper_choice, require_paper
from bubbleproof.planners.papers.deployments import chooses_deployments, deployment_of
from bubbleproof.planners.papers.paper_choice import (
    Given,
    Joint,
    PaperChoice,
    Run,
    joint,
    known_of,
)
from bubbleproof.planners.papers.shorter_orders import with_shorter_order
from bubbleproof.report.amounts import ticks


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Beside:
    """A paper's choice, and the best by its costs; ``after`` ticks end every step alike."""

    chosen: PaperChoice
    best: Joint | None
    after: int = 0

    @property
    def value(self) -> int | None:
        """What runs of the paper takes, to the end of the step."""
        return None if self.chosen.value is None else self.chosen.value + self.after

    @property
    def best_value(self) -> int | None:
        """What the best takes, to the end of the step."""
        return None if self.best is None else self.best.value + self.after


def chosen_by(name: str | None, file: ProblemFile) -> PaperChoice | None:
    """What the paper's planner says of a problem file; None where no paper is asked for.

    Raises ``ValueError`` for an unknown paper, ``UnusableInput`` for a file that it cannot take.
    """
    if name is None:
        return None
    require_paper(name)
    if file.plan is None:
        raise UnusableInput("plan", "this table, such as chunks = [1, 2]", "nothing", file.name)
    return paper_choice(name, Given(space=file.plan, table=file.paper.get(name, {})))


def known_to(chosen: PaperChoice | None) -> tuple[Known, ...]:
    """What the search begins with."""
    known = None if chosen is None else known_of(chosen)
    return () if known is None else (known,)


def beside(
    found: Plan,
    chosen: PaperChoice | None,
    options: PlanOptions | None = None,
    *,
    after: int = 0,
) -> Beside | None:
    """The paper's choice beside the joint plan; ``options`` as they were for the plan."""
    if chosen is None:
        return None
    chosen = with_shorter_order(chosen, options or PlanOptions())
    return Beside(chosen=chosen, best=joint(found, chosen), after=after)


def beside_deployments(
    name: str | None,
    file: ClusterFile,
    counts: Sequence[Counted],
    found: ClusterPlan,
    deployed: ProblemFile,
    options: PlanOptions,
) -> Beside | None:
    """The same for a model on a cluster.

    A paper with a grid of deployments takes its own; what its iteration takes more or less after
    the pipeline than the winner's is part of its value. Others plan the winner's deployment.
    """
    if name is None or found.plan is None:
        return None
    if not chooses_deployments(name):
        return beside(found.plan, chosen_by(name, deployed), options, after=found.step_end)
    own = deployment_of(name, counts, lambda one: deployed_space(file, one), file.training.cluster)
    if own is None:
        nothing = PaperChoice(
            paper=name, choice={"deployment": None}, executable=False, value=None, run=None,
            note="nothing of the grid fits on paper",
        )  # fmt: skip
        return Beside(chosen=nothing, best=_best(found.plan, nothing), after=found.step_end)
    chosen = paper_choice(name, own.given)
    later = own.step_end - found.step_end
    run = None if chosen.run is None else replace(chosen.run, candidate=None)
    chosen = replace(
        chosen,
        choice={"deployment": str(own.counted.combination), **chosen.choice},
        value=None if chosen.value is None else chosen.value + later,
        run=run,
    )
    return Beside(chosen=chosen, best=_best(found.plan, chosen), after=found.step_end)


def _best(found: Plan, chosen: PaperChoice) -> Joint | None:
    """The best of the plan's schedules and of what runs of the paper."""
    best = joint(found, replace(chosen, value=None))
    if chosen.value is None or (best is not None and best.value <= chosen.value):
        return best
    return Joint(value=chosen.value, name=chosen.paper, run=chosen.run)


def paper_to_json(shown: Beside) -> dict[str, object]:
    """The paper's part of the answer."""
    chosen, best = shown.chosen, shown.best
    return {
        "name": chosen.paper,
        "choice": dict(chosen.choice),
        "value": shown.value,
        "executable": chosen.executable,
        "note": chosen.note,
        "joint": None if best is None else {"value": shown.best_value, "run": best.name},
    }


def paper_rows(shown: Beside | None, unit: str) -> list[tuple[str, str]]:
    """The paper's rows of the summary."""
    if shown is None:
        return []
    chosen, best = shown.chosen, shown.best
    value = "nothing runs" if shown.value is None else ticks(shown.value, unit)
    rows = [
        (f"{chosen.paper} chooses", choice_text(chosen.choice)),
        (f"{chosen.paper} as printed", "runs" if chosen.executable else "does not run"),
        (f"{chosen.paper} takes", f"{value}; {chosen.note}"),
    ]
    if best is not None and shown.best_value is not None:
        least = ticks(shown.best_value, unit)
        rows.append(("joint, by the same costs", f"{least}, {best.name}"))
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


def write_paper_schedules(folder: Path, file: ProblemFile, shown: Beside) -> None:
    """What runs of the paper, and the best by its costs where that is none of the candidates'."""
    own, best = shown.chosen.run, None if shown.best is None else shown.best.run
    if own is not None:
        _write_run(folder / "paper.json", file, shown.chosen, own)
    if best is not None and best is not own:
        _write_run(folder / "joint.json", file, shown.chosen, best)


def _write_run(path: Path, file: ProblemFile, chosen: PaperChoice, run: Run) -> None:
    """A run with its measured numbers as claims."""
    schedule = ScheduleFile.of(
        run.pipeline.problem(),
        with_claims(run.schedule, run.measured),
        pipeline=run.pipeline,
        name=f"{file.name}, {chosen.paper}",
    )
    write_schedule(path, schedule)
