"""Messages on links in programs and schedules: which rows they are, without them, and with them.

A rank's program says nothing of its messages: ``with_messages_in_order`` completes an order of
computations by sending each message when it is ready, first come first served on each link
(``theory.pipelines.links`` tells which messages a problem has).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bubbleproof.theory.model.actions import NONE, Bools, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.extension import renumbered
from bubbleproof.theory.pipelines.programs.lowering import with_rows
from bubbleproof.theory.pipelines.timing import earliest_starts, waiting_edges

SENDS = (Kind.SEND_F, Kind.SEND_B)


def is_message(problem: Problem, program: Program) -> Bools:
    """Which rows are messages on links: tasks of the problem, no SENDs of a rank's program."""
    mask: Bools = program.actions.is_kind(*SENDS) & (program.resource >= problem.num_ranks)
    return mask


def without_messages(problem: Problem) -> Problem:
    """The problem without the tasks of its messages; producer and consumer stay as far apart."""
    kept = ~problem.actions.is_kind(*SENDS)
    if kept.all():
        return problem
    number = np.where(kept, np.cumsum(kept) - 1, NONE)
    return renumbered(problem, kept, number, problem.actions, problem.duration)


def program_without_messages(problem: Problem, program: Program) -> Program:
    """The program without the rows of messages on links."""
    kept = ~is_message(problem, program)
    return program if kept.all() else program.take(kept)


def schedule_without_messages(problem: Problem, schedule: Schedule) -> Schedule:
    """The schedule without the rows of messages on links."""
    kept = ~is_message(problem, schedule.program)
    return replace(
        schedule,
        program=program_without_messages(problem, schedule.program),
        start=schedule.start[kept],
    )


def with_messages_in_order(problem: Problem, program: Program) -> Program:
    """The program with the problem's messages where it has none, first come first served.

    A message comes when it would be ready if links carried any number at once. What the program
    has on a link already keeps its order. The program itself where there is nothing to add, or
    where its order waits for itself.
    """
    sends = np.flatnonzero(problem.actions.is_kind(*SENDS))
    if not len(sends):
        return program
    have = problem.locate(program.actions)
    missing = np.setdiff1d(sends, have)
    if not len(missing):
        return program
    on_ranks = program.resource < problem.num_ranks
    order = program.take(on_ranks)
    known = have[on_ranks]
    if (known == NONE).any():
        return program
    start = earliest_starts(problem.duration, *waiting_edges(problem, order, known))
    if start is None:
        return program
    beside = ~on_ranks & (have != NONE)
    task = np.concatenate([have[beside], missing])
    resource_of = dict(zip(*_columns(problem), strict=True))
    resource = np.array([resource_of[t] for t in task.tolist()], dtype=np.int64)
    by = np.lexsort((np.arange(len(task)), start[task], resource))
    on_links = Program(actions=problem.actions.take(task[by]), resource=resource[by])
    return with_rows(order, on_links)


def _columns(problem: Problem) -> tuple[list[int], list[int]]:
    """The resource of every task that occupies no rank."""
    rows = problem.occupancy.resource >= problem.num_ranks
    return problem.occupancy.task[rows].tolist(), problem.occupancy.resource[rows].tolist()
