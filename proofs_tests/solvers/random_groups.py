"""Small random problems of several groups of identical microbatches.

Each microbatch is of one of two or three sorts. A sort has its own durations, amounts of memory,
ranks, or lags, or it is without some task; which number is of which sort is drawn. Sometimes a task
of no microbatch (a STEP) waits for one task of each microbatch of a sort, or all of them for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random

from bubbleproof.theory.model.problem import Problem, Resource, Store
from proofs_tests.solvers.small import Task, by_hand

SHAPES = (
    (("0F", 0), ("0B", 0)),
    (("0F", 0), ("0B", 0)),
    (("0F", 0), ("0I", 0), ("0W", 0)),
    (("0F", 0), ("1F", 1), ("1B", 1), ("0B", 0)),
)
MOST_TASKS = 12
Change = tuple[str, bool, int, int]  # of which task, at its end?, store, delta


@dataclass(frozen=True, slots=True, kw_only=True)
class Sort:
    """What the microbatches of one sort are like: rows (name, ticks, rank), arcs and changes."""

    rows: tuple[tuple[str, int, int], ...]
    arcs: tuple[tuple[str, str, int], ...]
    changes: tuple[Change, ...]


def random_groups(rng: Random) -> Problem:
    """One problem of at most a dozen tasks."""
    shape = rng.choice(SHAPES)
    first = _sort(rng, shape)
    sorts = [first] + [_other(rng, first) for _ in range(rng.choice((1, 1, 2)))]
    m = MOST_TASKS // len(shape)
    of = sorts + [rng.choice(sorts) for _ in range(rng.randint(1, max(1, m - len(sorts))))]
    of = of[:m]
    rng.shuffle(of)
    tasks: list[Task] = []
    arcs: list[tuple[str, str, int]] = []
    events: list[tuple[str, bool, int, int]] = []
    for j, sort in enumerate(of):
        tasks += [(f"{name}{j}", ticks, (rank,)) for name, ticks, rank in sort.rows]
        arcs += [(f"{a}{j}", f"{b}{j}", lag) for a, b, lag in sort.arcs]
        events += [(f"{name}{j}", at_end, store, d) for name, at_end, store, d in sort.changes]
    if rng.random() < 0.2 and len(tasks) < MOST_TASKS:
        tasks.append(("0STEP", rng.randint(0, 2), (0,)))
        name, is_last, chosen = sorts[0].rows[-1][0], rng.random() < 0.6, rng.choice(sorts)
        for j, sort in enumerate(of):
            if sort is chosen:
                arcs.append((f"{name}{j}", "0STEP", 0) if is_last else ("0STEP", f"0F{j}", 0))
    rng.shuffle(tasks)
    ranks = [Resource(name=f"rank {r}", rank=r) for r in range(2)]
    return by_hand(tasks, arcs, resources=ranks, stores=_stores(rng, sorts), events=events)


def _stores(rng: Random, sorts: list[Sort]) -> list[Store]:
    """Two stores that take any one change, most often, and seldom much more."""
    most = [
        max([0, *(d for sort in sorts for _, _, at, d in sort.changes if at == store)])
        for store in range(2)
    ]
    return [
        Store(name=f"store {number}", capacity=max(0, least + rng.choice((-1, 0, 0, 1, 2, 3))))
        for number, least in enumerate(most)
    ]


def _sort(rng: Random, shape: tuple[tuple[str, int], ...]) -> Sort:
    names = [name for name, _ in shape]
    changes = list[Change]()
    for name, rank in shape:
        if name.endswith("F"):
            amount, last = rng.randint(0, 2), names[-1 - int(name[0])]
            part = rng.randint(0, amount) if "0I" in names else 0
            changes += [(name, False, rank, amount), (last, True, rank, part - amount)]
            changes += [("0I", True, rank, -part)] if part else []
    if rng.random() < 0.15:
        changes.append((rng.choice(names), True, rng.randint(0, 1), rng.choice((1, -1))))
    return Sort(
        rows=tuple((name, rng.choice((0, 0, 1, 1, 2, 3)), rank) for name, rank in shape),
        arcs=tuple((a, b, rng.choice((0, 0, 0, 1, 3, -1))) for a, b in pairwise(names)),
        changes=tuple(changes),
    )


def _other(rng: Random, sort: Sort) -> Sort:
    """Another sort: different in one thing, or in several."""
    found = sort
    while found == sort:
        if rng.random() < 0.4:
            longer = tuple((name, rng.choice((0, 1, 2, 3)), rank) for name, _, rank in sort.rows)
            found = replace(found, rows=longer)
        if rng.random() < 0.3:
            more = rng.choice((2, 2, 3))
            found = replace(found, changes=tuple((*c[:3], more * c[3]) for c in found.changes))
        if rng.random() < 0.3:  # the other direction: its stages, and their memory, on other ranks
            found = replace(
                found,
                rows=tuple((name, ticks, 1 - rank) for name, ticks, rank in found.rows),
                changes=tuple((n, end, 1 - store, d) for n, end, store, d in found.changes),
            )
        if rng.random() < 0.2:
            found = replace(found, arcs=tuple((a, b, lag + 1) for a, b, lag in found.arcs))
    return found
