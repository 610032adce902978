"""Rules 1 and 2: is everything there, once, and in its place?"""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.model.actions import NONE
from bubbleproof.verify.rows import SHOWN, Rows, finding
from bubbleproof.verify.verdict import Finding, Rule, Violation


def complete(rows: Rows) -> Finding:
    problem, program = rows.problem, rows.schedule.program
    known = rows.task != NONE
    required = rows.pair(problem.occupancy.task, problem.occupancy.resource)
    given, times = np.unique(
        rows.pair(rows.task[known], program.resource[known]), return_counts=True
    )
    misplaced = np.setdiff1d(given, required, assume_unique=True) // rows.width
    missing = np.setdiff1d(required, given, assume_unique=True)
    missing = missing[~np.isin(missing // rows.width, misplaced)]
    foreign, repeated = np.flatnonzero(~known), given[times > 1]
    violations = [_foreign(rows, row) for row in foreign[:SHOWN].tolist()]
    for pair in missing[:SHOWN].tolist():
        task, resource = divmod(pair, rows.width)
        violations.append(_missing(rows, task, resource))
    for pair in repeated[:SHOWN].tolist():
        task, resource = divmod(pair, rows.width)
        where = rows.rows_of(task)
        where = where[program.resource[where] == resource]
        message = (
            f"{rows.name(task)} stands {len(where)} times on "
            f"{problem.resource_name(resource)}, must stand once"
        )
        violations.append(
            rows.violation(Rule.COMPLETE, message, where, int(rows.schedule.start[where[1]]))
        )
    return finding(Rule.COMPLETE, len(foreign) + len(missing) + len(repeated), violations)


def _foreign(rows: Rows, row: int) -> Violation:
    program = rows.schedule.program
    where = rows.problem.resource_name(int(program.resource[row]))
    message = f"{program.actions.label(row)} on {where} is no task of the problem"
    return rows.violation(Rule.COMPLETE, message, np.array([row]), int(rows.schedule.start[row]))


def _missing(rows: Rows, task: int, resource: int) -> Violation:
    where = rows.problem.resource_name(resource)
    message = f"{rows.name(task)} is missing on {where}"
    stage_kind = (rows.problem.actions.stage[task], rows.problem.actions.kind[task])
    actions = rows.schedule.program.actions
    siblings = np.flatnonzero((actions.stage == stage_kind[0]) & (actions.kind == stage_kind[1]))
    near = np.abs(actions.microbatch[siblings] - rows.problem.actions.microbatch[task])
    closest = siblings[np.argsort(near, kind="stable")[:1]]
    shown = rows.violation(Rule.COMPLETE, message, closest, None)
    return Violation(
        rule=Rule.COMPLETE,
        tasks=(rows.name(task),),
        at=None,
        message=message,
        picture=shown.picture and f"{shown.picture}\n{'':10}(marked: its nearest sibling)",
    )


def placed(rows: Rows) -> Finding:
    problem, resource = rows.problem, rows.schedule.program.resource
    known = np.flatnonzero(rows.task != NONE)
    required = rows.pair(problem.occupancy.task, problem.occupancy.resource)
    wrong = known[~np.isin(rows.pair(rows.task[known], resource[known]), required)]
    violations = []
    for row in wrong[:SHOWN].tolist():
        task = int(rows.task[row])
        homes = problem.occupancy.resource[problem.occupancy.task == task]
        message = (
            f"{rows.name(task)} stands on {problem.resource_name(int(resource[row]))}, "
            f"belongs on {' and '.join(problem.resource_name(h) for h in homes.tolist())}"
        )
        violations.append(
            rows.violation(Rule.PLACED, message, np.array([row]), int(rows.schedule.start[row]))
        )
    split = known[:0]
    if rows.timed and len(problem.occupancy.task) > problem.num_tasks:
        shared = np.bincount(problem.occupancy.task, minlength=problem.num_tasks) > 1
        split = known[
            shared[rows.task[known]] & (rows.schedule.start[known] != rows.start[rows.task[known]])
        ]
    for row in split[:SHOWN].tolist():
        where = rows.rows_of(int(rows.task[row]))
        message = f"{rows.name(int(rows.task[row]))} starts at different times on its resources"
        violations.append(
            rows.violation(Rule.PLACED, message, where, int(rows.schedule.start[row]))
        )
    return finding(Rule.PLACED, len(wrong) + len(split), violations)
