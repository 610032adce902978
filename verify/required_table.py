"""A table of requirements: tasks, waits and changes of loads by the text of actions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from bubbleproof.theory.model.actions import Bools, Ints
from bubbleproof.theory.model.problem import Problem

RequiredChange = tuple[str, str, str]  # task, "start" or "end", store


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredTable:
    """Tasks with their ticks and resources, waits (before, after, lag), changes of loads, stores.

    Changes of one moment are added up. ``stores`` gives base load and capacity by name.
    """

    tasks: dict[str, tuple[int, frozenset[str]]] = field(default_factory=dict)
    waits: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    changes: Counter[RequiredChange] = field(default_factory=Counter)
    stores: dict[str, tuple[int, int | None]] = field(default_factory=dict)

    def task(self, name: str, ticks: int, *homes: str) -> None:
        """A task is required, on these resources.

        Parameters
        ----------
        name
            The text of its action.
        ticks
            Its duration.
        *homes
            Names of resources.
        """
        self.tasks[name] = ticks, frozenset(homes)

    def wait(self, before: str, after: str, lag: int = 0) -> None:
        """A precedence is required, once for each time that it is told.

        Parameters
        ----------
        before, after
            Texts of actions.
        lag
            Ticks between the end of the one and the start of the other.
        """
        self.waits[before, after, lag] += 1

    def change(self, task: str, moment: str, store: str, delta: int) -> None:
        """A change of a store is required; those of one task, moment and store add up.

        Parameters
        ----------
        task
            The text of its action.
        moment
            ``start`` or ``end``.
        store
            The store's name.
        delta
            Units of memory.
        """
        self.changes[task, moment, store] += delta


def action_name(stage: int, kind: str, microbatch: int | None, part: int = 0) -> str:
    """The text of an action; a slice 0 is not written.

    Parameters
    ----------
    stage
        The stage's number.
    kind
        The name of a kind of action.
    microbatch
        None for a stage's own action.
    part
        The slice; 0 is not written.
    """
    number = "" if microbatch is None else microbatch
    return f"{stage}{kind}{number}{f'.{part}' if part else ''}"


def stated(problem: Problem, microbatches: Sequence[int] | None = None) -> RequiredTable:
    """What a problem says, read row by row; of these microbatches alone where they are told.

    Parameters
    ----------
    microbatches
        None for all; no precedence goes from one of them to another that is not among them.
    """
    is_told = np.ones(problem.num_tasks, dtype=bool)
    if microbatches is not None:
        is_told = np.isin(problem.actions.microbatch, microbatches)
    name = {t: str(problem.actions[t]) for t in np.flatnonzero(is_told).tolist()}
    homes: dict[str, set[str]] = {task: set() for task in name.values()}
    used, edges, events = problem.occupancy, problem.edges, problem.events
    for t, resource in _rows(is_told[used.task], used.task, used.resource):
        homes[name[t]].add(problem.resources[resource].name)
    changes: Counter[RequiredChange] = Counter()
    for t, at_end, store, delta in _rows(
        is_told[events.task], events.task, events.at_end, events.store, events.delta
    ):
        where = problem.stores[store].name
        changes[name[t], "end" if at_end else "start", where] += delta
    waits = _rows(is_told[edges.before], edges.before, edges.after, edges.lag)
    return RequiredTable(
        tasks={
            task: (int(problem.duration[t]), frozenset(homes[task])) for t, task in name.items()
        },
        waits=Counter((name[before], name[after], lag) for before, after, lag in waits),
        changes=changes,
        stores={store.name: (store.base, store.capacity) for store in problem.stores},
    )


def _rows(told: Bools, *columns: Ints | Bools) -> Iterator[tuple[int, ...]]:
    return zip(*(column[told].tolist() for column in columns), strict=True)
