"""``bubbleproof hand-over PLAN|SCHEDULE --to TARGET -o DIR [--check]``: files that start training.

A plan's folder or file tells the model, its deployment and its cut; a schedule or a family tells an
order alone, which PyTorch's own runtime takes. What the target lacks is listed in
``UNSUPPORTED.md``; what it would silently get wrong is an error, status 2. ``--check`` trains ten
steps and reads back what there is a reader for; status 1 where something differs.
"""

from __future__ import annotations

from collections.abc import Sequence

from bubbleproof.commands.first_lines import print_answer, print_rows
from bubbleproof.commands.options.shared_options import Detail
from bubbleproof.commands.output import BROKEN, HOLDS, print_json, say
from bubbleproof.facts import rows
from bubbleproof.formats.inputs import read_plan_input, read_schedule_input
from bubbleproof.hand_over.handed_over import HandedOver, handed_over
from bubbleproof.hand_over.targets_list import UNSUPPORTED, require_target


def run_hand_over(
    schedule: Sequence[str], target: str, output: str, detail: Detail, check: bool, json: bool
) -> int:
    """Write what starts the training, and say what the target lacks."""
    require_target(target)
    given = read_plan_input(schedule) or read_schedule_input(schedule)
    found = handed_over(given, target, output, check=check, say=say)
    if json:
        print_json(found.to_dict())
    elif print_answer(_lines(found), detail):
        told = [(label, value) for label, _, value, _ in rows(found.facts())]
        print_rows(f"{found.name}, handed to {target}", ("what", "value"), told, detail)
    return HOLDS if found.ok else BROKEN


def _lines(found: HandedOver) -> list[str]:
    """That it is written or differs, how the training starts, and what the target lacks."""
    verdict = f"{'PASS' if found.ok else 'FAIL'}  " * bool(found.checks)
    told = [f"{verdict}{found.name} for {found.target} is in {found.folder}"]
    told += [why for _, why in found.checks if why]
    told += [f"checked  {what}" for what, why in found.checks if not why]
    if found.unloaded:
        told.append(f"not read by the target's own code: {found.unloaded}")
    told.append(f"start    {found.start}")
    if found.losses:
        told.append(f"Features the target lacks are listed in {found.folder}/{UNSUPPORTED}:")
        told += [f"- {each}" for each in found.losses]
    return told
