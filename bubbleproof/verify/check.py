"""The checker: does this schedule solve this problem? Rules 1 to 5 and 8 of docs/design.md §3.

    1 complete      every (task, resource) pair of the problem stands exactly once, no other does
    2 placed        no task stands on a resource it does not occupy; on all of its resources it
                    starts at one time
    3 dependencies  start(after) >= end(before) + lag for every precedence; no start before time 0
    4 exclusive     on each resource, in the listed order, start >= end of the one before
    5 memory        base + all changes so far <= capacity at every instant, and never below 0
    8 claims        each claimed number equals the measured one

Checks are vectorised and independent of each other: a missing task does not hide an overlap. A task
that stands several times is timed by its first row. This module knows the vocabulary of ``theory``
and nothing of how the schedule came about; together with ``theory.model.problem``,
``theory.model.memory`` and ``theory.model.measures`` it is what has to be trusted.
"""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.model.measures import known_rows, measure_rows
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.timing import Deadlock, UntimedProgram, left_shift
from bubbleproof.verify.capacity import memory
from bubbleproof.verify.claims import claims
from bubbleproof.verify.order import deadlock, dependencies, exclusive
from bubbleproof.verify.presence import complete, placed
from bubbleproof.verify.rows import Rows
from bubbleproof.verify.verdict import Rule, Verdict


def check(problem: Problem, schedule: Schedule) -> Verdict:
    """Decide rules 1 to 5 and 8 for a schedule."""
    rows = Rows.of(problem, schedule)
    task, resource, start = known_rows(problem, schedule)
    measured = measure_rows(problem, task, resource, start)
    return Verdict(
        findings=(
            complete(rows),
            placed(rows),
            dependencies(rows),
            exclusive(rows),
            memory(rows),
            claims(rows, measured),
        ),
        measured=measured,
    )


def check_program(problem: Problem, program: Program) -> tuple[Verdict, Schedule | None]:
    """Decide the rules for a program without times, and give its left-shifted schedule.

    A deadlock violates rule 3 and shows the chain of waiting. Where the program has no times the
    schedule is None and the rules that need them are undecided.
    """
    try:
        schedule = left_shift(problem, program)
    except UntimedProgram as error:
        start = np.zeros(len(program), dtype=np.int64)
        rows = Rows.of(problem, Schedule(program=program, start=start), timed=False)
        findings = [complete(rows), placed(rows)]
        if isinstance(error, Deadlock):
            findings.append(deadlock(rows, error))
        why = "the program has no times: " + (
            "it deadlocks" if isinstance(error, Deadlock) else "its tasks are not complete"
        )
        decided = {finding.rule for finding in findings}
        timed = (Rule.DEPENDENCIES, Rule.EXCLUSIVE, Rule.MEMORY)
        undecided = tuple((rule, why) for rule in timed if rule not in decided)
        return Verdict(findings=tuple(findings), undecided=undecided), None
    return check(problem, schedule), schedule
