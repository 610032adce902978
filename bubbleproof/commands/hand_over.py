"""``bubbleproof hand-over PLAN|SCHEDULE --to TARGET -o DIR [--check]``: files that start training.

A plan's folder or file tells the model, its deployment and its cut; a schedule or a family tells an
order alone, which PyTorch's own runtime takes. What the target lacks is listed in
``UNSUPPORTED.md``; what it would silently get wrong is an error, status 2. ``--check`` trains ten
steps and reads back what there is a reader for; status 1 where something differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from bubbleproof.commands.first_lines import print_answer, print_rows
from bubbleproof.commands.options.shared_options import Detail
from bubbleproof.commands.options.targets import written_together
from bubbleproof.commands.output import print_json, say
from bubbleproof.commands.replaying.torch_limits import MISSING
from bubbleproof.formats.files import write_text
from bubbleproof.formats.inputs import read_plan_input, read_schedule_input
from bubbleproof.formats.plans.plan_json import PlanFile
from bubbleproof.hand_over.handed import HandedSchedule, planned_of
from bubbleproof.hand_over.targets_list import (
    UNSUPPORTED,
    handed_to,
    page_of_losses,
    require_target,
)

HOLDS, BROKEN = 0, 1


def run_hand_over(
    schedule: Sequence[str], target: str, output: str, detail: Detail, check: bool, json: bool
) -> int:
    """Write what starts the training, and say what the target lacks."""
    require_target(target)
    if check and find_spec("torch") is None:
        raise ValueError(MISSING.replace("replay", "hand-over --check"))
    handed = _handed(schedule)
    made = handed_to(target, handed)
    files = {**made.files, UNSUPPORTED: page_of_losses(target, handed, made)}
    with written_together(output) as (folder,):
        for name, text in files.items():
            write_text(folder / name, text)
    checks = [(what, "") for what in made.checked] if check else []
    if check and made.has_table:
        from bubbleproof.hand_over.trained_check import trained_check

        say("training ten steps by PyTorch's runtime, twice")
        found = trained_check(handed)
        checks.append((found.what, found.difference))
    _tell(target, handed.name, output, files, made.start, made.losses, checks, detail, json)
    return BROKEN if any(difference for _, difference in checks) else HOLDS


def _tell(
    target: str,
    name: str,
    output: str,
    files: dict[str, str],
    start: str,
    losses: Sequence[str],
    checks: Sequence[tuple[str, str]],
    detail: Detail,
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
    if not print_answer(_lines(target, name, output, start, losses, checks), detail):
        return
    rows = [("file", f"{output}/{each}") for each in files]
    rows += [("start", start), *(("not written", loss) for loss in losses)]
    rows += [("holds" if not why else "differs", why or what) for what, why in checks]
    print_rows(f"{name}, handed to {target}", ("what", "value"), rows, detail)


def _lines(
    target: str,
    name: str,
    output: str,
    start: str,
    losses: Sequence[str],
    checks: Sequence[tuple[str, str]],
) -> list[str]:
    """That it is written or differs, how the training starts, and what the target lacks."""
    unlike = [why for _, why in checks if why]
    told = [
        f"{'FAIL' if unlike else 'PASS'}  " * bool(checks) + f"{name} for {target} is in {output}"
    ]
    told += unlike + [f"checked  {what}" for what, why in checks if not why]
    told.append(f"start    {start}")
    if losses:
        told.append(f"Features the target lacks are listed in {output}/{UNSUPPORTED}:")
        told += [f"- {each}" for each in losses]
    return told


def _handed(words: Sequence[str]) -> HandedSchedule:
    """The plan or schedule that the words name."""
    plan = read_plan_input(words)
    if plan is not None:
        return _of_plan(plan)
    given = read_schedule_input(words)
    if given.pipeline is None:
        raise ValueError(
            f"hand-over: {given.name} is a problem built by hand, which has no stages to hand over"
        )
    return HandedSchedule(name=given.name, given=given, pipeline=given.pipeline)


def _of_plan(plan: PlanFile) -> HandedSchedule:
    pipeline = plan.schedule.pipeline
    if pipeline is None:
        raise ValueError(f"hand-over: the schedule of plan {plan.name} tells no pipeline")
    return HandedSchedule(
        name=plan.name, given=plan.schedule, pipeline=pipeline, planned=planned_of(plan)
    )
