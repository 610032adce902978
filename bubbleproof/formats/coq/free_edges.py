"""Groups of identical microbatches and what they do to stores, in the words of ``proofs/``.

``proofs/FreeEdges.v`` checks that edges may be asked for beside a problem's own. It is told the
groups as lists of classes, and of each lifecycle the classes that it begins and finishes with, its
stops, and by which paths of precedences these are forced (``verify.certificates.index_order``).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from bubbleproof.formats.coq.coq_words import list_text, task_text
from bubbleproof.theory.model.actions import Bools
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.chains import Chain, in_order
from bubbleproof.verify.certificates.index_order import IndexOrder, index_order

Row = tuple[int, ...]  # a class: its tasks by microbatch


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeStop:
    """A change of ``delta`` units when a task of ``row`` starts or ends, forced by a path.

    ``via`` are the classes on the path from the stop before.
    """

    via: tuple[Row, ...]
    row: Row
    at_end: bool
    delta: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What each microbatch of a group does to a ``store`` (index)."""

    store: int
    begins: Row
    acquired: int
    stops: tuple[LifeStop, ...]  # the last of them is where it finishes


def groups_of(problem: Problem) -> list[list[Row]]:
    """The groups of the problem, as lists of classes."""
    return [[tuple(row) for row in group.tolist()] for group in index_order(problem).groups]


def lives_of(problem: Problem, *, every_chain: bool = False) -> list[Life]:
    """The lifecycles of all groups; with ``every_chain`` also what gives all back in between."""
    order = index_order(problem)
    found, stores = list[Life](), set[int]()
    for life in order.lifecycles:
        chain = next(each for each in order.chains[life.store] if each[0][0][0] == life.first)
        found.append(_life(problem, order, life.store, chain))
        stores.add(life.store)
    for store, chains in order.chains.items() if every_chain else ():
        if store not in stores and all(_is_use(problem, chain) for chain in chains):
            named = [chain for chain in chains if chain[0][0][0] in order.row_of]
            found += [_life(problem, order, store, chain) for chain in named]
    return found


def _is_use(problem: Problem, chain: Chain) -> bool:
    """Whether it begins with a start, later than which all else happens, and ends with an end."""
    (first, begins_late), (_, ends_late) = chain[0][0], chain[-1][0]
    is_whole = len(chain) > 1 and ends_late and not begins_late
    return is_whole and min(level for _, level in chain) >= 0 and problem.duration[first] > 0


def _life(problem: Problem, order: IndexOrder, store: int, chain: Chain) -> Life:
    """A stop for each moment of its chain; changes of one moment are one, that of their sum."""
    first = chain[0][0][0]
    row_of = {task: tuple(row.tolist()) for task, row in order.row_of.items()}
    actions = problem.actions
    columns = actions.stage, actions.slice, actions.microbatch
    alike = np.logical_and.reduce([column == column[first] for column in columns])
    before, stops = first, list[LifeStop]()
    for (_, held), ((task, at_end), level) in pairwise(chain):
        via = tuple(row_of[each] for each in path_between(problem, before, task, alike))
        stops.append(LifeStop(via=via, row=row_of[task], at_end=at_end, delta=level - held))
        before = task
    return Life(
        store=store,
        begins=row_of[first],
        acquired=chain[0][1],
        stops=tuple(stops),
    )


def ways_of(problem: Problem, store: int) -> list[list[Row]]:
    """Of each lifecycle of a store the classes on the longest path from its begin to its end."""
    order, microbatch = index_order(problem), problem.actions.microbatch
    row_of = {task: tuple(row.tolist()) for task, row in order.row_of.items()}
    lives = [life for life in order.lifecycles if life.store == store]
    return [
        [
            row_of[task]
            for task in path_between(
                problem, life.first, life.last, microbatch == microbatch[life.first]
            )
        ]
        for life in lives
    ]


def path_between(problem: Problem, first: int, later: int, alike: Bools) -> list[int]:
    """The tasks on the longest path between two, through such as are ``alike`` alone."""
    edges = problem.edges
    inside = alike[edges.before] & alike[edges.after]
    rows = np.stack([edges.before, edges.after, edges.lag], axis=1)[inside].tolist()
    before, after = [row[0] for row in rows], [row[1] for row in rows]
    place = {task: at for at, task in enumerate(in_order(problem.num_tasks, before, after))}
    path: dict[int, tuple[int, int]] = {first: (0, first)}  # ticks, and the task before
    for task, behind, lag in sorted(rows, key=lambda row: place[row[0]]):
        if task in path:
            ticks = path[task][0] + int(problem.duration[task]) + lag
            if behind not in path or ticks > path[behind][0]:
                path[behind] = ticks, task
    found, at = list[int](), later
    while at != first and at in path:
        at = path[at][1]
        found.append(at)
    return found[-2::-1] if found else []


def groups_text(problem: Problem) -> str:
    """The groups as a list."""
    return ";\n  ".join(list_text(map(_row, group)) for group in groups_of(problem))


def lives_text(problem: Problem, *, every_chain: bool = False) -> str:
    """The lifecycles as a list."""
    return ";\n  ".join(map(_life_text, lives_of(problem, every_chain=every_chain)))


def _life_text(life: Life) -> str:
    *middle, last = life.stops
    stops = (
        f"Stop {list_text(map(_row, stop.via))} {_row(stop.row)} "
        f"{'true' if stop.at_end else 'false'} ({stop.delta})"
        for stop in middle
    )
    return (
        f"Life {life.store}%nat {_row(life.begins)} ({life.acquired}) {list_text(stops)} "
        f"{_row(last.row)} {list_text(map(_row, last.via))} ({last.delta})"
    )


def _row(row: Row) -> str:
    return list_text(map(task_text, row))


def ways_text(problem: Problem, store: int) -> str:
    """The ways through a store's lifecycles as a list."""
    return list_text(list_text(map(_row, way)) for way in ways_of(problem, store))
