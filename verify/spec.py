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
from dataclasses import fields
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from bubbleproof.theory.model.problem import Edges, MemoryEvents, Occupancy, Problem
from bubbleproof.theory.model.schedule import ClaimedNumber, Schedule
from bubbleproof.verify.finding import Finding, Rule

EventRow = tuple[int, str, int]  # resource, task, start
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

    rows: list[EventRow]
    claims: dict[str, ClaimedNumber]


def plain_problem(problem: Problem) -> PlainProblem:
    """The problem's columns, read row by row."""
    name = [str(action) for action in problem.actions]
    homes: dict[str, set[int]] = {task: set() for task in name}
    for t, resource in _rows(problem.occupancy):
        homes[name[t]].add(resource)
    return PlainProblem(
        num_ranks=len([r for r in problem.resources if r.rank is not None]),
        duration=dict(zip(name, problem.duration.tolist(), strict=True)),
        homes=homes,
        edges=[(name[a], name[b], lag) for a, b, lag in _rows(problem.edges)],
        stores=[(store.base, store.capacity) for store in problem.stores],
        events=[
            (name[t], end == 1, store, delta) for t, end, store, delta in _rows(problem.events)
        ],
    )


def _rows(table: Occupancy | Edges | MemoryEvents) -> Iterator[tuple[int, ...]]:
    """The rows of a table, its columns in the order in which it names them."""
    return zip(*(getattr(table, column.name).tolist() for column in fields(table)), strict=True)


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


def first_starts(problem: PlainProblem, rows: list[EventRow]) -> dict[str, int]:
    """The start of each task that is listed at all: that of its first row."""
    start: dict[str, int] = {}
    for _, task, begin in rows:
        if task in problem.duration and task not in start:
            start[task] = begin
    return start


def incomplete(problem: PlainProblem, rows: list[EventRow]) -> Iterator[Finding]:
    """Rule 1: foreign rows, (task, resource) pairs listed again, and missing ones."""
    listed: Counter[tuple[int, str]] = Counter()
    where: dict[str, set[int]] = {task: set() for _, task, _ in rows}
    for resource, task, begin in rows:
        listed[resource, task] += 1
        where[task].add(resource)
        if task not in problem.homes or listed[resource, task] == 2:
            yield Finding(Rule.COMPLETE, (task,), begin, resource)
    for task, homes in problem.homes.items():
        if where.get(task, set()) <= homes:
            for resource in homes - where.get(task, set()):
                yield Finding(Rule.COMPLETE, (task,), None, resource)


def misplaced(problem: PlainProblem, rows: list[EventRow]) -> Iterator[Finding]:
    """Rule 2: rows on a foreign resource, and rows of one task at different starts."""
    start = first_starts(problem, rows)
    for resource, task, begin in rows:
        if task in problem.duration:
            if resource not in problem.homes[task]:
                yield Finding(Rule.PLACED, (task,), begin, resource)
            if len(problem.homes[task]) > 1 and begin != start[task]:
                yield Finding(Rule.PLACED, (task,), begin, resource)


def too_early(problem: PlainProblem, rows: list[EventRow]) -> Iterator[Finding]:
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


def overlapping(problem: PlainProblem, rows: list[EventRow]) -> Iterator[Finding]:
    """Rule 4: rows that start before the one listed before them on their resource has ended."""
    for home in {resource for resource, _, _ in rows}:
        here = [(task, begin) for resource, task, begin in rows if resource == home]
        for (first, begin), (second, later) in pairwise(here):
            if later < begin + problem.duration.get(first, 0):
                yield Finding(Rule.EXCLUSIVE, (first, second), later, home)


def changes(problem: PlainProblem, rows: list[EventRow], store: int) -> list[tuple[int, str, int]]:
    """When the load of a store changes, by which task, and by how much.

    Parameters
    ----------
    store
        The store's index.

    Returns
    -------
    list[tuple[int, str, int]]
        Ticks, the task's text, and units of memory.
    """
    start = first_starts(problem, rows)
    return [
        (start[task] + problem.duration[task] * at_end, task, delta)
        for task, at_end, where, delta in problem.events
        if where == store and task in start
    ]


def loads(problem: PlainProblem, rows: list[EventRow], store: int) -> dict[int, int]:
    """The load of a store after all changes of each instant that has any, in order of time.

    Parameters
    ----------
    store
        The store's index.

    Returns
    -------
    dict[int, int]
        Units of memory by tick.
    """
    base, found = problem.stores[store][0], changes(problem, rows, store)
    instants = sorted({when for when, _, _ in found})
    return {now: base + sum(delta for when, _, delta in found if when <= now) for now in instants}


def beyond_memory(problem: PlainProblem, rows: list[EventRow]) -> Iterator[Finding]:
    """Rule 5: base loads, and loads after an instant, below 0 or above the capacity."""
    for store, (base, capacity) in enumerate(problem.stores):
        if capacity is not None and base > capacity:
            yield Finding(Rule.MEMORY, (), None, store)
        for now, load in loads(problem, rows, store).items():
            if load < 0 or (capacity is not None and load > capacity):
                tasks = {task for when, task, _ in changes(problem, rows, store) if when == now}
                yield Finding(Rule.MEMORY, tuple(sorted(tasks)), now, store)


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


def measures(problem: PlainProblem, rows: list[EventRow]) -> dict[str, Number]:
    """Makespan, work, the four bubbles and the peaks, by name.

    What runs on a link or an engine is no work and does not stretch a span. A row that is no task,
    or lists a (task, resource) again, does not count.
    """
    ranks = range(problem.num_ranks)
    begins: list[dict[str, int]] = [{} for _ in ranks]
    for resource, task, begin in rows:
        if task in problem.duration and resource in ranks:
            begins[resource].setdefault(task, begin)
    times = [
        [(begin, begin + problem.duration[task]) for task, begin in of_rank.items()]
        for of_rank in begins
    ]
    makespan = _length([of_task for of_rank in times for of_task in of_rank])
    spans = [_length(of_rank) for of_rank in times]
    busy = [sum(end - begin for begin, end in of_rank) for of_rank in times]
    work, area = sum(busy), len(ranks) * makespan
    base = [store[0] for store in problem.stores[: problem.num_ranks]]
    peak = [max([load, *loads(problem, rows, store).values()]) for store, load in enumerate(base)]
    return {
        "makespan": makespan,
        "work": work,
        "idle_ratio": Fraction(area - work, area) if area else Fraction(0),
        "idle_over_work": Fraction(area - work, work) if work else Fraction(0),
        "idle_ticks": tuple(makespan - busy[rank] for rank in ranks),
        "rank_spans": tuple(spans),
        "span_idle": max(spans[rank] - busy[rank] for rank in ranks),
        "peak_memory": tuple(peak),
        "peak_activations": tuple(most - load for most, load in zip(peak, base, strict=True)),
    }


def _length(times: list[tuple[int, int]]) -> int:
    """From the first start to the last end; 0 where there is none."""
    return max(end for _, end in times) - min(begin for begin, _ in times) if times else 0
