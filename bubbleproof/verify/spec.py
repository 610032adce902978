"""The definition of a right schedule: rules 1 to 5 and 8, in plain Python over plain tuples.

This file is what one has to believe. It is slow and meant to be obvious: nothing is vectorised,
tasks go by their text (``0F3``), the load of a store is added up from scratch at every instant.
``verify.check`` is its tested optimisation, with the same findings of every rule.

A problem is a set of tasks. Each has a duration and its resources, which it occupies from its start
to its end. A precedence (before, after, lag) asks start(after) >= end(before) + lag. A store has a
base load and perhaps a capacity; an event (task, at_end, store, delta) changes its load when the
task starts or ends. A schedule is rows (resource, task, start) in the order listed. Times are
ticks, loads memory units, both whole numbers; ranks are the resources 0..p-1.

    1 complete      every (task, resource) of the problem is listed once, and nothing foreign is
    2 placed        a task is listed on its own resources alone, on all of them at one start
    3 dependencies  every precedence is kept, and nothing starts before time 0
    4 exclusive     on each resource, in the order listed, a task starts when the one before ended
    5 memory        after all changes of any instant each load lies within 0 and the capacity
    8 claims        a claimed number is the measured one

At equal times releases come before acquisitions, so that the highest load of an instant is the one
after all its changes. Two conventions keep one mistake from being named twice: a task listed on a
wrong resource is misplaced there and not missing elsewhere, and a task listed several times is
timed by its first row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from bubbleproof.theory.model.actions import Bools, Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Claim, Schedule
from bubbleproof.verify.finding import Finding, Rule

Row = tuple[int, str, int]  # resource, task, start
Number = int | Fraction | tuple[int, ...]


class PlainProblem(NamedTuple):
    """A problem as dictionaries from the names of tasks; see the module's text."""

    num_ranks: int
    duration: dict[str, int]
    homes: dict[str, set[int]]
    edges: list[tuple[str, str, int]]
    stores: list[tuple[int, int | None]]  # base load, capacity
    events: list[tuple[str, bool, int, int]]  # task, at its end?, store, delta


class PlainSchedule(NamedTuple):
    """Rows in the order listed, and the claimed numbers by name."""

    rows: list[Row]
    claims: dict[str, Claim]


def plain_problem(problem: Problem) -> PlainProblem:
    """The problem's columns, read row by row."""
    name = [str(action) for action in problem.actions]
    occupancy, edges, events = problem.occupancy, problem.edges, problem.events
    homes: dict[str, set[int]] = {task: set() for task in name}
    for t, resource in _rows(occupancy.task, occupancy.resource):
        homes[name[t]].add(resource)
    return PlainProblem(
        num_ranks=len([r for r in problem.resources if r.rank is not None]),
        duration=dict(zip(name, problem.duration.tolist(), strict=True)),
        homes=homes,
        edges=[
            (name[before], name[after], lag)
            for before, after, lag in _rows(edges.before, edges.after, edges.lag)
        ],
        stores=[(store.base, store.capacity) for store in problem.stores],
        events=[
            (name[t], bool(at_end), store, delta)
            for t, at_end, store, delta in _rows(
                events.task, events.at_end, events.store, events.delta
            )
        ],
    )


def _rows(*columns: Ints | Bools) -> Iterator[tuple[int, ...]]:
    """The rows of columns of one length."""
    return zip(*(column.tolist() for column in columns), strict=True)


def plain_schedule(schedule: Schedule) -> PlainSchedule:
    """The rows of a schedule in the order listed."""
    program = schedule.program
    columns = program.resource.tolist(), map(str, program.actions), schedule.start.tolist()
    return PlainSchedule(list(zip(*columns, strict=True)), dict(schedule.claims))


def breaches(problem: PlainProblem, schedule: PlainSchedule) -> list[Finding]:
    """All breaches of rules 1 to 5 and 8; none where the schedule is right."""
    rows = schedule.rows
    return [
        *incomplete(problem, rows),
        *misplaced(problem, rows),
        *too_early(problem, rows),
        *overlapping(problem, rows),
        *beyond_memory(problem, rows),
        *false_claims(problem, schedule),
    ]


def first_starts(problem: PlainProblem, rows: list[Row]) -> dict[str, int]:
    """The start of each task that is listed at all: that of its first row."""
    start: dict[str, int] = {}
    for _, task, begin in rows:
        if task in problem.duration and task not in start:
            start[task] = begin
    return start


def incomplete(problem: PlainProblem, rows: list[Row]) -> Iterator[Finding]:
    """Rule 1: foreign rows, (task, resource) pairs listed again, and missing ones."""
    listed: Counter[tuple[int, str]] = Counter()
    where: dict[str, set[int]] = {task: set() for task in problem.homes}
    for resource, task, begin in rows:
        listed[resource, task] += 1
        if task not in problem.homes:
            yield Finding(Rule.COMPLETE, (task,), begin, resource)
            continue
        where[task].add(resource)
        if listed[resource, task] == 2:
            yield Finding(Rule.COMPLETE, (task,), begin, resource)
    for task, homes in problem.homes.items():
        if where[task] <= homes:
            for resource in homes - where[task]:
                yield Finding(Rule.COMPLETE, (task,), None, resource)


def misplaced(problem: PlainProblem, rows: list[Row]) -> Iterator[Finding]:
    """Rule 2: rows on a foreign resource, and rows of one task at different starts."""
    start = first_starts(problem, rows)
    for resource, task, begin in rows:
        if task in problem.duration:
            if resource not in problem.homes[task]:
                yield Finding(Rule.PLACED, (task,), begin, resource)
            if len(problem.homes[task]) > 1 and begin != start[task]:
                yield Finding(Rule.PLACED, (task,), begin, resource)


def too_early(problem: PlainProblem, rows: list[Row]) -> Iterator[Finding]:
    """Rule 3: tasks that start before their inputs are there, or before time 0."""
    start = first_starts(problem, rows)
    for before, after, lag in problem.edges:
        if before not in start or after not in start:
            continue
        if start[after] < start[before] + problem.duration[before] + lag:
            yield Finding(Rule.DEPENDENCIES, (before, after), start[after])
    for task, begin in start.items():
        if begin < 0:
            yield Finding(Rule.DEPENDENCIES, (task,), begin)


def overlapping(problem: PlainProblem, rows: list[Row]) -> Iterator[Finding]:
    """Rule 4: rows that start before the one listed before them on their resource has ended."""
    for home in {resource for resource, _, _ in rows}:
        here = [(task, begin) for resource, task, begin in rows if resource == home]
        for (first, begin), (second, later) in pairwise(here):
            if later < begin + problem.duration.get(first, 0):
                yield Finding(Rule.EXCLUSIVE, (first, second), later, home)


def loads(
    problem: PlainProblem, rows: list[Row], store: int
) -> list[tuple[int, int, tuple[str, ...]]]:
    """(instant, load after all its changes, the tasks that change it then), in order of time."""
    start = first_starts(problem, rows)
    changes = [
        (start[task] + (problem.duration[task] if at_end else 0), delta, task)
        for task, at_end, where, delta in problem.events
        if where == store and task in start
    ]
    base = problem.stores[store][0]
    return [
        (
            now,
            base + sum(delta for when, delta, _ in changes if when <= now),
            tuple(sorted({task for when, _, task in changes if when == now})),
        )
        for now in sorted({when for when, _, _ in changes})
    ]


def beyond_memory(problem: PlainProblem, rows: list[Row]) -> Iterator[Finding]:
    """Rule 5: base loads, and loads after an instant, below 0 or above the capacity."""
    for store, (base, capacity) in enumerate(problem.stores):
        if capacity is not None and base > capacity:
            yield Finding(Rule.MEMORY, (), None, store)
        for now, load, tasks in loads(problem, rows, store):
            if load < 0 or (capacity is not None and load > capacity):
                yield Finding(Rule.MEMORY, tasks, now, store)


def false_claims(problem: PlainProblem, schedule: PlainSchedule) -> Iterator[Finding]:
    """Rule 8: claims of what is no measure, of no number, or of another number."""
    measured = measures(problem, schedule.rows)
    for name, claimed in schedule.claims.items():
        try:
            value: object = Fraction(claimed) if isinstance(claimed, str) else claimed
        except (ValueError, ZeroDivisionError):
            value = None
        if name not in measured or measured[name] != value:
            yield Finding(Rule.CLAIMS, (name,), None)


def measures(problem: PlainProblem, rows: list[Row]) -> dict[str, Number]:
    """Makespan, work, the four bubbles and the peaks, by name.

    What runs on a link or an engine is no work and does not stretch a span. A row that is no task,
    or lists a (task, resource) again, does not count.
    """
    ranks = range(problem.num_ranks)
    begins: dict[int, list[int]] = {rank: [] for rank in ranks}
    ends: dict[int, list[int]] = {rank: [] for rank in ranks}
    seen: set[tuple[int, str]] = set()
    for resource, task, begin in rows:
        if task in problem.duration and resource in ranks and (resource, task) not in seen:
            seen.add((resource, task))
            begins[resource].append(begin)
            ends[resource].append(begin + problem.duration[task])
    first = [min(begins[rank], default=0) for rank in ranks]
    last = [max(ends[rank], default=0) for rank in ranks]
    working = [rank for rank in ranks if begins[rank]]
    makespan = (
        max(last[rank] for rank in working) - min(first[rank] for rank in working) if working else 0
    )
    busy = [sum(ends[rank]) - sum(begins[rank]) for rank in ranks]
    work, area = sum(busy), len(ranks) * makespan
    base = [store[0] for store in problem.stores[: problem.num_ranks]]
    peak = [
        max([base[store], *(load for _, load, _ in loads(problem, rows, store))])
        for store in range(len(base))
    ]
    return {
        "makespan": makespan,
        "work": work,
        "idle_ratio": Fraction(area - work, area) if area else Fraction(0),
        "idle_over_work": Fraction(area - work, work) if work else Fraction(0),
        "idle_ticks": tuple(makespan - busy[rank] for rank in ranks),
        "rank_spans": tuple(last[rank] - first[rank] for rank in ranks),
        "span_idle": max(last[rank] - first[rank] - busy[rank] for rank in ranks),
        "peak_memory": tuple(peak),
        "peak_activations": tuple(peak[store] - base[store] for store in range(len(base))),
    }
