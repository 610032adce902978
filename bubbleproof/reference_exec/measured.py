"""Measured schedules: what ran, as a schedule in microseconds, to be drawn beside the predicted.

A computation counts from where it had what it waited for; a transfer, or what the host does, from
its first row to the end of its second. Loads no torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bubbleproof.reference_exec.stairs import BESIDE
from bubbleproof.reference_exec.trace import RankTrace
from bubbleproof.theory.actions import Action
from bubbleproof.theory.problem import Edges, MemoryEvents, Problem
from bubbleproof.theory.schedule import Schedule

NANOSECONDS = 1000  # in one microsecond
Span = tuple[int, int]


def measured_schedule(
    problem: Problem, schedule: Schedule, traces: Sequence[RankTrace]
) -> tuple[Problem, Schedule]:
    """The tasks of ``problem`` that ran, with the durations and starts they had, in microseconds.

    Of several replicas it is the first. Precedences and memory are left out: they are in the
    problem's own units. What did not run is left out of the schedule.
    """
    spans = _spans(traces[: problem.num_ranks])
    program = schedule.program
    ran = np.array([action in spans for action in program.actions], dtype=bool)
    actions = program.actions.take(ran)
    found = [spans[action] for action in actions]
    duration = np.zeros(problem.num_tasks, dtype=np.int64)
    duration[problem.locate(actions)] = [end - begin for begin, end in found]
    measured = replace(
        problem, duration=duration, edges=Edges(), stores=(), events=MemoryEvents(), unit="us"
    )
    start = np.array([begin for begin, _ in found], dtype=np.int64)
    return measured, Schedule.grouped(actions=actions, resource=program.resource[ran], start=start)


def _spans(traces: Sequence[RankTrace]) -> dict[Action, Span]:
    """When each action ran, in whole microseconds; none is let begin before the one before ends."""
    spans: dict[Action, Span] = {}
    for trace in traces:
        rows = zip(trace.actions, trace.begin, trace.waited, trace.end, strict=True)
        for action, begin, waited, end in rows:
            first, last = -(-(begin + waited) // NANOSECONDS), -(-end // NANOSECONDS)
            if action.kind in BESIDE:
                begun = spans.get(action, (begin // NANOSECONDS, last))
                spans[action] = min(begun[0], first), max(begun[1], last)
            else:
                spans[action] = first, last
    return spans
