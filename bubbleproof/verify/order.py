"""Rules 3 and 4: does every task wait for its inputs, and each resource do one task at a time?"""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.pipelines.timing import Deadlock
from bubbleproof.theory.pipelines.units import counted
from bubbleproof.verify.rows import SHOWN, Rows, finding
from bubbleproof.verify.verdict import Finding, Rule


def dependencies(rows: Rows) -> Finding:
    problem, edges, start = rows.problem, rows.problem.edges, rows.start
    known = rows.present[edges.before] & rows.present[edges.after]
    ready = start[edges.before] + problem.duration[edges.before] + edges.lag
    early = np.flatnonzero(known & (start[edges.after] < ready))
    negative = np.flatnonzero(rows.present & (start < 0))
    violations = []
    for edge in early[np.argsort(start[edges.after[early]], kind="stable")][:SHOWN].tolist():
        before, after, lag = (
            int(edges.before[edge]), int(edges.after[edge]), int(edges.lag[edge])
        )  # fmt: skip
        end = int(start[before] + problem.duration[before])
        delay = f" and needs {counted(lag, problem.unit)} to arrive" if lag else ""
        message = (
            f"{rows.name(after)} starts at {start[after]}, but waits for {rows.name(before)}, "
            f"which ends at {end}{delay}"
        )
        violations.append(
            rows.violation(
                Rule.DEPENDENCIES, message, rows.rows_of(before, after), int(start[after])
            )
        )
    for task in negative[:SHOWN].tolist():
        message = f"{rows.name(task)} starts at {start[task]}, before time 0"
        violations.append(
            rows.violation(Rule.DEPENDENCIES, message, rows.rows_of(task), int(start[task]))
        )
    return finding(Rule.DEPENDENCIES, len(early) + len(negative), violations)


def exclusive(rows: Rows) -> Finding:
    problem, schedule = rows.problem, rows.schedule
    resource = schedule.program.resource
    end = schedule.start + problem.ticks(rows.task)
    clash = np.flatnonzero((resource[1:] == resource[:-1]) & (schedule.start[1:] < end[:-1]))
    violations = []
    for row in clash[:SHOWN].tolist():
        first, second = (schedule.program.actions.label(r) for r in (row, row + 1))
        message = (
            f"{problem.resource_name(int(resource[row]))} starts {second} at "
            f"{schedule.start[row + 1]}, but {first}, listed before it, runs until {end[row]}"
        )
        pair = np.array([row, row + 1])
        violations.append(
            rows.violation(Rule.EXCLUSIVE, message, pair, int(schedule.start[row + 1]))
        )
    return finding(Rule.EXCLUSIVE, len(clash), violations)


def deadlock(rows: Rows, error: Deadlock) -> Finding:
    marked = [
        row
        for row, action in enumerate(rows.schedule.program.actions)
        if rows.problem.label(int(rows.task[row])) in error.waiting and action
    ]
    violation = rows.violation(Rule.DEPENDENCIES, str(error), np.array(marked), None)
    return finding(Rule.DEPENDENCIES, 1, [violation])
