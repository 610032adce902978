"""Variants of a problem: options that a solver may take or leave.

They are given by the *whole* problem, in which every option is taken, with a column per table that
tells which option a row belongs to (``NONE``: it is always there). An option only adds: tasks, the
precedences and memory events of those tasks, and memory events of tasks that are always there. So
each set of options stands for one concrete problem, the whole without the rows of the others;
``taken`` builds it. Of the options of one *clash* at most one may be taken.

What a schedule of any concrete problem must obey whatever was chosen is the ``floor``, a problem of
the tasks that are always there: a bound of it bounds every concrete problem. Of a pipeline's
options it is ``verify.candidates.relaxation``, against which certificates are checked. Between the
stores of a *pool* options move load: a transfer in flight counts on both, so that moving never
lowers their joint load.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from bubbleproof.solvers.memory_rules import lifetimes_of
from bubbleproof.solvers.part_of_problem import part_of
from bubbleproof.theory.model.actions import NONE, Ints
from bubbleproof.theory.model.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """Something that may be done: ``what`` to a stage, for one microbatch or (``NONE``) for all."""

    what: str
    stage: int
    microbatch: int = NONE
    slice: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Variants:
    """A whole problem and the option of each of its tasks, edges and events (``NONE``: always).

    ``clashes`` are sets of options of which at most one may be taken. ``floor`` has the tasks that
    are always there. Raises ``ValueError`` where a column does not fit its table, or an edge or
    event of an option's task belongs to no option.
    """

    whole: Problem
    options: tuple[Option, ...]
    task_option: Ints
    edge_option: Ints
    event_option: Ints
    floor: Problem
    clashes: tuple[tuple[int, ...], ...] = field(default=())

    def __post_init__(self) -> None:
        problem = self.whole
        for name, column, rows in (
            ("task_option", self.task_option, problem.num_tasks),
            ("edge_option", self.edge_option, len(problem.edges)),
            ("event_option", self.event_option, len(problem.events)),
        ):
            if len(column) != rows:
                raise ValueError(f"{name} must have {rows} rows, got {len(column)}")
            if rows and not (column.min() >= NONE and column.max() < len(self.options)):
                raise ValueError(f"{name} must lie in {NONE}..{len(self.options) - 1}")
        edges, events = problem.edges, problem.events
        for name, column, owner in (
            ("edge", self.edge_option, self.task_option[edges.before]),
            ("edge", self.edge_option, self.task_option[edges.after]),
            ("event", self.event_option, self.task_option[events.task]),
        ):
            lost = (owner != NONE) & (owner != column)
            if lost.any():
                row = int(np.argmax(lost))
                raise ValueError(f"{name} {row} belongs to a task of option {owner[row]}")

    def taken(self, options: Collection[int]) -> Problem:
        """The concrete problem in which exactly these options are taken.

        Parameters
        ----------
        options
            Places of options in ``options``.

        Raises
        ------
        ValueError
            For two options that clash.
        """
        for clash in self.clashes:
            if len(both := sorted(set(clash) & set(options))) > 1:
                names = " and ".join(str(self.options[option]) for option in both)
                raise ValueError(f"these options exclude each other: {names}")
        kept = np.append(np.zeros(len(self.options), dtype=np.bool_), True)  # NONE: the last place
        kept[list(options)] = True
        return part_of(
            self.whole, kept[self.task_option], kept[self.edge_option], kept[self.event_option]
        )

    def family_of(self, option: int) -> Option | None:
        """What the option has in common with its like for other microbatches; None for NONE.

        Parameters
        ----------
        option
            The option's place in ``options``, or ``NONE``.
        """
        return None if option == NONE else replace(self.options[option], microbatch=NONE)

    @cached_property
    def plain(self) -> Problem:
        """The concrete problem in which nothing is taken."""
        return self.taken(())

    @cached_property
    def touched(self) -> frozenset[int]:
        """The stores whose load depends on what is taken."""
        return frozenset(self.whole.events.store[self.event_option != NONE].tolist())

    @cached_property
    def pools(self) -> tuple[tuple[int, ...], ...]:
        """Sets of stores with a capacity that tasks of options join."""
        events, stores = self.whole.events, self.whole.stores
        group = list(range(len(stores)))
        by_task: dict[int, set[int]] = {}
        for task, store in zip(events.task.tolist(), events.store.tolist(), strict=True):
            if self.task_option[task] != NONE:
                by_task.setdefault(task, set()).add(store)
        for joined in by_task.values():
            names = {group[store] for store in joined}
            group = [min(names) if name in names else name for name in group]
        pools = [
            tuple(store for store, name in enumerate(group) if name == leader)
            for leader in dict.fromkeys(group)
        ]
        return tuple(
            pool
            for pool in pools
            if len(pool) > 1 and all(stores[store].capacity is not None for store in pool)
        )

    @cached_property
    def safe_pools(self) -> tuple[tuple[int, ...], ...]:
        """The pools whose joint load no option ever lowers, and nothing else takes below 0."""
        return tuple(pool for pool in self.pools if self._is_safe(pool) and self._is_held(pool))

    def _is_held(self, pool: tuple[int, ...]) -> bool:
        """Whether the joint load of what is always there is a sum of lifetimes."""
        events = self.plain.events
        into = np.where(np.isin(events.store, pool), pool[0], events.store)
        joint = replace(self.plain, events=replace(events, store=into))
        return lifetimes_of(joint, pool[0]) is not None

    def _is_safe(self, pool: tuple[int, ...]) -> bool:
        """Whether each option's tasks change the joint load by themselves, and never below 0."""
        events, option = self.whole.events, self.event_option
        rows = np.isin(events.store, pool) & (option != NONE)
        if (self.task_option[events.task[rows]] == NONE).any():
            return False
        for task in np.unique(events.task[rows]).tolist():
            own = rows & (events.task == task)
            begins = int(events.delta[own & ~events.at_end].sum())
            if begins < 0 or begins + int(events.delta[own & events.at_end].sum()) != 0:
                return False
        return True
