"""``bubbleproof hand-over PLAN|SCHEDULE --to TARGET -o DIR [--check]``: files that start training.

A plan's folder or file tells the model, its deployment and its cut; a schedule or a family tells an
order alone, which PyTorch's own runtime takes. What the target does not do stands in ``LOSES.md``;
what it would get wrong without a word is refused, status 2. ``--check`` trains ten steps and reads
back what there is a reader for; status 1 where something differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from bubbleproof.commands.inputs import read_schedule_input
from bubbleproof.commands.options.targets import written_together
from bubbleproof.commands.output import print_json, print_table, say
from bubbleproof.commands.replaying.torch_limits import MISSING
from bubbleproof.costs.combinations import combinations
from bubbleproof.formats.files import write_text
from bubbleproof.formats.plans.plan_json import PlanFile, read_plan
from bubbleproof.hand_over.handed import HandedSchedule, PlannedModel
from bubbleproof.hand_over.targets_list import (
    LOSES,
    handed_to,
    page_of_losses,
    require_target,
)

HOLDS, BROKEN = 0, 1
PLAN = "plan.json"
FORMAT = b'"bubbleproof/plan"'


def run_hand_over(
    schedule: Sequence[str], target: str, output: str, check: bool, json: bool
) -> int:
    """Write what starts the training, and say what is lost."""
    require_target(target)
    if check and find_spec("torch") is None:
        raise ValueError(MISSING.replace("replay", "hand-over --check"))
    handed = _handed(schedule)
    made = handed_to(target, handed)
    files = {**made.files, LOSES: page_of_losses(target, handed, made)}
    with written_together(output) as (folder,):
        for name, text in files.items():
            write_text(folder / name, text)
    checks = [(what, "") for what in made.checked] if check else []
    if check and made.has_table:
        from bubbleproof.hand_over.trained_check import trained_check

        say("training ten steps by PyTorch's runtime, twice")
        found = trained_check(handed)
        checks.append((found.what, found.difference))
    _tell(target, handed.name, output, files, made.start, made.losses, checks, json)
    return BROKEN if any(difference for _, difference in checks) else HOLDS


def _tell(
    target: str,
    name: str,
    output: str,
    files: dict[str, str],
    start: str,
    losses: Sequence[str],
    checks: Sequence[tuple[str, str]],
    json: bool,
) -> None:
    if json:
        print_json(
            {
                "target": target,
                "name": name,
                "folder": output,
                "files": list(files),
                "start": start,
                "losses": list(losses),
                "checks": [
                    {"what": what, "holds": not why, "difference": why} for what, why in checks
                ],
            }
        )
        return
    rows = [("file", f"{output}/{each}") for each in files]
    rows += [("start", start), *(("lost", loss) for loss in losses)]
    rows += [("holds" if not why else "differs", why or what) for what, why in checks]
    print_table(f"{name}, handed to {target}", ("what", "value"), rows)


def _handed(words: Sequence[str]) -> HandedSchedule:
    """The plan or schedule that the words name."""
    path = _plan_file(words)
    if path is not None:
        return _of_plan(read_plan(path))
    given = read_schedule_input(words)
    if given.pipeline is None:
        raise ValueError(
            f"hand-over: {given.name} is a problem built by hand, which has no stages to hand over"
        )
    return HandedSchedule(name=given.name, given=given, pipeline=given.pipeline)


def _plan_file(words: Sequence[str]) -> Path | None:
    """The file of a plan, where the words name one or a folder with one."""
    if len(words) != 1:
        return None
    path = Path(words[0])
    if path.is_dir():
        return path / PLAN if (path / PLAN).is_file() else None
    if path.suffix.lower() != ".json" or not path.is_file():
        return None
    with path.open("rb") as file:
        return path if FORMAT in file.read(200) else None


def _of_plan(plan: PlanFile) -> HandedSchedule:
    pipeline = plan.schedule.pipeline
    if pipeline is None:
        raise ValueError(f"hand-over: the schedule of plan {plan.name} tells no pipeline")
    return HandedSchedule(
        name=plan.name, given=plan.schedule, pipeline=pipeline, planned=_planned(plan)
    )


def _planned(plan: PlanFile) -> PlannedModel | None:
    """The model and deployment of a plan that starts from a model; None of a problem's."""
    if plan.cluster is None or not plan.winner.layers:
        return None
    job = plan.cluster.training
    named = {str(each): each for each in combinations(job, plan.cluster.lists)}
    found = named.get(plan.deployment or "")
    if found is None:
        raise ValueError(
            f"hand-over: {plan.name} has no deployment {plan.deployment!r} among those of its file"
        )
    return PlannedModel(
        model=job.model,
        deployment=job.deployment.with_changes(**found.to_json()),
        layers=plan.winner.layers,
        samples=job.samples,
    )
