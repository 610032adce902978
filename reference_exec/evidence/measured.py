"""Measured schedules: what ran, as a schedule in microseconds, to be drawn beside the predicted.

A computation counts from where it had what it waited for; a transfer, or what the host does, from
its first row to the end of its second. The STEPs and exchanges of a training, which are no tasks of
the problem, are drawn on their ranks too; one that runs on two ranks is drawn as long on both as on
the quicker. So are the collectives that replicas have put into a problem, from the first row to the
end of the second. Loads no torch.

Why ranks were idle in a replay: the causes of ``theory.idle`` for what ran, in microseconds.

Precedences are those of the problem. Nobody measures a message by itself: where a computation stood
still for what another rank computes, what arrived last counts as arriving when it went on, and the
time since it was computed as its message's. What is left between two actions of a rank, in which it
neither computed nor stood still for a message, is the executor's own and is found as ``order``, the
next task could have started. Memory is no cause here: its loads are in other units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bubbleproof.reference_exec.plans.predicted_live_bytes import BESIDE
from bubbleproof.reference_exec.plans.replay_plan import COLLECTIVE_KINDS, TRAINING_KINDS
from bubbleproof.reference_exec.runtime.trace import RankTrace
from bubbleproof.theory.idle import IdleStretches, idle_stretches
from bubbleproof.theory.model.actions import NONE, Action, ActionTable, Bools, Ints
from bubbleproof.theory.model.problem import Edges, MemoryEvents, Problem, Resource
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.extension import extended

NANOSECONDS = 1000  # in one microsecond
Span = tuple[int, int]
OnRanks = dict[Action, dict[int, Span]]  # by action, then rank


def measured_schedule(
    problem: Problem, schedule: Schedule, traces: Sequence[RankTrace]
) -> tuple[Problem, Schedule]:
    """What ran, with the durations and starts it had, in microseconds.

    The problem has the tasks of ``problem``, and the STEPs and exchanges of a training. Of several
    replicas it is the first. Precedences and memory are left out: they are in the problem's own
    units. What did not run is left out of the schedule.
    """
    first = traces[: problem.num_ranks]
    added = _added(problem, first)
    whole = _with_added(problem, added)
    spans = _spans(first)
    program = schedule.program
    ran = np.array([action in spans for action in program.actions], dtype=bool)
    actions = program.actions.take(ran)
    found = [spans[action] for action in actions]
    duration = whole.duration.copy()
    duration[whole.locate(actions)] = [end - begin for begin, end in found]
    rows = [
        (action, rank, begin) for action, on in added.items() for rank, (begin, _) in on.items()
    ]
    start = np.array([*(b for b, _ in found), *(b for _, _, b in rows)], dtype=np.int64)
    ranks = [rank for _, rank, _ in rows]
    resource = np.append(program.resource[ran], ranks).astype(np.int64)
    order = np.lexsort((start, resource))
    actions = _joined(actions, [action for action, _, _ in rows])
    measured = Schedule.grouped(
        actions=actions.take(order), resource=resource[order], start=start[order]
    )
    whole = replace(whole, resources=_named(problem, traces), duration=duration)
    return whole, measured


def _added(problem: Problem, traces: Sequence[RankTrace]) -> OnRanks:
    """When each rank ran what its training, or its replicas, have added to the problem's tasks."""
    found: OnRanks = {}
    for rank, trace in enumerate(traces):
        task = problem.locate(ActionTable.from_actions(trace.actions)).tolist()
        rows = zip(task, trace.actions, trace.begin, trace.waited, trace.end, strict=True)
        for number, action, begin, waited, end in rows:
            if number == NONE and action.kind in (*TRAINING_KINDS, *COLLECTIVE_KINDS):
                first, last = _micro(begin, waited, end)
                earlier, _ = found.setdefault(action, {}).get(rank, (first, last))
                found[action][rank] = min(earlier, first), last
    return found


def _named(problem: Problem, traces: Sequence[RankTrace]) -> tuple[Resource, ...]:
    """The problem's resources, ranks called as their traces are."""
    p = problem.num_ranks
    names = [trace.name for trace in traces[:p]] or [r.name for r in problem.resources[:p]]
    ranks = zip(problem.resources, names, strict=False)
    return (*(replace(own, name=name) for own, name in ranks), *problem.resources[p:])


def _with_added(problem: Problem, added: OnRanks) -> Problem:
    """The problem without times and memory, with a task on its ranks for each that is added."""
    ticks = [min(end - begin for begin, end in on.values()) for on in added.values()]
    task = [problem.num_tasks + k for k, on in enumerate(added.values()) for _ in on]
    bare = replace(
        problem,
        duration=np.zeros(problem.num_tasks, dtype=np.int64),
        edges=Edges(),
        stores=(),
        events=MemoryEvents(),
        unit="us",
    )
    ranks = [rank for on in added.values() for rank in on]
    return extended(
        bare,
        actions=ActionTable.from_actions(added),
        duration=np.array(ticks, dtype=np.int64),
        homes=[(np.array(task, dtype=np.int64), np.array(ranks, dtype=np.int64))],
    )


def _joined(table: ActionTable, more: Sequence[Action]) -> ActionTable:
    return ActionTable.concatenate([table, ActionTable.from_actions(more)])


def _micro(begin: int, waited: int, end: int) -> Span:
    return -(-(begin + waited) // NANOSECONDS), -(-end // NANOSECONDS)


def _spans(traces: Sequence[RankTrace]) -> dict[Action, Span]:
    """When each action ran, in whole microseconds; none is let begin before the one before ends."""
    spans: dict[Action, Span] = {}
    for trace in traces:
        rows = zip(trace.actions, trace.begin, trace.waited, trace.end, strict=True)
        for action, begin, waited, end in rows:
            first, last = _micro(begin, waited, end)
            if action.kind in BESIDE:
                begun = spans.get(action, (begin // NANOSECONDS, last))
                spans[action] = min(begun[0], first), max(begun[1], last)
            else:
                spans[action] = first, last
    return spans


def measured_idle(
    problem: Problem, schedule: Schedule, traces: Sequence[RankTrace]
) -> IdleStretches:
    """The idle time of the first replica's ranks in one pass, each stretch with its cause.

    ``traces`` are a report's (``ReplayReport.traces``) of a replay of this schedule.
    """
    bare, found = measured_schedule(problem, schedule, traces)
    start = np.full(bare.num_tasks, NONE)
    start[bare.locate(found.program.actions)] = found.start
    waited = np.zeros(bare.num_tasks, dtype=bool)
    for trace in traces[: problem.num_ranks]:
        stood = [a for a, ns in zip(trace.actions, trace.waited, strict=True) if ns > 0]
        names = {str(action) for action in stood}
        waited |= np.array([str(action) in names for action in bare.actions], dtype=bool)
    edges = _arriving(problem, bare, start, waited)
    return idle_stretches(replace(bare, edges=edges), found)


def _arriving(problem: Problem, bare: Problem, start: Ints, waited: Bools) -> Edges:
    """The precedences of what ran; what arrived last has a lag where its taker stood still."""
    ran = (start[problem.edges.before] != NONE) & (start[problem.edges.after] != NONE)
    before, after = problem.edges.before[ran], problem.edges.after[ran]
    end = start + bare.duration
    latest = np.full(bare.num_tasks, NONE)
    np.maximum.at(latest, after, end[before])
    rank = bare.rank_of_task
    crosses = (rank[before] != rank[after]) & waited[after] & (end[before] == latest[after])
    lag = np.where(crosses, np.maximum(start[after] - end[before], 0), 0)
    return Edges(before=before, after=after, lag=lag)
