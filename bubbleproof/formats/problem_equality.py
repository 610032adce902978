"""Whether two problems are the same, column by column."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from bubbleproof.theory.model.actions import ActionTable
from bubbleproof.theory.model.problem import Edges, MemoryEvents, Occupancy, Problem

Table = ActionTable | Occupancy | Edges | MemoryEvents


def is_same_problem(one: Problem, other: Problem) -> bool:
    """Whether two problems have the same tasks, resources, edges and memory, in the same order."""
    return (
        (one.resources, one.stores) == (other.resources, other.stores)
        and (one.unit, one.memory_unit) == (other.unit, other.memory_unit)
        and np.array_equal(one.duration, other.duration)
        and _is_same_table(one.actions, other.actions)
        and _is_same_table(one.occupancy, other.occupancy)
        and _is_same_table(one.edges, other.edges)
        and _is_same_table(one.events, other.events)
    )


def _is_same_table(one: Table, other: Table) -> bool:
    return all(
        np.array_equal(getattr(one, column.name), getattr(other, column.name))
        for column in fields(one)
    )
