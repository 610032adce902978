"""Lowering: from a schedule to one program per rank with explicit SEND and RECV.

``lower`` replays the schedule in time. When a task ends, its messages
(``theory.pipelines.programs.messages``) are written at once into the programs of both ranks: the
SEND after the producer, the RECV before whatever the receiver starts next. All programs then agree
with one global order of events, so they are free of deadlock even when SEND and RECV block, and
each pair of ranks sends and receives in the same order. That is a reason to expect, not a proof:
``verify`` checks the result like any other.
"""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.model.actions import NONE, ActionTable, Bools, Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.programs.messages import message_table
from bubbleproof.theory.pipelines.timing import earliest_starts, waiting_edges


def lower(problem: Problem, schedule: Schedule) -> Program:
    """The schedule's compute programs with a SEND and a RECV for every message.

    Rows that name no task of the problem are kept where they stand and send nothing. Time is that
    of the schedule; ties are broken by the order in which inputs become ready.
    """
    return lower_with_moments(problem, schedule)[0]


def lower_with_moments(problem: Problem, schedule: Schedule) -> tuple[Program, Ints]:
    """The lowered program, and the place of each of its rows in the one order of all events.

    A message's two rows have one place. It is a hint for whoever looks for deadlocks, not a proof.
    """
    program, table = schedule.program, message_table(problem)
    located = problem.locate(program.actions)
    row, is_end = _events(problem, schedule, located)
    begun, ended = np.flatnonzero(~is_end), np.flatnonzero(is_end)
    # The messages of each end of a producer, in the table's order.
    by_producer = np.argsort(table.producer, kind="stable")
    first = np.searchsorted(table.producer[by_producer], np.arange(problem.num_tasks + 1))
    producer = located[row[ended]]
    count = np.diff(first)[producer]
    place = np.repeat(ended, count)
    which = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    number = by_producer[np.repeat(first[producer], count) + which]
    moment = np.concatenate([begun, place, place])
    rank = np.concatenate(
        [program.resource[row[begun]], table.source[number], table.target[number]]
    )
    sent = len(located) + number
    written = np.concatenate([row[begun], sent, sent + len(table)])
    nth = np.concatenate([np.zeros(len(begun), dtype=np.int64), which, which])
    order = np.lexsort((nth, moment, rank))
    actions = ActionTable.concatenate([program.actions, table.send, table.recv])
    lowered = Program(actions=actions.take(written[order]), resource=rank[order])
    most = 1 + int(nth.max(initial=0))
    return lowered, (moment * most + nth)[order]


def with_rows(program: Program, more: Program) -> Program:
    """The rows of both; of a resource that has rows in both, the program's own come first."""
    return Program.grouped(
        actions=ActionTable.concatenate([program.actions, more.actions]),
        resource=np.concatenate([program.resource, more.resource]),
    )


def _events(problem: Problem, schedule: Schedule, located: Ints) -> tuple[Ints, Bools]:
    """(row, is its end?) of compute rows in time order: ends before starts, rank order kept.

    A row of no duration starts and ends at one instant, before any other row starts. Rows of no
    task do not end.
    """
    begun = np.flatnonzero(schedule.program.resource < problem.num_ranks)
    ended = begun[located[begun] != NONE]
    ticks = problem.ticks(located)
    row, is_end = np.concatenate([begun, ended]), np.repeat([False, True], [len(begun), len(ended)])
    at = schedule.start[row] + np.where(is_end, ticks[row], 0)
    is_start = ~is_end | (ticks[row] == 0)  # which comes after the ends of its instant
    order = np.lexsort((is_end, row, _depth(problem, schedule, located)[row], is_start, at))
    return row[order], is_end[order]


def _depth(problem: Problem, schedule: Schedule, task: Ints) -> Ints:
    """A level per row that rises along every wait between rows of one start; 0 if they cycle."""
    known = task != NONE
    start = np.full(problem.num_tasks, -1, dtype=np.int64)
    start[task[known]] = schedule.start[known]
    before, after, _ = waiting_edges(problem, schedule.program, task)
    tied = (before != NONE) & (after != NONE) & (start[before] == start[after])
    no_lag = np.zeros(int(tied.sum()), dtype=np.int64)
    level = earliest_starts(np.ones_like(start), before[tied], after[tied], no_lag)
    return np.zeros_like(task) if level is None else np.where(known, level[task], 0)
