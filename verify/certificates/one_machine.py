"""Certificates by one resource, which does one task at a time.

Every certificate claims ``objective >= bound`` for all schedules of one problem. *Heads* and
*tails* (ticks) are longest paths over the precedences and the index-order and memory edges of
``verify.certificates.index_order``: the head of a task t is that from the first computation to the
start of t, its tail that from the end of t to the last computation. For ``makespan`` these are the
computations of all ranks, for ``span_idle`` those of the resource, which is a rank. They are
recomputed here, with no code of the solvers.

``OneMachine``: the tasks of a set S of one resource run one after another, none before the least
head and none after the last of them but what the least tail takes,

    makespan >= min head(t) + sum of durations of S + min tail(t)   (Carlier 1982).

The same is true of the span of a rank; less all its work, that is its ``span_idle``. Each task of S
must be between computations: of another (a transfer that nothing waits for) nothing follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Edges, Problem
from bubbleproof.verify.certificates.chains import in_order
from bubbleproof.verify.certificates.index_order import index_order, sure_edges

NO_PATH = -(1 << 80)  # ticks; all durations and lags add up to less than 2**60

MachineTask = tuple[int, int, int]  # an edge: before, after, lag


@dataclass(frozen=True, slots=True, kw_only=True)
class OneMachine:
    """Claims ``objective >= bound`` because of ``tasks`` (indices) on one ``resource`` (index)."""

    resource: int
    tasks: tuple[int, ...]
    bound: int
    objective: str = "makespan"


def one_machine_refusal(problem: Problem, certificate: OneMachine) -> str | None:
    """Why the certificate does not prove its bound; None where it does."""
    tasks, resource = certificate.tasks, certificate.resource
    if (why := objective_refusal(problem, certificate.objective, resource)) is not None:
        return why
    if not tasks or len(set(tasks)) != len(tasks):
        return "a one-machine certificate names each of its tasks once, and at least one"
    users = users_of(problem, resource)
    if foreign := set(tasks) - set(users.tolist()):
        return f"task {min(foreign)} does not occupy resource {resource}"
    if (paths := longest_paths(problem, certificate.objective, resource)) is None:
        return "the problem's precedences have a cycle"
    heads, tails = paths
    chosen = np.array(tasks)
    head, tail = min(heads[t] for t in tasks), min(tails[t] for t in tasks)
    if min(head, tail) < NO_PATH >> 1:
        return "some of the tasks are not between computations"
    least = head + int(problem.duration[chosen].sum()) + tail
    if certificate.objective == "span_idle":
        least -= int(problem.duration[users].sum())
    if least < certificate.bound:
        return f"the tasks do not prove a bound of {certificate.bound}"
    return None


def objective_refusal(problem: Problem, objective: str, resource: int) -> str | None:
    """Why there is no such claim about the problem.

    Parameters
    ----------
    objective
        ``makespan`` or ``span_idle``; anything else is refused.
    resource
        Of ``span_idle`` the rank that the claim is about.
    """
    if objective not in ("makespan", "span_idle"):
        return f"the objective must be makespan or span_idle, got {objective!r}"
    if objective == "span_idle" and not 0 <= resource < problem.num_ranks:
        return f"rank {resource} is none of the problem's {problem.num_ranks}"
    return None


def users_of(problem: Problem, resource: int) -> Ints:
    """The tasks that occupy the resource.

    Parameters
    ----------
    resource
        Its number.
    """
    found: Ints = problem.occupancy.task[problem.occupancy.resource == resource]
    return found


def longest_paths(
    problem: Problem, objective: str, resource: int
) -> tuple[list[int], list[int]] | None:
    """The head and the tail of each task; None where the edges have a cycle.

    Parameters
    ----------
    objective
        ``makespan``: paths begin and end at any computation; ``span_idle``: at one of
        ``resource``.
    resource
        The number of a rank.
    """
    counted = range(problem.num_ranks) if objective == "makespan" else (resource,)
    return paths_along(problem, sure_edges(problem, index_order(problem)), counted)


def paths_along(
    problem: Problem, edges: Edges, counted: Sequence[int]
) -> tuple[list[int], list[int]] | None:
    """The longest path to each task, and from its end, from and to tasks of resources ``counted``.

    None where the edges have a cycle.

    Parameters
    ----------
    edges
        Precedences that hold.
    counted
        Numbers of resources.
    """
    place = in_order(problem.num_tasks, edges.before.tolist(), edges.after.tolist())
    if len(place) < problem.num_tasks:
        return None
    at = np.argsort(place)
    by_before, by_after = np.argsort(at[edges.before]), np.argsort(-at[edges.after])
    inside = set(problem.occupancy.task[np.isin(problem.occupancy.resource, counted)].tolist())
    nothing = [0 if task in inside else NO_PATH for task in range(problem.num_tasks)]
    columns = edges.before, edges.after, edges.lag
    onward = zip(*(column[by_before].tolist() for column in columns), strict=True)
    columns = edges.after, edges.before, edges.lag
    back = zip(*(column[by_after].tolist() for column in columns), strict=True)
    ticks = problem.duration.tolist()
    return longest(onward, ticks, nothing), longest(back, ticks, nothing)


def longest(rows: Iterable[MachineTask], ticks: list[int], least: list[int]) -> list[int]:
    """The longest path to each task, whose edges come after all edges that lead to their origin.

    Parameters
    ----------
    ticks
        Of each task.
    least
        Of each task what a path has that begins with it: 0, or ``NO_PATH`` where none may.
    """
    found = least.copy()
    for before, after, lag in rows:
        found[after] = max(found[after], found[before] + ticks[before] + lag)
    return found
