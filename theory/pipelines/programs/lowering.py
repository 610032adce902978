"""Lowering: from a schedule to one program per rank with explicit SEND and RECV.

``lower`` replays the schedule in time. When a task ends, its messages
(``theory.pipelines.programs.messages``) are written at once into the programs of both ranks: the
SEND after the producer, the RECV before whatever the receiver starts next. All programs then agree
with one global order of events, so they are free of deadlock even when SEND and RECV block, and
each pair of ranks sends and receives in the same order. That is a reason to expect, not a proof:
``verify`` checks the result like any other.
"""

from __future__ import annotations

import heapq

import numpy as np

from bubbleproof.theory.model.actions import NONE, ActionTable, Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.programs.messages import message_table
from bubbleproof.theory.pipelines.timing import earliest_starts, waiting_edges


def lower(problem: Problem, schedule: Schedule) -> Program:
    """The schedule's compute programs with a SEND and a RECV for every message.

    Rows that name no task of the problem are kept where they stand and send nothing. Time is that
    of the schedule; ties are broken by the order in which inputs become ready.
    """
    program, table = schedule.program, message_table(problem)
    located, source, target = problem.locate(program.actions), table.source, table.target
    outbox: dict[int, list[tuple[int, int, int]]] = {}
    ends = zip(table.producer.tolist(), source.tolist(), target.tolist(), strict=True)
    for number, (producer, *ranks) in enumerate(ends, len(located)):
        outbox.setdefault(producer, []).append((number, *ranks))
    rows: list[list[int]] = [[] for _ in range(problem.num_ranks)]  # of all that may be written
    task, resource = located.tolist(), program.resource.tolist()
    for row, is_end in _events(problem, schedule, located):
        if not is_end:
            rows[resource[row]].append(row)
            continue
        for send, sender, receiver in outbox.get(task[row], ()):
            rows[sender].append(send)
            rows[receiver].append(send + len(table))
    written = ActionTable.concatenate([program.actions, table.send, table.recv])
    return Program(
        actions=written.take(np.array([row for of in rows for row in of], dtype=np.int64)),
        resource=np.repeat(np.arange(problem.num_ranks), [len(of) for of in rows]),
    )


def with_rows(program: Program, more: Program) -> Program:
    """The rows of both; of a resource that has rows in both, the program's own come first."""
    return Program.grouped(
        actions=ActionTable.concatenate([program.actions, more.actions]),
        resource=np.concatenate([program.resource, more.resource]),
    )


def _events(problem: Problem, schedule: Schedule, located: Ints) -> list[tuple[int, bool]]:
    """(row, is its end?) of compute rows in time order: ends before starts, rank order kept.

    A row of no duration starts and ends at one instant, before any other row starts.
    """
    start = schedule.start.tolist()
    resource = schedule.program.resource.tolist()
    duration, task = problem.duration.tolist(), located.tolist()
    depth = _depth(problem, schedule, located)
    queue = [
        (start[row], 1, depth[row], row)
        for row in range(len(start))
        if resource[row] < problem.num_ranks
    ]
    heapq.heapify(queue)
    events = []
    while queue:
        time, phase, level, row = heapq.heappop(queue)
        events.append((row, phase == 0))
        if phase and task[row] != NONE:
            heapq.heappush(queue, (time + duration[task[row]], 0, level, row))
    return events


def _depth(problem: Problem, schedule: Schedule, task: Ints) -> list[int]:
    """A level per row that rises along every wait between rows of one start; 0 if they cycle."""
    known = task != NONE
    start = np.full(problem.num_tasks, -1, dtype=np.int64)
    start[task[known]] = schedule.start[known]
    before, after, _ = waiting_edges(problem, schedule.program, task)
    tied = (before != NONE) & (after != NONE) & (start[before] == start[after])
    no_lag = np.zeros(int(tied.sum()), dtype=np.int64)
    level = earliest_starts(np.ones_like(start), before[tied], after[tied], no_lag)
    return [0] * len(task) if level is None else np.where(known, level[task], 0).tolist()
