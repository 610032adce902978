"""What schedules with transfers may not do within one instant.

What runs beside computation stands in a rank's program, and in the memory model, where the times of
the schedule put it (``transfer_rows``). Nothing of no duration has an order in time: a forward of 0
ticks ends when it begins, and an activation that leaves and returns at one moment is on its other
end, in the program, for bytes that the model never counts.
"""

from __future__ import annotations

import numpy as np

from bubbleproof.reference_exec.plans.plan import COMPUTE_KINDS
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule

_RETURNS = {Kind.EVICT: Kind.LOAD, Kind.OFFLOAD: Kind.RELOAD}


def require_ticks(problem: Problem) -> None:
    """Raise ``ValueError`` for a computation of no duration.

    Precondition: something of the problem runs beside computation.
    """
    instant = problem.actions.is_kind(*COMPUTE_KINDS) & (problem.duration < 1)
    if instant.any():
        raise ValueError(
            "replays of schedules with transfers or collectives need computations of 1 tick or "
            f"more; {problem.label(int(instant.argmax()))} takes none"
        )


def require_stays(problem: Problem, schedule: Schedule) -> None:
    """Raise ``ValueError`` for an activation that leaves and is back at the same moment.

    Precondition: the schedule is verified.
    """
    task = problem.locate(schedule.program.actions)
    start = np.zeros(problem.num_tasks, dtype=np.int64)
    start[task] = schedule.start
    for away, back in _RETURNS.items():
        left = {}
        for leaving in np.flatnonzero(problem.actions.is_kind(away)).tolist():
            action = problem.actions[leaving]
            left[action.stage, action.microbatch, action.slice] = leaving
        for returning in np.flatnonzero(problem.actions.is_kind(back)).tolist():
            action = problem.actions[returning]
            key = (action.stage, action.microbatch, action.slice)
            end = start[returning] + problem.duration[returning]
            if key in left and start[left[key]] == end:
                raise ValueError(
                    f"replay cannot tell the bytes of {problem.label(left[key])}, which is undone "
                    f"by {action} at the same moment, {end}; give a transfer 1 tick or more"
                )
