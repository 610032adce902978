"""What a finding of rules 1 to 5 and 8 means: a sentence, and the grid around the offence."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bubbleproof.theory.model.actions import NONE, Action, ActionTable, Ints
from bubbleproof.theory.model.measures import Measures
from bubbleproof.theory.model.memory import MemoryProfile, memory_profile
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.timing import Deadlock
from bubbleproof.theory.pipelines.units import counted
from bubbleproof.verify.claimed_numbers import value_of
from bubbleproof.verify.explain.grid import step_grid, time_grid
from bubbleproof.verify.finding import Finding, Rule
from bubbleproof.verify.rows import Rows
from bubbleproof.verify.verdict import Violation

LIVE_SHOWN = 12
Explained = tuple[str, Ints]  # a sentence, and the rows to mark


def explained(rows: Rows, finding: Finding, measured: Measures | None = None) -> Violation:
    """The finding as a violation; ``measured`` is what false claims are held against."""
    if finding.rule is Rule.CLAIMS:
        sentence, marked = _claim(rows, finding.tasks[0], measured), _no_rows()
    else:
        sentence, marked = _EXPLAIN[finding.rule](rows, finding)
    picture = _picture(rows, marked)
    if finding.rule is Rule.COMPLETE and finding.at is None and picture:
        picture += f"\n{'':10}(marked: its nearest sibling)"
    return Violation(
        rule=finding.rule, tasks=finding.tasks, at=finding.at, message=sentence, picture=picture
    )


def deadlock(rows: Rows, error: Deadlock) -> Violation:
    """A program that waits for itself; the rows that do are marked."""
    waiting = [rows.problem.task(text) for text in error.waiting]
    return Violation(
        rule=Rule.DEPENDENCIES,
        tasks=tuple(error.waiting),
        at=None,
        message=str(error),
        picture=_picture(rows, rows.rows_of(*waiting)),
    )


def _picture(rows: Rows, marked: Ints) -> str:
    """The grid around the marked rows of the schedule; empty where there are none."""
    if not len(marked):
        return ""
    if rows.timed:
        return time_grid(rows.problem, rows.schedule, rows.task, marked)
    return step_grid(rows.problem, rows.schedule.program, marked)


def _no_rows() -> Ints:
    return np.zeros(0, dtype=np.int64)


def _listed(rows: Rows, text: str, resource: int, at: int | None) -> Ints:
    """The rows of an action, which may be foreign, on a resource at a time."""
    program = rows.schedule.program
    here = np.flatnonzero((program.resource == resource) & (rows.schedule.start == at))
    return here[[str(program.actions[row]) == text for row in here.tolist()]]


def _task(rows: Rows, text: str) -> int:
    """The task of the problem with that text, ``NONE`` where there is none."""
    return int(rows.problem.locate(ActionTable.from_actions([Action.parse(text)]))[0])


def _incomplete(rows: Rows, finding: Finding) -> Explained:
    problem, program = rows.problem, rows.schedule.program
    text, resource = finding.tasks[0], finding.where
    task, where = _task(rows, text), problem.resource_name(resource)
    if finding.at is None:
        return f"{problem.label(task)} is missing on {where}", _sibling(rows, task)
    if task == NONE:
        row = _listed(rows, text, resource, finding.at)
        return f"{program.actions.label(int(row[0]))} on {where} is no task of the problem", row
    again = rows.rows_of(task)
    again = again[program.resource[again] == resource]
    sentence = f"{problem.label(task)} stands {len(again)} times on {where}, must stand once"
    return sentence, again


def _sibling(rows: Rows, task: int) -> Ints:
    """The row of the same stage and kind whose microbatch is nearest, if there is one."""
    wanted, listed = rows.problem.actions, rows.schedule.program.actions
    siblings = np.flatnonzero(
        (listed.stage == wanted.stage[task]) & (listed.kind == wanted.kind[task])
    )
    near = np.abs(listed.microbatch[siblings] - wanted.microbatch[task])
    return siblings[np.argsort(near, kind="stable")[:1]]


def _misplaced(rows: Rows, finding: Finding) -> Explained:
    problem, resource = rows.problem, finding.where
    task = _task(rows, finding.tasks[0])
    homes = problem.occupancy.resource[problem.occupancy.task == task].tolist()
    if resource in homes:
        sentence = f"{problem.label(task)} starts at different times on its resources"
        return sentence, rows.rows_of(task)
    sentence = (
        f"{problem.label(task)} stands on {problem.resource_name(resource)}, "
        f"belongs on {' and '.join(problem.resource_name(home) for home in homes)}"
    )
    return sentence, _listed(rows, finding.tasks[0], resource, finding.at)


def _too_early(rows: Rows, finding: Finding) -> Explained:
    problem, edges = rows.problem, rows.problem.edges
    tasks = [_task(rows, text) for text in finding.tasks]
    names = [problem.label(task) for task in tasks]
    if len(tasks) == 1:
        return f"{names[0]} starts at {finding.at}, before time 0", rows.rows_of(*tasks)
    before, after = tasks
    end = int(rows.start[before] + problem.duration[before])
    lag = int(edges.lag[(edges.before == before) & (edges.after == after)].max())
    delay = f" and needs {counted(lag, problem.unit)} to arrive" if lag else ""
    sentence = (
        f"{names[1]} starts at {finding.at}, but waits for {names[0]}, which ends at {end}{delay}"
    )
    return sentence, rows.rows_of(before, after)


def _overlapping(rows: Rows, finding: Finding) -> Explained:
    problem, actions = rows.problem, rows.schedule.program.actions
    resource, (first, _) = finding.where, finding.tasks
    end = rows.schedule.start + problem.ticks(rows.task)
    second = next(
        row
        for row in _listed(rows, finding.tasks[1], resource, finding.at).tolist()
        if row and str(actions[row - 1]) == first and end[row - 1] > rows.schedule.start[row]
    )
    sentence = (
        f"{problem.resource_name(resource)} starts {actions.label(second)} at {finding.at}, "
        f"but {actions.label(second - 1)}, listed before it, runs until {end[second - 1]}"
    )
    return sentence, np.array([second - 1, second])


def _beyond_memory(rows: Rows, finding: Finding) -> Explained:
    problem, number = rows.problem, finding.where
    store = problem.stores[number]
    if finding.at is None:
        sentence = (
            f"{store.name}: the base load {store.base} exceeds the capacity "
            f"{store.capacity} {problem.memory_unit}"
        )
        return sentence, _no_rows()
    task = np.flatnonzero(rows.present)
    profile = memory_profile(problem, task, rows.start[task])
    row = _culprit(profile, number, finding.at, store.capacity)
    level, culprit = int(profile.level[row]), int(problem.events.task[profile.event[row]])
    bound = f"its capacity is {store.capacity} {problem.memory_unit}"
    if level < 0:
        bound = "a load cannot fall below 0: something is released before it is acquired"
    happened = profile.event[: row + 1][profile.store[: row + 1] == number]
    sentence = (
        f"{store.name} holds {level} at {finding.at}, when {problem.label(culprit)} runs; "
        f"{bound}; live: {_live(problem, happened)}"
    )
    return sentence, rows.rows_of(culprit)


def _culprit(profile: MemoryProfile, store: int, at: int | None, capacity: int | None) -> int:
    """The change of an instant that first brings a load above the capacity, or its last change."""
    changes = np.flatnonzero((profile.store == store) & (profile.time == at))
    above = changes[[capacity is not None and int(x) > capacity for x in profile.level[changes]]]
    return int(above[0] if len(above) else changes[-1])


def _live(problem: Problem, happened: Ints) -> str:
    """What the store holds after the given events: net change per (stage, microbatch, slice)."""
    events, actions = problem.events, problem.actions
    held: dict[tuple[int, int, int], int] = {}
    for event in happened.tolist():
        task = int(events.task[event])
        key = (int(actions.stage[task]), int(actions.microbatch[task]), int(actions.slice[task]))
        held[key] = held.get(key, 0) + int(events.delta[event])
    live = [(key, amount) for key, amount in held.items() if amount > 0]
    shown = [
        f"stage {stage} microbatch {microbatch}"
        + (f".{slice_}" if actions.is_sliced else "")
        + f" ({amount})"
        for (stage, microbatch, slice_), amount in live[:LIVE_SHOWN]
    ]
    more = f" and {len(live) - LIVE_SHOWN} more" if len(live) > LIVE_SHOWN else ""
    return (", ".join(shown) or "nothing") + more


def _claim(rows: Rows, name: str, measured: Measures | None) -> str:
    claimed = rows.schedule.claims[name]
    if not hasattr(measured, name):
        return f"{name} is claimed, but no measure has that name"
    if value_of(claimed) is None:
        return f"{name} is claimed to be {claimed!r}, which is no number"
    return f"{name} is claimed to be {claimed}, but measures {getattr(measured, name)}"


_EXPLAIN: dict[Rule, Callable[[Rows, Finding], Explained]] = {
    Rule.COMPLETE: _incomplete,
    Rule.PLACED: _misplaced,
    Rule.DEPENDENCIES: _too_early,
    Rule.EXCLUSIVE: _overlapping,
    Rule.MEMORY: _beyond_memory,
}
