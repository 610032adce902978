"""``bubbleproof hand-over PLAN|SCHEDULE --to TARGET -o DIR [--check]``: files that start training.

A plan's folder or file tells the model, its deployment and its cut; a schedule or a family tells an
order alone, which PyTorch's own runtime takes. What the target does not do stands in ``LOSES.md``;
what it would get wrong without a word is refused, status 2. ``--check`` trains ten steps and reads
back what there is a reader for; status 1 where something differs.
"""

from __future__ import annotations

from collections.abc import Sequence

from bubbleproof.commands.output import BROKEN, HOLDS, print_json, print_table, say
from bubbleproof.facts import rows
from bubbleproof.formats.inputs import read_plan_input, read_schedule_input
from bubbleproof.hand_over.handed_over import handed_over
from bubbleproof.hand_over.targets_list import require_target


def run_hand_over(
    schedule: Sequence[str], target: str, output: str, check: bool, json: bool
) -> int:
    """Write what starts the training, and say what is lost."""
    require_target(target)
    given = read_plan_input(schedule) or read_schedule_input(schedule)
    found = handed_over(given, target, output, check=check, say=say)
    if json:
        print_json(found.to_dict())
    else:
        told = [(label, value) for label, _, value, _ in rows(found.facts())]
        print_table(f"{found.name}, handed to {target}", ("what", "value"), told)
    return HOLDS if found.ok else BROKEN
