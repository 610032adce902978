"""Problems: what has to be done, by what, after what, within which memory.

A ``Problem`` is a set of tasks. Each task is an action with a duration in ticks and occupies one or
more *unary* resources (a rank's compute stream, a link, a NIC, a copy engine) from its start to its
end. Precedences say ``start(after) >= end(before) + lag``. Memory is a set of stores, each with a
base load and perhaps a capacity; a memory event changes a store's load by ``delta`` when a task
starts or ends. Every system of the papers is tasks on resources with memory events, so the checker
knows no special case. ``Pipeline`` builds the ordinary ones; any other may be built by hand:

>>> work = ActionTable.from_actions([Action.parse("0F0"), Action.parse("0B0")])
>>> tiny = Problem(
...     resources=(Resource(name="rank 0", rank=0),),
...     actions=work,
...     duration=np.array([1, 2]),
...     occupancy=Occupancy(task=np.array([0, 1]), resource=np.array([0, 0])),
...     edges=Edges(before=np.array([0]), after=np.array([1]), lag=np.array([0])),
... )
>>> tiny.num_tasks, tiny.num_ranks
(2, 1)
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from bubbleproof.theory.model.actions import NONE, Action, ActionTable, Bools, Ints


def _empty() -> Ints:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A thing that does one task at a time; ``rank`` is set exactly for a rank's compute stream."""

    name: str
    rank: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """A memory: its load before the first task, and the load it must never exceed (if any).

    Raises ``ValueError`` for a base load below 0.
    """

    name: str
    base: int = 0
    capacity: int | None = None

    def __post_init__(self) -> None:
        if self.base < 0:
            raise ValueError(f"base load of {self.name} must be 0 or more, got {self.base}")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Occupancy:
    """Which task occupies which resource: one row per pair, ordered by task."""

    task: Ints
    resource: Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Edges:
    """Precedences: ``start(after) >= end(before) + lag``, one row each, lags in ticks."""

    before: Ints = field(default_factory=_empty)
    after: Ints = field(default_factory=_empty)
    lag: Ints = field(default_factory=_empty)

    def __len__(self) -> int:
        return len(self.before)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MemoryEvents:
    """Changes of load: ``store += delta`` when ``task`` starts (or, where ``at_end``, ends)."""

    task: Ints = field(default_factory=_empty)
    at_end: Bools = field(default_factory=lambda: np.zeros(0, dtype=bool))
    store: Ints = field(default_factory=_empty)
    delta: Ints = field(default_factory=_empty)

    def __len__(self) -> int:
        return len(self.task)


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """Tasks on unary resources, with precedences and memory.

    ``actions[t]`` and ``duration[t]`` (ticks) describe task ``t``; ``unit`` names one tick and
    ``memory_unit`` one unit of load. Compute resources carry the ranks 0..p-1, in order, first.
    Raises ``ValueError`` when a column points outside the problem or two tasks are the same action.
    """

    resources: tuple[Resource, ...]
    actions: ActionTable
    duration: Ints
    occupancy: Occupancy
    edges: Edges = field(default_factory=Edges)
    stores: tuple[Store, ...] = ()
    events: MemoryEvents = field(default_factory=MemoryEvents)
    unit: str = "tick"
    memory_unit: str = "unit"

    def __post_init__(self) -> None:
        ranks = [r.rank for r in self.resources if r.rank is not None]
        if ranks != list(range(len(ranks))) or len(ranks) < 1:
            raise ValueError(f"compute resources must carry ranks 0, 1, ... in order, got {ranks}")
        if any(r.rank is None for r in self.resources[: len(ranks)]):
            raise ValueError("compute resources must come before links, NICs and copy engines")
        self.actions.require_actions()
        if len(self.duration) != self.num_tasks:
            raise ValueError(f"{self.num_tasks} tasks but {len(self.duration)} durations")
        if (self.duration < 0).any():
            worst = int(np.argmin(self.duration))
            raise ValueError(
                f"duration of {self.label(worst)} must be 0 or more, got {self.duration[worst]}"
            )
        self._check_pointers()
        self._check_sizes()
        keys, order = self._sorted
        if (keys[1:] == keys[:-1]).any():
            twice = int(order[np.flatnonzero(keys[1:] == keys[:-1])[0]])
            raise ValueError(f"task {self.label(twice)} stands twice in the problem")

    def __repr__(self) -> str:
        return (
            f"<Problem: {self.num_tasks} tasks on {self.num_ranks} ranks, {len(self.edges)} "
            f"precedences, {len(self.stores)} stores, unit {self.unit}>"
        )

    def _check_pointers(self) -> None:
        tasks, resources, stores = self.num_tasks, len(self.resources), len(self.stores)
        for name, column, limit in (
            ("occupancy.task", self.occupancy.task, tasks),
            ("occupancy.resource", self.occupancy.resource, resources),
            ("edges.before", self.edges.before, tasks),
            ("edges.after", self.edges.after, tasks),
            ("events.task", self.events.task, tasks),
            ("events.store", self.events.store, stores),
        ):
            if len(column) and not (column.min() >= 0 and column.max() < limit):
                raise ValueError(f"{name} must lie in 0..{limit - 1}, got {column.max()}")
        if (np.diff(self.occupancy.task) < 0).any():
            raise ValueError("occupancy must be ordered by task")
        needed = np.bincount(self.occupancy.task, minlength=tasks)
        if not needed.all():
            raise ValueError(f"task {self.label(int(np.argmin(needed)))} occupies no resource")

    def _check_sizes(self) -> None:
        """Sums of times and of loads must stay far from the end of int64, where they would wrap."""
        bases = [float(store.base) for store in self.stores]
        for names, unit, columns in (
            ("durations and lags", "ticks", (self.duration, self.edges.lag)),
            ("base loads and changes", "units", (bases, self.events.delta)),
        ):
            total = sum(float(np.sum(np.abs(column), dtype=float)) for column in columns)
            if total >= 1 << 60:
                raise ValueError(
                    f"{names} must add up to less than 2**60 {unit}, got about {total:.3g}"
                )

    @property
    def num_tasks(self) -> int:
        return len(self.actions)

    @cached_property
    def num_ranks(self) -> int:
        return sum(r.rank is not None for r in self.resources)

    @cached_property
    def _sorted(self) -> tuple[Ints, Ints]:
        """The tasks' keys in ascending order, and the task of each."""
        keys = self.actions.keys()
        order = np.argsort(keys, kind="stable")
        return keys[order], order

    def locate(self, actions: ActionTable) -> Ints:
        """The task of each action, or ``NONE`` where the problem has none such. Shape: (rows,)."""
        keys, order = self._sorted
        wanted = actions.keys()
        if not len(keys):
            return np.full(len(actions), NONE)
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        task = np.where(keys[at] == wanted, order[at], NONE)
        same = (actions.partner_stage == self.actions.partner_stage[task]) & (
            actions.partner_microbatch == self.actions.partner_microbatch[task]
        )
        return np.where(same, task, NONE)

    @cached_property
    def rank_of_task(self) -> Ints:
        """The rank whose compute stream each task occupies, ``NONE`` for a pure transfer."""
        rank = np.full(self.num_tasks, NONE)
        compute = self.occupancy.resource < self.num_ranks
        rank[self.occupancy.task[compute]] = self.occupancy.resource[compute]
        return rank

    @cached_property
    def stage_to_rank(self) -> dict[int, int]:
        """Where each stage's compute tasks run; a stage on two ranks (replicated) is not listed."""
        stages, rank = (self.actions.stage, self.actions.partner_stage), self.rank_of_task.tolist()
        pairs = {pair for stage in stages for pair in zip(stage.tolist(), rank, strict=True)}
        count = Counter(stage for stage, rank in pairs if rank != NONE)
        return {g: r for g, r in sorted(pairs) if NONE not in (g, r) and count[g] == 1}

    def label(self, task: int) -> str:
        """The text form of a task.

        Parameters
        ----------
        task
            The task's index.

        Returns
        -------
        str
            Such as ``3F7``; a slice is written out where any task has one.
        """
        return self.actions.label(task)

    def ticks(self, task: Ints) -> Ints:
        """The duration of each of the tasks, 0 for ``NONE``.

        Parameters
        ----------
        task
            Indices of tasks, each of which may be ``NONE``.

        Returns
        -------
        Ints
            Ticks, in the shape of ``task``.
        """
        return np.append(self.duration, 0)[task]  # ``NONE`` is the last place

    def resource_name(self, resource: int) -> str:
        """The name of a resource, also of one that only a program names.

        Parameters
        ----------
        resource
            The resource's index, 0 or more.
        """
        if resource < len(self.resources):
            return self.resources[resource].name
        return f"resource {resource} (not in the problem)"

    def task(self, text: str) -> int:
        """The index of the task written ``text``; raises ``KeyError`` where there is none.

        Parameters
        ----------
        text
            Such as ``3F7``, in the form that ``Action.parse`` reads.

        Raises
        ------
        KeyError
            Where no task is written so.
        ValueError
            For what is no action's text.
        """
        found = int(self.locate(ActionTable.from_actions([Action.parse(text)]))[0])
        if found == NONE:
            raise KeyError(text)
        return found

    def with_capacity(self, capacity: int | None) -> Problem:
        """The same problem with every store's capacity set to ``capacity``.

        Parameters
        ----------
        capacity
            In units of memory; None for no limit.
        """
        stores = tuple(replace(store, capacity=capacity) for store in self.stores)
        return replace(self, stores=stores)
