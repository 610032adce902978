"""A second checker for rules 1 to 5 and 8, in dictionaries and loops, and a second ``measure``.

It is slow and meant to be obvious. With ``verify`` and ``theory`` it shares the data classes and
nothing else: tasks are compared as ``Action`` objects, exclusivity is decided over all pairs of
rows, and the load of a store is added up from scratch at every instant at which it changes.

Conventions shared with ``verify`` (they decide which rule names a mistake, not whether there is
one): a task listed on a wrong resource is misplaced there and not missing elsewhere; a task listed
twice is timed by its first row; rows that are no task of the problem take no time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

from bubbleproof.theory.actions import Action
from bubbleproof.theory.problem import Problem
from bubbleproof.theory.schedule import Schedule

Row = tuple[int, Action, int]  # resource, action, start
Number = int | Fraction | tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainProblem:
    """A problem as dictionaries from tasks."""

    num_ranks: int
    num_resources: int
    duration: dict[Action, int]
    homes: dict[Action, set[int]]
    edges: list[tuple[Action, Action, int]]
    stores: list[tuple[int, int | None]]
    changes: list[tuple[Action, bool, int, int]]


def plain_problem(problem: Problem) -> PlainProblem:
    """The problem's columns, read row by row."""
    tasks = [problem.actions[t] for t in range(len(problem.actions))]
    homes: dict[Action, set[int]] = {task: set() for task in tasks}
    for t, resource in zip(problem.occupancy.task, problem.occupancy.resource, strict=True):
        homes[tasks[int(t)]].add(int(resource))
    edges, events = problem.edges, problem.events
    return PlainProblem(
        num_ranks=len([r for r in problem.resources if r.rank is not None]),
        num_resources=len(problem.resources),
        duration={task: int(problem.duration[t]) for t, task in enumerate(tasks)},
        homes=homes,
        edges=[
            (tasks[int(edges.before[i])], tasks[int(edges.after[i])], int(edges.lag[i]))
            for i in range(len(edges.before))
        ],
        stores=[(store.base, store.capacity) for store in problem.stores],
        changes=[
            (tasks[int(events.task[i])], bool(events.at_end[i]), int(events.store[i]),
             int(events.delta[i]))
            for i in range(len(events.task))
        ],
    )  # fmt: skip


def plain_rows(schedule: Schedule) -> list[Row]:
    """The rows of a schedule in listed order."""
    program = schedule.program
    return [
        (int(program.resource[i]), program.actions[i], int(schedule.start[i]))
        for i in range(len(program.actions))
    ]


def broken_rules(problem: Problem, schedule: Schedule) -> set[str]:
    """The names of the rules that the schedule violates; empty when it solves the problem."""
    plain, rows = plain_problem(problem), plain_rows(schedule)
    broken = {
        "COMPLETE": is_incomplete(plain, rows),
        "PLACED": is_misplaced(plain, rows),
        "DEPENDENCIES": breaks_a_dependency(plain, rows),
        "EXCLUSIVE": has_an_overlap(plain, rows),
        "MEMORY": exceeds_memory(plain, rows),
        "CLAIMS": claims_wrongly(plain, rows, schedule),
    }
    return {name for name, is_broken in broken.items() if is_broken}


def starts_of(plain: PlainProblem, rows: list[Row]) -> dict[Action, int]:
    """The start of each task that is listed at all: that of its first row."""
    start: dict[Action, int] = {}
    for _, action, begin in rows:
        if action in plain.duration and action not in start:
            start[action] = begin
    return start


def is_incomplete(plain: PlainProblem, rows: list[Row]) -> bool:
    listed = Counter((action, resource) for resource, action, _ in rows)
    if any(action not in plain.duration for _, action, _ in rows):
        return True
    if any(count > 1 for count in listed.values()):
        return True
    where: dict[Action, set[int]] = {task: set() for task in plain.homes}
    for action, resource in listed:
        where[action].add(resource)
    for task, homes in plain.homes.items():
        standing = where[task]
        if standing <= homes and standing != homes:
            return True
    return False


def is_misplaced(plain: PlainProblem, rows: list[Row]) -> bool:
    start = starts_of(plain, rows)
    for resource, action, begin in rows:
        if action not in plain.duration:
            continue
        if resource not in plain.homes[action]:
            return True
        if len(plain.homes[action]) > 1 and begin != start[action]:
            return True
    return False


def breaks_a_dependency(plain: PlainProblem, rows: list[Row]) -> bool:
    start = starts_of(plain, rows)
    for before, after, lag in plain.edges:
        if before not in start or after not in start:
            continue
        if start[after] < start[before] + plain.duration[before] + lag:
            return True
    return any(begin < 0 for begin in start.values())


def has_an_overlap(plain: PlainProblem, rows: list[Row]) -> bool:
    for i, (resource, action, begin) in enumerate(rows):
        end = begin + plain.duration.get(action, 0)
        for later_resource, _, later_begin in rows[i + 1 :]:
            if later_resource == resource and later_begin < end:
                return True
    return False


def load_curve(plain: PlainProblem, rows: list[Row], store: int) -> list[int]:
    """The load of a store before everything, and after all changes of each instant, in time."""
    start = starts_of(plain, rows)
    changes = [
        (start[task] + (plain.duration[task] if at_end else 0), delta)
        for task, at_end, where, delta in plain.changes
        if where == store and task in start
    ]
    base = plain.stores[store][0]
    instants = sorted({when for when, _ in changes})
    return [base] + [base + sum(d for when, d in changes if when <= now) for now in instants]


def exceeds_memory(plain: PlainProblem, rows: list[Row]) -> bool:
    for store, (_, capacity) in enumerate(plain.stores):
        for load in load_curve(plain, rows, store):
            if load < 0 or (capacity is not None and load > capacity):
                return True
    return False


def claims_wrongly(plain: PlainProblem, rows: list[Row], schedule: Schedule) -> bool:
    measured = measures_of(plain, rows)
    for name, claimed in schedule.claims.items():
        try:
            value: object = Fraction(claimed) if isinstance(claimed, str) else claimed
        except (ValueError, ZeroDivisionError):
            return True
        if name not in measured or measured[name] != value:
            return True
    return False


def plain_measures(problem: Problem, schedule: Schedule) -> dict[str, Number]:
    """The measures of DESIGN section 3 by their names."""
    return measures_of(plain_problem(problem), plain_rows(schedule))


def measures_of(plain: PlainProblem, rows: list[Row]) -> dict[str, Number]:
    """Measures of rows; a (task, resource) pair listed again does not count again."""
    begins: dict[int, list[int]] = {rank: [] for rank in range(plain.num_ranks)}
    ends: dict[int, list[int]] = {rank: [] for rank in range(plain.num_ranks)}
    seen: set[tuple[int, Action]] = set()
    for resource, action, begin in rows:
        is_compute = action in plain.duration and 0 <= resource < plain.num_ranks
        if is_compute and (resource, action) not in seen:
            seen.add((resource, action))
            begins[resource].append(begin)
            ends[resource].append(begin + plain.duration[action])
    return {**_bubbles(begins, ends), **_peaks(plain, rows)}


def _bubbles(begins: dict[int, list[int]], ends: dict[int, list[int]]) -> dict[str, Number]:
    ranks = sorted(begins)
    every_begin = [t for rank in ranks for t in begins[rank]]
    every_end = [t for rank in ranks for t in ends[rank]]
    makespan = max(every_end) - min(every_begin) if every_begin else 0
    busy = {rank: sum(ends[rank]) - sum(begins[rank]) for rank in ranks}
    span = {r: max(ends[r]) - min(begins[r]) if begins[r] else 0 for r in ranks}
    work, area = sum(busy.values()), len(ranks) * makespan
    return {
        "makespan": makespan,
        "work": work,
        "idle_ratio": 1 - Fraction(work, area) if area else Fraction(0),
        "idle_over_work": Fraction(area - work, work) if work else Fraction(0),
        "idle_ticks": tuple(makespan - busy[rank] for rank in ranks),
        "rank_spans": tuple(span[rank] for rank in ranks),
        "span_idle": max(span[rank] - busy[rank] for rank in ranks),
    }


def _peaks(plain: PlainProblem, rows: list[Row]) -> dict[str, Number]:
    ranks = range(min(plain.num_ranks, len(plain.stores)))
    peak = [max(load_curve(plain, rows, rank)) for rank in ranks]
    return {
        "peak_memory": tuple(peak),
        "peak_activations": tuple(peak[rank] - plain.stores[rank][0] for rank in ranks),
    }
