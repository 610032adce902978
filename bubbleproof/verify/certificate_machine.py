"""Bounds by one machine: a set of tasks that must run one at a time, between a head and a tail.

A one-machine certificate names a resource r and a set S of tasks that occupy it. Let head(t) be
the longest path of durations and lags, from the start of some computation, that must lie before the
start of t, and tail(t) the longest, up to the end of some computation, that must lie after its end;
both over the precedences and, where microbatches are identical, the index-order and memory edges of
``theory.index_order``. The tasks of S run one at a time on r, so

    makespan >= min head(t) + sum of durations of S + min tail(t)   (Jackson 1955; Carlier 1982).

For ``span_idle`` r is a rank's compute stream and heads and tails count from and to computations on
r alone: the same sum bounds that rank's span, and the sum less all work of r bounds ``span_idle``.

The checker recomputes heads and tails from the problem by its own few lines and believes nothing
but S. It shares no code with the solvers.
"""

from __future__ import annotations

from dataclasses import dataclass

from bubbleproof.theory.actions import NONE
from bubbleproof.theory.problem import Problem
from bubbleproof.verify.certificate_paths import Edge, in_order, occupied, sure_edges

NEVER = -(1 << 62)  # no path: such a task makes a bound worthless, not false


@dataclass(frozen=True, slots=True, kw_only=True)
class OneMachine:
    """Claims ``objective >= bound`` because of ``tasks`` (indices) on one ``resource`` (index)."""

    resource: int
    tasks: tuple[int, ...]
    bound: int
    objective: str = "makespan"


def one_machine_refusal(problem: Problem, certificate: OneMachine) -> str | None:
    """Why the certificate does not prove its bound, or None."""
    pairs = set(occupied(problem))
    tasks = set(certificate.tasks)
    if not tasks or len(tasks) != len(certificate.tasks):
        return "a one-machine certificate names each of its tasks once, and at least one"
    for task in sorted(tasks):
        if (task, certificate.resource) not in pairs:
            return f"task {task} does not occupy resource {certificate.resource}"
    is_span = certificate.objective == "span_idle"
    if is_span and certificate.resource >= problem.num_ranks:
        return f"resource {certificate.resource} is no rank and has no span"
    edges, rank = sure_edges(problem), certificate.resource if is_span else None
    heads = _longest(problem, edges, rank)
    tails = _longest(problem, [(after, before, lag) for before, after, lag in edges], rank)
    if heads is None or tails is None:
        return "the problem's precedences have a cycle"
    duration = problem.duration.tolist()
    proved = (
        min(heads[t] for t in tasks)
        + sum(duration[t] for t in tasks)
        + min(tails[t] for t in tasks)
    )
    if is_span:
        proved -= sum(duration[t] for t, r in pairs if r == certificate.resource)
    if proved < certificate.bound:
        return f"the certificate proves {proved}, not {certificate.bound}"
    return None


def _longest(problem: Problem, edges: list[Edge], rank: int | None) -> list[int] | None:
    """Per task the longest path before it that begins at a computation, on ``rank`` if given."""
    longest = [
        0 if home != NONE and rank in (None, home) else NEVER
        for home in problem.rank_of_task.tolist()
    ]
    if (tasks := in_order(problem.num_tasks, edges)) is None:
        return None
    duration = problem.duration.tolist()
    for task, out in tasks:
        for _, after, lag in out:
            longest[after] = max(longest[after], longest[task] + duration[task] + lag)
    return longest
