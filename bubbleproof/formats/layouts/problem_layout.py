"""The layout of a hand-built ``Problem`` in a schedule file: tasks, resources, edges and memory.

Tasks are named by their text form, resources and stores by their names, so a file can be read
without counting rows:

- ``tasks``: ``["0F0", 2, ["rank 0"]]``, the duration in ticks, and every resource it occupies;
- ``edges``: ``["0F0", "1F0", 3]``: the second starts 3 ticks or more after the end of the first;
- ``events``: ``["0F0", "start", "memory of rank 0", 1]``: the load changes by 1 when 0F0 starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from bubbleproof.formats.action_text import action_texts, known_action, parse_actions
from bubbleproof.formats.errors import UnusableInput, quoted, values_at
from bubbleproof.formats.sizes import LARGEST, LARGEST_TOTAL
from bubbleproof.formats.validation import Json, Layout, Names, Natural, Whole, described
from bubbleproof.theory.model.actions import ActionTable, Ints
from bubbleproof.theory.model.problem import (
    Edges,
    MemoryEvents,
    Occupancy,
    Problem,
    Resource,
    Store,
)
from bubbleproof.theory.pipelines.limits import MAX_RANKS

TaskRow = Annotated[tuple[str, Natural, list[str]], Field(strict=False)]
EdgeRow = Annotated[tuple[str, str, Whole], Field(strict=False)]
EventRow = Annotated[tuple[str, Literal["start", "end"], str, Whole], Field(strict=False)]


class ResourceLayout(Layout):
    """A resource; ``rank`` stands exactly at a rank's compute stream."""

    MAKES = Resource

    name: str
    rank: Natural | None = None


class StoreLayout(Layout):
    """A memory, its base load and its capacity (none: unlimited)."""

    MAKES = Store

    name: str
    base: Natural = 0
    capacity: Whole | None = None


class ProblemLayout(Layout):
    """Tasks on resources, with precedences and memory."""

    unit: str = "tick"
    memory_unit: str = "unit"
    resources: list[ResourceLayout]
    tasks: list[TaskRow]
    edges: list[EdgeRow] = Field(default_factory=list)
    stores: list[StoreLayout] = Field(default_factory=list)
    events: list[EventRow] = Field(default_factory=list)


def problem_to_json(problem: Problem) -> Json:
    """The problem under the keys of the layout.

    Raises ``UnusableInput`` when two resources or stores share a name, or a number exceeds 2^53 -
    1.
    """
    index_names("resources", [r.name for r in problem.resources])
    index_names("stores", [s.name for s in problem.stores])
    edges, events = problem.edges, problem.events
    columns = (("durations", problem.duration), ("lags", edges.lag), ("events", events.delta))
    for name, column in columns:
        refuse_wide(name, column)
    texts, stores = action_texts(problem.actions), [store.name for store in problem.stores]
    occupied: list[list[str]] = [[] for _ in texts]
    pairs = zip(problem.occupancy.task.tolist(), problem.occupancy.resource.tolist(), strict=True)
    for task, resource in pairs:
        occupied[task].append(problem.resources[resource].name)
    return {
        "unit": problem.unit,
        "memory_unit": problem.memory_unit,
        "resources": [
            {"name": r.name} if r.rank is None else {"name": r.name, "rank": r.rank}
            for r in problem.resources
        ],
        "tasks": [
            list(row) for row in zip(texts, problem.duration.tolist(), occupied, strict=True)
        ],
        "edges": [
            [texts[before], texts[after], lag]
            for before, after, lag in _rows(edges.before, edges.after, edges.lag)
        ],
        "stores": [
            {"name": s.name, "base": s.base, "capacity": s.capacity} for s in problem.stores
        ],
        "events": [
            [texts[task], "end" if at_end else "start", stores[store], delta]
            for task, at_end, store, delta in _rows(
                events.task, events.at_end.astype(np.int64), events.store, events.delta
            )
        ],
    }


def problem_from_layout(layout: ProblemLayout) -> Problem:
    """The problem described.

    Raises ``UnusableInput`` for a name that is not there or stands twice.
    """
    index_names("problem.resources", [r.name for r in layout.resources])
    index_names("problem.stores", [s.name for s in layout.stores])
    ranks = sum(resource.rank is not None for resource in layout.resources)
    if ranks > MAX_RANKS:
        raise UnusableInput("problem.resources", f"at most {MAX_RANKS} ranks", str(ranks))
    actions = parse_actions(
        (row[0] for row in layout.tasks), lambda row: f"problem.tasks[{row}][0]"
    )
    resources = Names((r.name for r in layout.resources), "a resource of the problem")
    stores = Names((s.name for s in layout.stores), "a store of the problem")
    tasks = Names(map(str, actions), "a task of the problem")

    def task_column(table: str, position: int, texts: Iterable[str]) -> Ints:
        return _column(
            tasks.number(_canonical(text, tasks), "problem", table, row, position)
            for row, text in enumerate(texts)
        )

    occupancy = [
        (task, resources.number(name, "problem", "tasks", task, 2))
        for task, row in enumerate(layout.tasks)
        for name in row[2]
    ]
    _refuse_totals(layout)
    with values_at("problem"):
        return Problem(
            resources=described(layout.resources, "problem.resources"),
            actions=ActionTable.from_actions(actions),
            duration=_column(row[1] for row in layout.tasks),
            occupancy=Occupancy(
                task=_column(task for task, _ in occupancy),
                resource=_column(resource for _, resource in occupancy),
            ),
            edges=Edges(
                before=task_column("edges", 0, (row[0] for row in layout.edges)),
                after=task_column("edges", 1, (row[1] for row in layout.edges)),
                lag=_column(row[2] for row in layout.edges),
            ),
            stores=described(layout.stores, "problem.stores"),
            events=MemoryEvents(
                task=task_column("events", 0, (row[0] for row in layout.events)),
                at_end=np.array([row[1] == "end" for row in layout.events], dtype=bool),
                store=_column(
                    stores.number(row[2], "problem", "events", i, 2)
                    for i, row in enumerate(layout.events)
                ),
                delta=_column(row[3] for row in layout.events),
            ),
            unit=layout.unit,
            memory_unit=layout.memory_unit,
        )


def _canonical(text: str, tasks: Names) -> str:
    """The text of a task as we write it: ``0F0`` for ``0F0.0``."""
    if text in tasks.numbers or (action := known_action(text)) is None:
        return text
    return str(action)


def index_names(where: str, names: Sequence[str]) -> dict[str, int]:
    """The position of each name. Raises ``UnusableInput`` when one stands twice."""
    index: dict[str, int] = {}
    for position, name in enumerate(names):
        if index.setdefault(name, position) != position:
            raise UnusableInput(where, "names that differ", f"{quoted(name)} twice")
    return index


def refuse_wide(name: str, column: Ints) -> None:
    """Raise ``UnusableInput`` where a number is too large for JSON readers to keep exactly."""
    if len(column) and max(-int(column.min()), int(column.max())) > LARGEST:
        raise UnusableInput(name, f"whole numbers up to {LARGEST}", "a larger one")


def _refuse_totals(layout: ProblemLayout) -> None:
    lags = sum(abs(row[2]) for row in layout.edges)
    loads = sum(abs(s.base) for s in layout.stores) + sum(abs(row[3]) for row in layout.events)
    for name, total in (
        ("ticks", sum(row[1] for row in layout.tasks) + lags),
        ("memory units", loads),
    ):
        if total > LARGEST_TOTAL:
            expected = f"at most {LARGEST_TOTAL} {name} in total"
            raise UnusableInput("problem", expected, str(total))


def _column(values: Iterable[int]) -> Ints:
    return np.fromiter(values, dtype=np.int64)


def _rows(*columns: Ints) -> Iterable[tuple[int, ...]]:
    return zip(*(column.tolist() for column in columns), strict=True)
