"""The checker: does this schedule solve this problem? docs/guide/design.md §3, rules 1 to 5 and 8.

    1 complete      every (task, resource) pair of the problem stands exactly once, no other does
    2 placed        no task stands on a resource it does not occupy; on all of its resources it
                    starts at one time
    3 dependencies  start(after) >= end(before) + lag for every precedence; no start before time 0
    4 exclusive     on each resource, in the listed order, start >= end of the one before
    5 memory        after all changes of an instant each load lies within 0 and the capacity
    8 claims        each claimed number equals the measured one

Checks are vectorised and independent of each other: a missing task does not hide an overlap. A task
that stands several times is timed by its first row. This module knows the vocabulary of ``theory``
and nothing of how the schedule came about. ``verify.spec`` is the definition, and ``findings`` the
same breaches as its ``breaches``: rule, tasks and time (``proofs_tests/verify/spec_sweep.py``).
"""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.model.measures import Measures, measure
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.timing import Deadlock, UntimedProgram, left_shift
from bubbleproof.verify.capacity import memory
from bubbleproof.verify.claimed_numbers import claims
from bubbleproof.verify.explain.schedules import deadlock, explained
from bubbleproof.verify.finding import Finding, Rule
from bubbleproof.verify.order import dependencies, exclusive
from bubbleproof.verify.presence import complete, placed
from bubbleproof.verify.rows import Breaches, Rows
from bubbleproof.verify.verdict import SHOWN, RuleDecision, Verdict


def findings(problem: Problem, schedule: Schedule) -> list[Finding]:
    """Every breach of rules 1 to 5 and 8, each as a finding."""
    rows = Rows.of(problem, schedule)
    found = breaches(rows, measure(problem, schedule))
    return [finding for kinds in found.values() for kind in kinds for finding in kind]


def check(problem: Problem, schedule: Schedule) -> Verdict:
    """Decide rules 1 to 5 and 8 for a schedule."""
    rows = Rows.of(problem, schedule)
    measured = measure(problem, schedule)
    return Verdict(
        decisions=tuple(
            _decision(rows, rule, kinds, measured)
            for rule, kinds in breaches(rows, measured).items()
        ),
        measured=measured,
    )


def breaches(rows: Rows, measured: Measures) -> dict[Rule, list[Breaches]]:
    """Of each rule its breaches, kind by kind."""
    return {
        Rule.COMPLETE: complete(rows),
        Rule.PLACED: placed(rows),
        Rule.DEPENDENCIES: dependencies(rows),
        Rule.EXCLUSIVE: exclusive(rows),
        Rule.MEMORY: memory(rows),
        Rule.CLAIMS: claims(rows.schedule, measured),
    }


def _decision(
    rows: Rows, rule: Rule, kinds: list[Breaches], measured: Measures | None = None
) -> RuleDecision:
    """All breaches counted, the first of each kind explained."""
    shown = [finding for kind in kinds for finding in kind.first(SHOWN)]
    return RuleDecision(
        rule=rule,
        count=sum(kind.count for kind in kinds),
        violations=tuple(explained(rows, finding, measured) for finding in shown),
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
        decisions = [
            _decision(rows, Rule.COMPLETE, complete(rows)),
            _decision(rows, Rule.PLACED, placed(rows)),
        ]
        why = "its tasks are not complete"
        if isinstance(error, Deadlock):
            why = "it deadlocks"
            chain = (deadlock(rows, error),)
            decisions.append(RuleDecision(rule=Rule.DEPENDENCIES, count=1, violations=chain))
        decided = {decision.rule for decision in decisions}
        undecided = tuple(
            (rule, f"the program has no times: {why}")
            for rule in (Rule.DEPENDENCIES, Rule.EXCLUSIVE, Rule.MEMORY)
            if rule not in decided
        )
        return Verdict(decisions=tuple(decisions), undecided=undecided), None
    return check(problem, schedule), schedule
