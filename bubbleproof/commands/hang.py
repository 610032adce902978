"""``bubbleproof hang DUMPS... [--schedule S]``: why the ranks of a job stand still.

From dumps of PyTorch's Flight Recorder, one for each rank; with the schedule that was run, calls
are named by its actions and what a computation waits for is known. Status 1 where the dumps show
why, 0 where no rank waits for another, 3 where they do not decide.

``--json`` prints ``kind``, ``sentence``, ``cells`` (``rank``, ``action``, ``call`` and
``record_id``, null for what was never issued), ``waits`` in words, ``semantics``, ``before`` (the
rule of ``verify`` that would have said so), ``ranks``, ``missing_ranks`` and ``lost_calls`` (ranks
whose recorders lost their first calls).
"""

from __future__ import annotations

from collections.abc import Sequence

from bubbleproof.commands.output import (
    BROKEN,
    HOLDS,
    UNDECIDED,
    print_json,
    print_list,
    print_text,
)
from bubbleproof.formats.inputs import read_schedule_input
from bubbleproof.traces.hang_report import hang_report


def run_hang(dumps: Sequence[str], schedule: str | None, json: bool) -> int:
    """Print why ranks stand still: one sentence, the cells, who waits for whom."""
    found = hang_report(dumps, None if schedule is None else read_schedule_input([schedule]))
    if json:
        print_json(found.to_dict())
    else:
        print_text(found.sentence)
        print_list("who waits for whom", found.finding.cycle)
        print_list("before the run", [found.before] if found.before else [])
        print_list("what the dumps leave open", found.notes)
    if not found.is_hanging:
        return HOLDS
    return BROKEN if found.is_decided else UNDECIDED
