"""Certificates by one resource and one store: what finds no room cannot be worked on.

Heads and tails (ticks) are those of ``verify.certificates.one_machine``. Let R be a resource and s
a store with a capacity. What may R have done before ``begin`` (an instant, in ticks after the first
computation)? Call ``early`` the sum of

- for each task of R that does not acquire in s when it starts: its duration, or ``begin`` less its
  head, if that is less (0, if the head is ``begin`` or more);
- the n largest of the same numbers among the tasks of R that do and whose head is below ``begin``,
  where n = (capacity - base + released) div a is how many of them there may be room for. Here a is
  the least that one of them acquires, and ``released`` all that leaves s at moments before
  ``begin``, a moment being the head of its task, and the duration more at its end.

Lemma 1. No schedule has done more than ``early`` of the work of R at ``begin``.
Proof. No task starts before its head, so of each at most that number is done. Let x tasks of R that
acquire in s have started before ``begin``, and look at the load after all changes of the instant t
at which the last of them starts. What was acquired by then is x a or more; what left s by then left
at a moment that no path puts at ``begin`` or later, for t is before it: ``released`` or less. So
base + x a - released <= capacity, and x <= n.

Time reversed, a schedule is one of the problem whose precedences are turned round, whose stores
begin with the load that is left at the end, and whose changes have the other sign at the other end
of their tasks; its loads are those of the schedule, of which the first, now the last, is no more
than the capacity. So lemma 1 says as well that R does no more than ``late`` in the last ``end``
ticks, with tails in place of heads.

Lemma 2. If work(R) > early + late, then

    makespan >= begin + end + work(R) - early - late.

Proof. Were the makespan less than begin + end, all work would be done before ``begin`` or in the
last ``end`` ticks, and be no more than early + late. So what is done in neither fills the
makespan - begin - end ticks between.

For ``span_idle`` R is a rank, time runs from its first start to its last end, and all its work is
taken off. With begin the least head of R and end its least tail, early and late are 0, and lemma 2
is the one-machine bound of all tasks of R.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.one_machine import (
    longest_paths,
    objective_refusal,
    users_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreChanges:
    """What a store has left in the beginning (units; None: no limit), and what each task changes in
    it at its start and at its end."""

    room: int | None
    at_start: list[int]
    at_end: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class OneStore:
    """Claims ``objective >= bound`` by ``resource`` and ``store`` (indices), see the module.

    ``begin`` and ``end`` are ticks after the first and before the last computation.
    """

    resource: int
    store: int
    begin: int
    end: int
    bound: int
    objective: str = "makespan"


def one_store_refusal(problem: Problem, certificate: OneStore) -> str | None:
    """Why the certificate does not prove its bound; None where it does."""
    resource, objective = certificate.resource, certificate.objective
    if (why := objective_refusal(problem, objective, resource)) is not None:
        return why
    if not 0 <= certificate.store < len(problem.stores):
        return f"store {certificate.store} is none of the problem's {len(problem.stores)}"
    if not len(users := users_of(problem, resource)):
        return f"no task occupies resource {resource}"
    if (paths := longest_paths(problem, objective, resource)) is None:
        return "the problem's precedences have a cycle"
    store, begin, end = certificate.store, certificate.begin, certificate.end
    done = most_done(changes(problem, store), problem, paths[0], users, begin)
    done += most_done(mirrored(problem, store), problem, paths[1], users, end)
    work = int(problem.duration[users].sum())
    if work <= done:
        return f"in {begin} and {end} ticks resource {resource} may do all its work"
    least = begin + end - done + (work if objective == "makespan" else 0)
    if least < certificate.bound:
        return f"the store does not prove a bound of {certificate.bound}"
    return None


def changes(problem: Problem, store: int) -> StoreChanges:
    """What the store holds and what changes that.

    Parameters
    ----------
    store
        Its number.
    """
    found, events = [[0] * problem.num_tasks, [0] * problem.num_tasks], problem.events
    rows = np.flatnonzero(events.store == store)
    columns = events.task[rows], events.at_end[rows], events.delta[rows]
    for task, at_end, delta in zip(*(column.tolist() for column in columns), strict=True):
        found[at_end][task] += delta
    home = problem.stores[store]
    return StoreChanges(
        room=None if home.capacity is None else home.capacity - home.base,
        at_start=found[0],
        at_end=found[1],
    )


def mirrored(problem: Problem, store: int) -> StoreChanges:
    """The same of the problem with time reversed.

    Parameters
    ----------
    store
        Its number.
    """
    given = changes(problem, store)
    left = sum(given.at_start) + sum(given.at_end)
    return StoreChanges(
        room=None if given.room is None else given.room - left,
        at_start=[-change for change in given.at_end],
        at_end=[-change for change in given.at_start],
    )


def most_done(
    store: StoreChanges, problem: Problem, heads: Sequence[int], users: Ints, begin: int
) -> int:
    """``early``, or of the mirrored problem, whose heads are tails, ``late`` (ticks).

    Parameters
    ----------
    heads
        Of each task the least start, in ticks.
    users
        The tasks of the resource.
    begin
        Ticks: what is done before is counted.
    """
    ticks: list[int] = problem.duration.tolist()
    free, taken, least = 0, list[int](), 0
    for task in users.tolist():
        if heads[task] >= begin:
            continue
        done, acquired = min(ticks[task], begin - heads[task]), store.at_start[task]
        if acquired <= 0 or store.room is None:
            free += done
        else:
            taken.append(done)
            least = min(least or acquired, acquired)
    if not taken or store.room is None:
        return free
    released = 0
    for task, head in enumerate(heads):
        for moment, change in (
            (head, store.at_start[task]),
            (head + ticks[task], store.at_end[task]),
        ):
            if change < 0 and moment < begin:
                released -= change
    most = max(0, (store.room + released) // least)
    return free + sum(sorted(taken, reverse=True)[:most])
