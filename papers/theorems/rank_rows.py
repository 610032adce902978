"""Rows: what ranks run of one kind and chunk, by starts in closed form, for all numbers of ranks.

A ``TaskRow`` has one task per place j = 0 to m-1 on every rank i; a family is a few rows. What
makes their starts a schedule is said here once, for every family of such rows:

- *one at a time*: within a row starts grow by its ticks or more; of any two tasks of different rows
  of a rank, one starts after the other ends;
- *memory*: when a task that acquires starts, so many tasks of each row have started and so many
  have ended; what is then held is at most the peak, and equals it at one place.

What a task waits for differs between families, and is said in their modules (``waits_for``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

from bubbleproof.papers.theorems.closed_form import AT_J, AT_K, I, J, K, M
from bubbleproof.papers.theorems.terms import LogicFormula, Term, all_of, any_of, implies, index
from bubbleproof.papers.theorems.theorem import ObligationPart


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """Tasks j = 0 to m-1 of each rank i: the start of one, and its ticks or its end."""

    name: str
    start: Callable[[Term, Term], Term]
    ticks: int = 1
    ends: Callable[[Term, Term], Term] | None = None

    def end(self, rank: Term, place: Term) -> Term:
        """When the task has ended, or given back what it holds."""
        given = self.ends
        return self.start(rank, place) + self.ticks if given is None else given(rank, place)


def one_at_a_time(rows: Sequence[TaskRow]) -> list[ObligationPart]:
    """No two tasks of rank I overlap."""
    later, any_two = (*AT_J, *AT_K, K >= J + 1), (*AT_J, *AT_K)
    parts: list[ObligationPart] = [
        (f"{row.name} in index order", later, row.start(I, K) >= row.end(I, J)) for row in rows
    ]
    for one, other in combinations(rows, 2):
        before, after = other.start(I, K) >= one.end(I, J), one.start(I, J) >= other.end(I, K)
        parts.append((f"{one.name} and {other.name} one at a time", any_two, any_of(before, after)))
    return parts


def same_order(keys: Sequence[TaskRow], rows: Sequence[TaskRow]) -> list[ObligationPart]:
    """The rows run in the order of the keys: of two tasks the one of the lower key ends first."""
    parts: list[ObligationPart] = []
    for key, row in zip(keys, rows, strict=True):
        for other_key, other in zip(keys, rows, strict=True):
            is_before = key.start(I, J) < other_key.start(I, K)
            goal = other.start(I, K) >= row.end(I, J)
            name = f"{row.name} before {other.name} in the order"
            parts.append((name, (*AT_J, *AT_K, is_before), goal))
    starts = all_of(*(row.start(I, J) >= 0 for row in rows))
    return [*parts, ("no start before 0", AT_J, starts)]


def waits_for(
    what: str,
    task: TaskRow,
    given: tuple[TaskRow, Term],
    *premises: LogicFormula,
    place: Term = J,
) -> ObligationPart:
    """Task J of rank I starts when that of the given row, on another rank, has ended."""
    row, rank = given
    return (
        f"{task.name} after {what}",
        (*AT_J, *premises),
        task.start(I, J) >= row.end(rank, place),
    )


def unit_bound(
    head: Term, work: Term, makespan: Term, tail: Term | None = None
) -> list[ObligationPart]:
    """Any schedule of tasks of one tick: where a rank begins at ``head``, has ``work`` ticks to do
    and ``tail`` ticks of other ranks behind its last task, it ends no earlier than ``makespan``.
    """
    begun, end, done, hop = (index(name) for name in ("any_here", "any_end", "done", "g"))
    parts: list[ObligationPart] = [
        ("head: a rank later is a tick later", (hop >= 0, begun >= hop), begun + 1 >= hop + 1),
        (
            "busy: one more task is a tick later",
            (done >= 0, begun >= head + done),
            begun + 1 >= head + done + 1,
        ),
    ]
    if tail is None:
        return [*parts, ("no schedule ends earlier", (begun >= head + work,), begun >= makespan)]
    up = (hop >= 0, begun + hop <= end)
    whole = (begun >= head + work, begun + tail <= end)
    return [
        *parts,
        ("tail: a rank earlier ends a tick later", up, begun + 1 + hop <= end + 1),
        ("head, busy time and tail add up", whole, makespan <= end),
    ]


def _passed(
    count: Term, moment: Callable[[Term, Term], Term], now: Term
) -> tuple[LogicFormula, ...]:
    """``count`` of the moments of a row of rank I are not later than ``now``."""
    return (
        count >= 0,
        count <= M,
        implies(count >= 1, moment(I, count - 1) <= now),
        implies(count <= M - 1, moment(I, count) > now),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMemory:
    """Rows whose starts acquire a unit each, rows whose ends release one, and the most held."""

    acquiring: tuple[TaskRow, ...]
    releasing: tuple[TaskRow, ...]
    most: Term
    premises: tuple[LogicFormula, ...] = ()

    def held(self, row: TaskRow) -> tuple[tuple[LogicFormula, ...], Term]:
        """What holds when task J of ``row`` starts, and the units held then, its own among them."""
        now, premises = row.start(I, J), [*AT_J, *self.premises]
        units = J + 1
        for other in self.acquiring:
            if other is not row:
                count = index(f"started_{other.name}")
                premises += _passed(count, other.start, now)
                units = units + count
        for other in self.releasing:
            count = index(f"ended_{other.name}")
            premises += _passed(count, other.end, now)
            units = units - count
        return tuple(premises), units

    def never_above(self) -> list[ObligationPart]:
        """The peak is kept at every start."""
        found: list[ObligationPart] = []
        for row in self.acquiring:
            premises, units = self.held(row)
            name = f"{row.name}: live activations never exceed the peak"
            found.append((name, premises, units <= self.most))
        return found

    def reached(self, row: TaskRow, place: Term, *where: LogicFormula) -> list[ObligationPart]:
        """It is reached when task ``place`` of ``row`` starts, which exists."""
        premises, units = self.held(row)
        at = (I >= 0, *(where or self.premises))
        return [
            ("the peak is reached", (*premises, *where, J.equals(place)), units.equals(self.most)),
            (
                "the peak is reached at a task that exists",
                at,
                all_of(place >= 0, place <= M - 1),
            ),
        ]
