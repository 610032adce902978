"""Rule 9: does this certificate prove that no schedule has a smaller makespan?

A one-machine certificate names a resource r and a set S of tasks that occupy it. Let head(t) be
the longest path of durations and lags, from the start of some computation, that must lie before the
start of t, and tail(t) the longest, up to the end of some computation, that must lie after its end;
both over the precedences and, where microbatches are identical, the index-order and memory edges of
``theory.index_order``. The tasks of S run one at a time on r, so

    makespan >= min head(t) + sum of durations of S + min tail(t)   (Jackson 1955; Carlier 1982).

The checker recomputes heads and tails from the problem by its own few lines and believes nothing
but S. It shares no code with the solvers.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from bubbleproof.theory.actions import NONE
from bubbleproof.theory.index_order import index_order
from bubbleproof.theory.problem import Edges, Problem
from bubbleproof.verify.verdict import Finding, Rule, Violation

NEVER = -(1 << 62)  # no path: such a task makes a bound worthless, not false


@dataclass(frozen=True, slots=True, kw_only=True)
class OneMachine:
    """Claims ``makespan >= bound`` because of ``tasks`` (indices) on one ``resource`` (index)."""

    resource: int
    tasks: tuple[int, ...]
    bound: int


def check_certificate(problem: Problem, certificate: OneMachine) -> Finding:
    """Accept the certificate, or say why it does not prove its bound."""
    why = _refusal(problem, certificate)
    violations = (
        () if why is None else (Violation(rule=Rule.CERTIFICATE, tasks=(), at=None, message=why),)
    )
    return Finding(rule=Rule.CERTIFICATE, count=len(violations), violations=violations)


def _refusal(problem: Problem, certificate: OneMachine) -> str | None:
    pairs = set(
        zip(problem.occupancy.task.tolist(), problem.occupancy.resource.tolist(), strict=True)
    )
    tasks = set(certificate.tasks)
    if not tasks or len(tasks) != len(certificate.tasks):
        return "a one-machine certificate names each of its tasks once, and at least one"
    for task in sorted(tasks):
        if (task, certificate.resource) not in pairs:
            return f"task {task} does not occupy resource {certificate.resource}"
    heads, tails = _heads_and_tails(problem)
    if heads is None or tails is None:
        return "the problem's precedences have a cycle"
    duration = problem.duration.tolist()
    proved = (
        min(heads[t] for t in tasks)
        + sum(duration[t] for t in tasks)
        + min(tails[t] for t in tasks)
    )
    if proved < certificate.bound:
        return f"the certificate proves {proved}, not {certificate.bound}"
    return None


def _heads_and_tails(problem: Problem) -> tuple[list[int] | None, list[int] | None]:
    parts: list[Edges] = [problem.edges]
    if (order := index_order(problem)) is not None:
        parts += [order.order_edges, order.memory_edges]
    edges = [
        edge
        for part in parts
        for edge in zip(part.before.tolist(), part.after.tolist(), part.lag.tolist(), strict=True)
    ]
    duration = problem.duration.tolist()
    origin = [0 if rank != NONE else NEVER for rank in problem.rank_of_task.tolist()]
    backward = [(after, before, lag) for before, after, lag in edges]
    return _longest(duration, edges, origin), _longest(duration, backward, origin)


def _longest(
    duration: list[int], edges: list[tuple[int, int, int]], origin: list[int]
) -> list[int] | None:
    """The longest path ending just before each task, or None if the edges have a cycle.

    ``origin`` is 0 where a path may begin and ``NEVER`` elsewhere.
    """
    after: list[list[tuple[int, int]]] = [[] for _ in duration]
    waiting = [0] * len(duration)
    for source, target, lag in edges:
        after[source].append((target, lag))
        waiting[target] += 1
    longest = origin.copy()
    ready = deque(task for task, count in enumerate(waiting) if not count)
    done = 0
    while ready:
        task = ready.popleft()
        done += 1
        for target, lag in after[task]:
            longest[target] = max(longest[target], longest[task] + duration[task] + lag)
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    return longest if done == len(duration) else None
