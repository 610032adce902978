"""Rules 1 and 2: is everything there, once, and in its place?"""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.model.actions import NONE
from bubbleproof.verify.finding import Finding, Rule
from bubbleproof.verify.rows import Breaches, Rows


def complete(rows: Rows) -> list[Breaches]:
    """Rule 1: foreign rows, missing (task, resource) pairs, and pairs that are listed again."""
    problem, program = rows.problem, rows.schedule.program
    known = rows.task != NONE
    required = rows.pair(problem.occupancy.task, problem.occupancy.resource)
    pairs = rows.pair(rows.task[known], program.resource[known])
    given, times = np.unique(pairs, return_counts=True)
    misplaced = np.setdiff1d(given, required, assume_unique=True) // rows.width
    missing = np.setdiff1d(required, given, assume_unique=True)
    missing = missing[~np.isin(missing // rows.width, misplaced)]
    repeated = given[times > 1]

    def absent(number: int) -> Finding:
        task, resource = divmod(int(missing[number]), rows.width)
        return Finding(Rule.COMPLETE, (rows.name(task),), None, resource)

    def again(number: int) -> Finding:
        task, resource = divmod(int(repeated[number]), rows.width)
        second = np.flatnonzero(known)[pairs == repeated[number]][1]
        at = int(rows.schedule.start[second])
        return Finding(Rule.COMPLETE, (rows.name(task),), at, resource)

    return [
        rows.breaches(Rule.COMPLETE, np.flatnonzero(~known)),
        Breaches(len(missing), absent),
        Breaches(len(repeated), again),
    ]


def placed(rows: Rows) -> list[Breaches]:
    """Rule 2: rows on a foreign resource, and rows of one task at different starts."""
    problem, resource = rows.problem, rows.schedule.program.resource
    known = np.flatnonzero(rows.task != NONE)
    required = np.sort(rows.pair(problem.occupancy.task, problem.occupancy.resource))
    given = rows.pair(rows.task[known], resource[known])
    place = np.searchsorted(required, given)  # np.isin hashes all of it: three times the seconds
    wrong = known[np.append(required, NONE)[place] != given]
    split = known[:0]
    if rows.timed and len(problem.occupancy.task) > problem.num_tasks:
        shared = np.bincount(problem.occupancy.task, minlength=problem.num_tasks) > 1
        split = known[
            shared[rows.task[known]] & (rows.schedule.start[known] != rows.start[rows.task[known]])
        ]
    return [rows.breaches(Rule.PLACED, wrong), rows.breaches(Rule.PLACED, split)]
