"""Ways in which microbatches of a problem can differ: each changes one thing of one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Edges, MemoryEvents, Occupancy, Problem


def with_edges(problem: Problem, *extra: Edges) -> Problem:
    """The problem with more precedences."""
    parts = [problem.edges, *extra]
    columns = [np.concatenate([getattr(p, n) for p in parts]) for n in ("before", "after", "lag")]
    return replace(problem, edges=Edges(before=columns[0], after=columns[1], lag=columns[2]))


def bumped(column: Ints, row: int, by: int = 1) -> Ints:
    """A copy of the column in which one number differs."""
    copy = column.copy()
    copy[row] += by
    return copy


def longer_task(problem: Problem) -> Problem:
    return replace(problem, duration=bumped(problem.duration, 1))


def other_lag(problem: Problem) -> Problem:
    return replace(problem, edges=replace(problem.edges, lag=bumped(problem.edges.lag, 1)))


def missing_edge(problem: Problem) -> Problem:
    e = problem.edges
    return replace(problem, edges=Edges(before=e.before[1:], after=e.after[1:], lag=e.lag[1:]))


def edge_across(problem: Problem) -> Problem:
    one = [np.array([problem.task(text)]) for text in ("0F0", "1F1")]
    return with_edges(problem, Edges(before=one[0], after=one[1], lag=np.array([0])))


def other_delta(problem: Problem) -> Problem:
    return replace(problem, events=replace(problem.events, delta=bumped(problem.events.delta, 1)))


def other_store(problem: Problem) -> Problem:
    return replace(problem, events=replace(problem.events, store=bumped(problem.events.store, 0)))


def other_moment(problem: Problem) -> Problem:
    at_end = problem.events.at_end.copy()
    at_end[0] = ~at_end[0]
    return replace(problem, events=replace(problem.events, at_end=at_end))


def missing_event(problem: Problem) -> Problem:
    e = problem.events
    events = MemoryEvents(
        task=e.task[1:], at_end=e.at_end[1:], store=e.store[1:], delta=e.delta[1:]
    )
    return replace(problem, events=events)


def other_resource(problem: Problem) -> Problem:
    moved = bumped(problem.occupancy.resource, 0)
    return replace(problem, occupancy=Occupancy(task=problem.occupancy.task, resource=moved))


def other_number(problem: Problem) -> Problem:
    """Microbatches 0, 1 and 3."""
    actions = problem.actions
    last = np.where(actions.microbatch == 2, 3, actions.microbatch)
    return replace(problem, actions=replace(actions, microbatch=last))


DIFFERENCES: list[Callable[[Problem], Problem]] = [
    longer_task,
    other_lag,
    missing_edge,
    edge_across,
    other_delta,
    other_store,
    other_moment,
    missing_event,
    other_resource,
    other_number,
]
