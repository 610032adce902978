"""Lowering: from a schedule to one program per rank with explicit SEND and RECV.

A dependency of a forward on the forward of the stage before, or of a backward (B, I) on the
backward of the stage after, is a *message* when the two tasks run on different ranks. F(j,k,g-1)
sends with ``SEND_F`` of stage g-1, which pairs with ``RECV_F`` of stage g on the other rank;
B/I(j,k,g+1) sends with ``SEND_B`` of stage g+1, paired with ``RECV_B`` of stage g.

``lower`` replays the schedule in time. When a task ends, its messages are written at once into the
programs of both ranks: the SEND after the producer, the RECV before whatever the receiver starts
next. All programs then agree with one global order of events, so they are free of deadlock even
when SEND and RECV block, and each pair of ranks sends and receives in the same order. That is a
reason to expect, not a proof: ``verify`` checks the result like any other program.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from bubbleproof.theory.actions import (
    BACKWARD_KINDS,
    FORWARD_KINDS,
    NONE,
    Action,
    ActionTable,
    Ints,
    Kind,
)
from bubbleproof.theory.problem import Problem
from bubbleproof.theory.schedule import Program, Schedule
from bubbleproof.theory.timing import earliest_starts, waiting_edges


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A tensor that ``producer`` (task) makes on ``source`` (rank) for ``consumer`` on ``target``."""

    producer: int
    consumer: int
    source: int
    target: int
    send: Action
    recv: Action


def messages(problem: Problem) -> list[Message]:
    """The messages of a problem, one for each data dependency between ranks.

    Other precedences between ranks order tasks without data and give no message.
    """
    actions, rank = problem.actions, problem.rank_of_task
    before, after = problem.edges.before, problem.edges.after
    crosses = (rank[before] != rank[after]) & (rank[before] != NONE) & (rank[after] != NONE)
    found = []
    for edge in np.flatnonzero(crosses).tolist():
        producer, consumer = int(before[edge]), int(after[edge])
        ends = (int(rank[producer]), int(rank[consumer]))
        for pair in _message_actions(actions[producer], actions[consumer]):
            found.append(
                Message(
                    producer=producer,
                    consumer=consumer,
                    source=ends[0],
                    target=ends[1],
                    send=pair[0],
                    recv=pair[1],
                )
            )
    return found


def _message_actions(producer: Action, consumer: Action) -> list[tuple[Action, Action]]:
    pairs = []
    for kinds, step, send, recv in (
        (FORWARD_KINDS, 1, Kind.SEND_F, Kind.RECV_F),
        (BACKWARD_KINDS, -1, Kind.SEND_B, Kind.RECV_B),
    ):
        source, target = _role(producer, kinds), _role(consumer, kinds)
        if source is None or target is None or target.stage != source.stage + step:
            continue
        if (target.microbatch, target.slice) == (source.microbatch, source.slice):
            pairs.append((_as_kind(source, send), _as_kind(target, recv)))
    return pairs


def _role(action: Action, kinds: tuple[Kind, ...]) -> Action | None:
    """The forward or backward part of an action, or None when it has no such part."""
    if action.kind not in kinds:
        return None
    return action.partner if action.partner is not None and kinds is BACKWARD_KINDS else action


def _as_kind(action: Action, kind: Kind) -> Action:
    return Action(stage=action.stage, kind=kind, microbatch=action.microbatch, slice=action.slice)


def lower(problem: Problem, schedule: Schedule) -> Program:
    """The schedule's compute programs with a SEND and a RECV for every message.

    Rows that name no task of the problem are kept where they stand and send nothing. Time is that
    of the schedule; ties are broken by the order in which inputs become ready.
    """
    located = problem.locate(schedule.program.actions)
    task = located.tolist()
    outbox: dict[int, list[Message]] = {}
    for message in messages(problem):
        outbox.setdefault(message.producer, []).append(message)
    programs: list[list[Action]] = [[] for _ in range(problem.num_ranks)]
    for row, is_end in _events(problem, schedule, located):
        if not is_end:
            programs[int(schedule.program.resource[row])].append(schedule.program.actions[row])
            continue
        for message in outbox.get(task[row], ()):
            programs[message.source].append(message.send)
            programs[message.target].append(message.recv)
    return Program(
        actions=ActionTable.from_actions(a for program in programs for a in program),
        resource=np.repeat(np.arange(problem.num_ranks), [len(p) for p in programs]),
    )


def _events(problem: Problem, schedule: Schedule, located: Ints) -> list[tuple[int, bool]]:
    """(row, is its end?) of compute rows in time order: ends before starts, rank order kept.

    A row of no duration starts and ends at one instant; its end follows at once, before any other start.
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
    """A level per row that rises along every wait between tasks of one start; 0 where they cycle."""
    known = task != NONE
    start = np.full(problem.num_tasks, -1, dtype=np.int64)
    start[task[known]] = schedule.start[known]
    before, after, _ = waiting_edges(problem, schedule.program, task)
    tied = (before != NONE) & (after != NONE) & (start[before] == start[after])
    no_lag = np.zeros(int(tied.sum()), dtype=np.int64)
    level = earliest_starts(np.ones_like(start), before[tied], after[tied], no_lag)
    return [0] * len(task) if level is None else np.where(known, level[task], 0).tolist()
