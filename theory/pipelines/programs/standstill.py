"""A program that comes to a standstill: what runs, and what then waits for what.

Rows that repeat an action or name none of the problem are passed over. What is required and stands
nowhere never runs, and whoever needs it waits for ever.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bubbleproof.theory.model.actions import NONE, Bools, Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.programs.acyclic import acyclic_starts
from bubbleproof.theory.pipelines.timing import sweep, waiting_edges
from bubbleproof.theory.pipelines.units import counted

SHOWN = 4  # tasks that a sentence names


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """The first task of a resource that never starts, and the tasks that it waits for."""

    resource: int
    task: int
    needs: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Standstill:
    """``schedule`` is what runs, as early as it can, ``at`` the tick of its last end.

    ``absent`` says of each task whether it misses a row.
    """

    problem: Problem
    schedule: Schedule
    at: int
    waits: tuple[Wait, ...]
    absent: Bools

    def sentences(self) -> tuple[str, ...]:
        """When it stands still, and what each resource then waits for."""
        when = f"nothing moves after {counted(self.at, self.problem.unit)}"
        return (when, *map(self.sentence, self.waits))

    def sentence(self, wait: Wait) -> str:
        """What one resource waits for."""
        name, label = self.problem.resource_name(wait.resource), self.problem.label
        needs = [
            label(task) + " (which stands nowhere)" * bool(self.absent[task])
            for task in wait.needs[:SHOWN]
        ]
        more = f" and {len(wait.needs) - SHOWN} more" * (len(wait.needs) > SHOWN)
        return f"{name} waits at {label(wait.task)} for {', '.join(needs)}{more}"


def standstill(problem: Problem, program: Program) -> Standstill:
    """How far a program comes. Any program will do; of one that ends, everything runs."""
    task, program = _first_rows(problem, program)
    required = np.bincount(problem.occupancy.task, minlength=problem.num_tasks)
    absent = np.bincount(task, minlength=problem.num_tasks) < required
    before, after, lag = waiting_edges(problem, program, task)
    never = np.flatnonzero(absent)  # a task that waits for itself
    done, _ = sweep(
        problem.num_tasks, np.concatenate([before, never]), np.concatenate([after, never])
    )
    runs = np.zeros(problem.num_tasks, dtype=bool)
    runs[done] = True
    both = runs[before] & runs[after]
    start = acyclic_starts(problem.duration, before[both], after[both], lag[both])
    rows = runs[task]
    schedule = Schedule(
        program=program.take(rows),
        start=start[task[rows]],
    )
    return Standstill(
        problem=problem,
        schedule=schedule,
        at=int((start + problem.duration)[task[rows]].max(initial=0)),
        waits=_waits(program, task, runs, before, after),
        absent=absent,
    )


def _first_rows(problem: Problem, program: Program) -> tuple[Ints, Program]:
    """The rows that are a task of the problem, each once on a resource."""
    task = problem.locate(program.actions)
    pair = task * (int(program.resource.max(initial=0)) + 1) + program.resource
    first = np.zeros(len(task), dtype=bool)
    first[np.unique(pair, return_index=True)[1]] = True
    keep = first & (task != NONE)
    return task[keep], program.take(keep)


def _waits(
    program: Program, task: Ints, runs: Bools, before: Ints, after: Ints
) -> tuple[Wait, ...]:
    stuck = np.flatnonzero(~runs[task])
    _, first = np.unique(program.resource[stuck], return_index=True)
    held = ~runs[before]
    return tuple(
        Wait(
            resource=int(program.resource[row]),
            task=int(task[row]),
            needs=tuple(np.unique(before[held & (after == task[row])]).tolist())
            or (int(task[row]),),
        )
        for row in stuck[first].tolist()
    )
