"""Rules 3 and 4: does every task wait for its inputs, and each resource do one task at a time?"""

from __future__ import annotations

import numpy as np

from bubbleproof.verify.finding import Finding, Rule
from bubbleproof.verify.rows import Breaches, Rows


def dependencies(rows: Rows) -> list[Breaches]:
    """Rule 3: precedences that are broken, those of early tasks first, and starts before 0."""
    problem, edges, start = rows.problem, rows.problem.edges, rows.start
    known = rows.present[edges.before] & rows.present[edges.after]
    ready = start[edges.before] + problem.duration[edges.before] + edges.lag
    early = np.flatnonzero(known & (start[edges.after] < ready))
    early = early[np.argsort(start[edges.after[early]], kind="stable")]
    negative = np.flatnonzero(rows.present & (start < 0))

    def too_early(number: int) -> Finding:
        before, after = int(edges.before[early[number]]), int(edges.after[early[number]])
        tasks = rows.name(before), rows.name(after)
        return Finding(Rule.DEPENDENCIES, tasks, int(start[after]))

    def before_zero(number: int) -> Finding:
        task = int(negative[number])
        return Finding(Rule.DEPENDENCIES, (rows.name(task),), int(start[task]))

    return [Breaches(len(early), too_early), Breaches(len(negative), before_zero)]


def exclusive(rows: Rows) -> list[Breaches]:
    """Rule 4: rows that start before the one listed before them on their resource has ended."""
    program, start = rows.schedule.program, rows.schedule.start
    resource, end = program.resource, start + rows.problem.ticks(rows.task)
    clash = np.flatnonzero((resource[1:] == resource[:-1]) & (start[1:] < end[:-1]))

    def overlap(number: int) -> Finding:
        row = int(clash[number])
        tasks = str(program.actions[row]), str(program.actions[row + 1])
        return Finding(Rule.EXCLUSIVE, tasks, int(start[row + 1]), int(resource[row]))

    return [Breaches(len(clash), overlap)]
