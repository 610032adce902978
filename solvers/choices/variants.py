"""Variants of a problem: options that a solver may take or leave.

They are given by the *whole* problem, in which every option is taken, with a column per table that
tells which option a row belongs to (``NONE``: it is always there). An option only adds: tasks, the
precedences and memory events of those tasks, and memory events of tasks that are always there. So
each set of options stands for one concrete problem, the whole without the rows of the others;
``taken`` builds it. Of the options of one *clash* at most one may be taken.

What a schedule of any concrete problem must obey whatever was chosen is the ``floor``: the tasks
that are always there, with

- each store that no option touches;
- for stores between which options move load (``pools``), one store of their joint capacity: a
  transfer in flight counts on both, so moving never lowers the joint load. It is there only where
  what is always there never takes it below 0 (options might then be what keeps it above);
- where some option does lower it, and for any other store that options touch, nothing: they may
  make room, and they may bring what others release.

Hence a bound of the floor bounds every concrete problem. Of a pipeline's options the floor is
``verify.candidates.relaxation``, against which certificates are checked. It is that of the rows but
for options that move nothing: these touch no store.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from bubbleproof.solvers.memory_rules import lifetimes_of
from bubbleproof.solvers.part_of_problem import part_of
from bubbleproof.theory.model.actions import NONE, Ints
from bubbleproof.theory.model.problem import MemoryEvents, Problem


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

    ``clashes`` are sets of options of which at most one may be taken. ``relaxed`` is the floor
    where it is not derived from the rows; its tasks are those that are always there. Raises
    ``ValueError`` where a column does not fit its table, or an edge or event of an option's task
    belongs to no option.
    """

    whole: Problem
    options: tuple[Option, ...]
    task_option: Ints
    edge_option: Ints
    event_option: Ints
    clashes: tuple[tuple[int, ...], ...] = field(default=())
    relaxed: Problem | None = None

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

    def choices(self) -> Iterator[tuple[int, ...]]:
        """Every set of options that may be taken, 2**options at most."""
        for size in range(len(self.options) + 1):
            for chosen in combinations(range(len(self.options)), size):
                if all(len(set(clash) & set(chosen)) < 2 for clash in self.clashes):
                    yield chosen

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

    @cached_property
    def floor(self) -> Problem:
        """What holds whatever is chosen; see the module's text."""
        if self.relaxed is not None:
            return self.relaxed
        plain = self.plain
        stores, events = list(plain.stores), plain.events
        into = np.arange(len(stores))
        joint = {store for pool in self.safe_pools for store in pool}
        for number in self.touched:
            stores[number] = replace(stores[number], capacity=None)
            if number not in joint:
                into[number] = NONE
        for pool in self.safe_pools:
            whole = [plain.stores[store] for store in pool]
            stores[pool[0]] = replace(
                whole[0],
                name=" and ".join(store.name for store in whole),
                base=sum(store.base for store in whole),
                capacity=sum(store.capacity or 0 for store in whole),
            )
            into[list(pool)] = pool[0]
        kept = into[events.store] != NONE
        changes = MemoryEvents(
            task=events.task[kept],
            at_end=events.at_end[kept],
            store=into[events.store[kept]],
            delta=events.delta[kept],
        )
        return replace(plain, stores=tuple(stores), events=changes)
