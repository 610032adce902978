"""Why ranks were idle in a replay: the causes of ``theory.idle`` for what ran, in microseconds.

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

from bubbleproof.reference_exec.evidence.measured import measured_schedule
from bubbleproof.reference_exec.runtime.trace import RankTrace
from bubbleproof.theory.idle import IdleStretches, idle_stretches
from bubbleproof.theory.model.actions import NONE, Bools, Ints
from bubbleproof.theory.model.problem import Edges, Problem
from bubbleproof.theory.model.schedule import Schedule


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
