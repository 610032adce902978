"""Memory as the engines meet it: for each store the cheapest exact form of "never too full".

- A store whose capacity the memory edges of ``verify.certificates.index_order`` say completely
needs nothing.
- *Clauses*: a lone lifecycle of one (stage, slice) and one group, acquired by F and given back in
  parts at the ends of I and W. When F_j starts, load = (j+1) a - b #I - (a-b) #W, and both counts
  grow in index order, so the capacity is a set of clauses "I_i has ended or W_w has ended by the
  start of F_j".
- *Lifetimes*: the load is a sum of lifetimes, each from the start of one task to the end of a later
  one: a cumulative.
- *Watched*: anything else, change by change, from below as well as from above.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.index_order import IndexOrder

FINE = 1 << 16  # of a unit's parts, where amounts are told in larger ones
LoadChange = tuple[int, bool, int]  # task, at its end?, delta
Sample = tuple[int, int, int]  # stage, microbatch, slice


@dataclass(frozen=True, slots=True)
class ReleaseClause:
    """By the start of task ``later``, at least one of the tasks ``either`` has ended."""

    later: int
    either: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Lifetime:
    """``amount`` units from the start of task ``first`` to the end of task ``last``."""

    first: int
    last: int
    amount: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitedStore:
    """A store whose load above its base is the sum of ``lifetimes``, ``room`` units at most."""

    store: int
    room: int
    lifetimes: tuple[Lifetime, ...]

    def coarse(self, times: int) -> LimitedStore:
        """In units so large that amounts times ticks are no overflow.

        Amounts that have no common divisor are rounded up, and the room down: what fits then, fits.

        Parameters
        ----------
        times
            How often each lifetime comes, at most.
        """
        amounts = [life.amount for life in self.lifetimes]
        most, unit = max(amounts, default=0), 1
        if most > FINE:
            common = math.gcd(*amounts)
            unit = common if most <= FINE * common else -(-most // FINE)
        return replace(
            self,
            room=min(self.room, sum(amounts) * times) // unit,
            lifetimes=tuple(replace(h, amount=-(-h.amount // unit)) for h in self.lifetimes),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRules:
    """What the memory of a problem asks beyond the memory edges."""

    clauses: tuple[ReleaseClause, ...]
    held: tuple[LimitedStore, ...]
    watched: tuple[int, ...]


def exact_stores(order: IndexOrder) -> frozenset[int]:
    """Stores whose capacity the memory edges express completely.

    Lemma 3 (the others: ``verify.certificates.index_order``). If a lone (stage, slice) of a lone
    group uses the store, with two moments only (so a = h), these edges are the memory constraint,
    no more and no less. Proof. The load rises only when a first task starts. At such an instant let
    j be the last microbatch to have begun: the edges leave at most K open, and base + K a <=
    capacity.
    """
    uses, events = Counter(life.store for life in order.lifecycles), order.problem.events
    moments = np.unique(np.stack([events.store, events.task, events.at_end]), axis=1)[0]
    return frozenset(
        life.store
        for life in order.lifecycles
        if uses[life.store] == 1
        and (moments == life.store).sum() == 2 * len(order.row_of[life.first])
    )


def memory_rules(problem: Problem, order: IndexOrder) -> MemoryRules:
    """The form of each store; ``order`` is that of the problem."""
    exact = exact_stores(order)
    behind: dict[int, set[int]] | None = None
    clauses: list[ReleaseClause] = []
    held: list[LimitedStore] = []
    watched: list[int] = []
    for number, store in enumerate(problem.stores):
        if number in exact:
            continue
        if (steps := _release_clauses(problem, order, number)) is not None:
            clauses += steps
            continue
        behind = behind or behind_within_stage(problem)
        if (lifetimes := lifetimes_of(problem, number, behind)) is not None:
            if store.capacity is not None:
                held.append(
                    LimitedStore(
                        store=number, room=store.capacity - store.base, lifetimes=lifetimes
                    )
                )
        else:
            watched.append(number)
    return MemoryRules(clauses=tuple(clauses), held=tuple(held), watched=tuple(watched))


def _release_clauses(problem: Problem, order: IndexOrder, store: int) -> list[ReleaseClause] | None:
    """The store as clauses, or None where it has another shape."""
    capacity, base = problem.stores[store].capacity, problem.stores[store].base
    if capacity is None or len([life for life in order.lifecycles if life.store == store]) != 1:
        return None
    chain = order.chains[store][0]  # of microbatch 0
    moments = [moment for moment, _ in chain]
    if len(chain) != 3 or [at_end for _, at_end in moments] != [False, True, True]:
        return None
    whole, left, rest = (level for _, level in chain)
    tasks = [task for task, _ in moments]
    if len(set(tasks)) != 3 or not whole > left > rest == 0:
        return None
    first, middle, last = (order.row_of[task].tolist() for task in tasks)
    return list(_steps(first, middle, last, whole, whole - left, capacity - base))


def _steps(
    first: list[int], middle: list[int], last: list[int], whole: int, part: int, room: int
) -> Iterator[ReleaseClause]:
    """The clauses of one lifecycle; ``first[j]``, ``middle[j]``, ``last[j]`` are F_j, I_j, W_j."""
    rest = whole - part
    for j, later in enumerate(first):
        # needs[i]: how many W must have ended where only i of the I have.
        needs = [-(-((j + 1) * whole - part * i - room) // rest) for i in range(j + 1)]
        for i, (need, following) in enumerate(pairwise(needs)):
            if need > max(following, 0) and not following > i + 1:
                yield ReleaseClause(
                    later, (middle[i],) if need > i else (middle[i], last[need - 1])
                )
        if needs[j] > j:
            yield ReleaseClause(later, ())
        elif needs[j] > 0:
            yield ReleaseClause(later, (last[needs[j] - 1],))


def memory_groups(problem: Problem) -> Iterator[tuple[int, tuple[int, ...]]]:
    """(store, tasks) of everything that is kept, as a whole, in a store with a capacity.

    One group per (stage, microbatch, slice) where the store is lifetimes, else one for each
    store.
    """
    events = problem.events
    for number, store in enumerate(problem.stores):
        tasks = np.unique(events.task[(events.store == number) & (events.delta != 0)]).tolist()
        if store.capacity is None or not tasks:
            continue
        if lifetimes_of(problem, number) is None:
            yield number, tuple(tasks)
            continue
        groups: dict[Sample, list[int]] = {}
        for task in tasks:
            groups.setdefault(sample_of(problem, task), []).append(task)
        for group in groups.values():
            yield number, tuple(group)


def sample_of(problem: Problem, task: int) -> Sample:
    """The stage, microbatch and slice of a task.

    Parameters
    ----------
    task
        The task's index.
    """
    actions = problem.actions
    return int(actions.stage[task]), int(actions.microbatch[task]), int(actions.slice[task])


def lifetimes_of(
    problem: Problem, store: int, behind: dict[int, set[int]] | None = None
) -> tuple[Lifetime, ...] | None:
    """The store's changes paired into lifetimes, or None where some have no partner.

    Changes are grouped by (stage, microbatch, slice) and each group put in the order that direct
    precedences within it force; what is taken at a start is given back at a later end, oldest
    first. ``behind`` is that of ``behind_within_stage``, for who asks about several stores.

    Parameters
    ----------
    store
        The store's index.
    behind
        As ``behind_within_stage`` gives it, for who asks about several stores.
    """
    events = problem.events
    groups: dict[Sample, list[LoadChange]] = {}
    for row in np.flatnonzero((events.store == store) & (events.delta != 0)).tolist():
        task = int(events.task[row])
        change = task, bool(events.at_end[row]), int(events.delta[row])
        groups.setdefault(sample_of(problem, task), []).append(change)
    behind = behind or behind_within_stage(problem)
    lifetimes: list[Lifetime] = []
    for changes in groups.values():
        if (paired := paired_lifetimes(changes, behind)) is None:
            return None
        lifetimes += paired
    return tuple(lifetimes)


def paired_lifetimes(
    changes: Collection[LoadChange],
    behind: Mapping[int, Collection[int]],
    *,
    newest_first: bool = False,
) -> list[Lifetime] | None:
    """The changes of one group as lifetimes, or None where some have no partner.

    ``behind[task]`` are the tasks that start after it ends; they must put the group in one order.

    Parameters
    ----------
    changes
        (task, whether at its end, units) of one group.
    behind
        For each task those that start after it ends.
    newest_first
        Whether what was taken last is given back first; else what was taken first.
    """
    tasks = {task for task, _, _ in changes}
    place = {task: sum(task in behind.get(other, ()) for other in tasks) for task in tasks}
    if sorted(place.values()) != list(range(len(tasks))):
        return None  # no chain
    begun: deque[tuple[int, int]] = deque()
    lifetimes = []
    for task, at_end, delta in sorted(changes, key=lambda change: (place[change[0]], change[1])):
        if (delta > 0) == at_end:
            return None
        if delta > 0:
            begun.append((task, delta))
        while delta < 0:
            if not begun:
                return None
            first, held = begun.pop() if newest_first else begun.popleft()
            amount = min(held, -delta)
            lifetimes.append(Lifetime(first, task, amount))
            if held > amount:
                (begun.append if newest_first else begun.appendleft)((first, held - amount))
            delta += amount
    return None if begun else lifetimes


def behind_within_stage(problem: Problem) -> dict[int, set[int]]:
    """For each task those of its stage, microbatch and slice that must start after its end."""
    edges, actions = problem.edges, problem.actions
    inside = edges.lag >= 0
    for column in (actions.stage, actions.microbatch, actions.slice):
        inside &= column[edges.before] == column[edges.after]
    after: dict[int, list[int]] = {}
    for before, later in zip(
        edges.before[inside].tolist(), edges.after[inside].tolist(), strict=True
    ):
        after.setdefault(before, []).append(later)
    reach: dict[int, set[int]] = {}

    def visit(task: int) -> set[int]:
        if task not in reach:
            reach[task] = set()  # a cycle ends here; the bounds report it
            found = after.get(task, [])
            reach[task] = set(found).union(*(visit(later) for later in found))
        return reach[task]

    for task in after:
        visit(task)
    return reach
