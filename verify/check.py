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

from bubbleproof.theory.model.actions import NONE
from bubbleproof.theory.model.measures import Measures, known_rows, measure_rows
from bubbleproof.theory.model.memory import MemoryProfile, memory_profile
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.timing import Deadlock, UntimedProgram, left_shift
from bubbleproof.verify.claimed_numbers import claims
from bubbleproof.verify.explain.schedules import deadlock, explained
from bubbleproof.verify.finding import Finding, Rule
from bubbleproof.verify.rows import Breaches, Rows
from bubbleproof.verify.verdict import SHOWN, RuleDecision, Verdict

NO_LIMIT = int(np.iinfo(np.int64).max)


def memory(rows: Rows, profile: MemoryProfile) -> list[Breaches]:
    """Rule 5: base loads above the capacity, and instants that leave a load below 0 or above it."""
    problem = rows.problem
    limit = np.array(
        [NO_LIMIT if s.capacity is None else min(s.capacity, NO_LIMIT) for s in problem.stores],
        dtype=np.int64,
    )
    base = np.array([store.base for store in problem.stores], dtype=np.int64)
    is_wrong = (profile.level > limit[profile.store]) | (profile.level < 0)
    wrong = np.flatnonzero(is_wrong & profile.is_settled)
    full = np.flatnonzero(base > limit)

    def overfull(number: int) -> Finding:
        return Finding(Rule.MEMORY, (), None, int(full[number]))

    def instant(number: int) -> Finding:
        store, time = profile.store[wrong[number]], profile.time[wrong[number]]
        changes = profile.event[(profile.store == store) & (profile.time == time)]
        tasks = {rows.name(task) for task in problem.events.task[changes].tolist()}
        return Finding(Rule.MEMORY, tuple(sorted(tasks)), int(time), int(store))

    first_of_each_store = np.unique(profile.store[wrong], return_index=True)[1]
    return [
        Breaches(len(full), overfull),
        Breaches(len(wrong), instant, first_of_each_store.tolist()),
    ]


def complete(rows: Rows) -> list[Breaches]:
    """Rule 1: foreign rows, missing (task, resource) pairs, and pairs that are listed again."""
    if rows.is_whole:
        return []
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
    if rows.is_whole:
        return []
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


def findings(problem: Problem, schedule: Schedule) -> list[Finding]:
    """Every breach of rules 1 to 5 and 8, each as a finding."""
    found = breaches(*_measured(problem, schedule))
    return [finding for kinds in found.values() for kind in kinds for finding in kind]


def _measured(problem: Problem, schedule: Schedule) -> tuple[Rows, Measures, MemoryProfile]:
    """The rows, and what their tasks measure."""
    rows = Rows.of(problem, schedule)
    task = np.flatnonzero(rows.present)
    profile = memory_profile(problem, task, rows.start[task])
    known = rows.task, schedule.program.resource, schedule.start
    known = known if rows.is_whole else known_rows(problem, schedule)
    return rows, measure_rows(problem, *known, profile=profile), profile


def check(problem: Problem, schedule: Schedule) -> Verdict:
    """Decide rules 1 to 5 and 8 for a schedule."""
    rows, measured, profile = _measured(problem, schedule)
    return Verdict(
        decisions=tuple(
            _decision(rows, rule, kinds, measured)
            for rule, kinds in breaches(rows, measured, profile).items()
        ),
        measured=measured,
    )


def breaches(rows: Rows, measured: Measures, profile: MemoryProfile) -> dict[Rule, list[Breaches]]:
    """Of each rule its breaches, kind by kind."""
    return {
        Rule.COMPLETE: complete(rows),
        Rule.PLACED: placed(rows),
        Rule.DEPENDENCIES: dependencies(rows),
        Rule.EXCLUSIVE: exclusive(rows),
        Rule.MEMORY: memory(rows, profile),
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
