"""What the models of open choices have in common: limits, windows, anchors, and their answers.

``choices_engine`` gives the search with one of the models; CP-SAT is loaded when it is first asked
for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import Literal, Protocol

import numpy as np

from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.choices.choices_symmetry import Symmetry
from bubbleproof.solvers.choices.variants import Variants
from bubbleproof.solvers.engines.engine import Budget
from bubbleproof.theory.model.actions import NONE, Ints
from bubbleproof.theory.model.problem import Edges
from bubbleproof.theory.pipelines.timing import earliest_starts


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a model of open choices found and claims.

    ``start`` (ticks per task of the whole problem; meaningless for options left) and ``taken`` are
    None unless a schedule was found. No schedule of the model is shorter than ``bound``;
    ``is_refuted``: there is none within the limit.
    """

    start: Ints | None = None
    taken: tuple[int, ...] | None = None
    bound: int = 0
    is_refuted: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Frame:
    """What all models share: the variants, the limit, and windows of what is always there.

    ``limit`` (ticks) is the longest makespan of interest. ``always[t]`` is the task of the whole
    problem that is task t of the floor.
    """

    variants: Variants
    limit: int
    order: Symmetry
    least: int = 0
    fixed: tuple[tuple[int, ...], ...] = field(default=())

    @property
    def always(self) -> Ints:
        return np.flatnonzero(self.variants.task_option == NONE)

    def windows(self) -> tuple[Ints, Ints, Edges]:
        """Heads and tails (ticks) of the tasks of the floor, over the edges that hold there."""
        floor = self.variants.floor
        if self.order is Symmetry.ALL:
            bounds = lower_bounds(floor)
            if not bounds.is_cyclic:
                return bounds.heads, bounds.tails, bounds.edges
        edges = floor.edges
        columns = floor.duration, edges.before, edges.after, edges.lag
        heads = earliest_starts(*columns)
        tails = earliest_starts(columns[0], columns[2], columns[1], columns[3])
        if heads is None or tails is None:
            raise ValueError("the precedences of the problem have a cycle")
        return heads, tails, edges


class ChoicesEngine(Protocol):
    """A search with one of the models."""

    def __call__(self, frame: Frame, budget: Budget) -> Choice: ...


def choices_engine(name: Literal["choices", "anonymous"]) -> ChoicesEngine:
    """The search with the model of ``cpsat_choices`` or of ``cpsat_anonymous``."""
    found: ChoicesEngine = import_module(f"bubbleproof.solvers.engines.cpsat_{name}").search
    return found


def is_anchored(variants: Variants) -> bool:
    """Whether the first and the last task of every choice are computations that are always there.

    So it is where each other task has such a one before and after it, without a negative lag.
    """
    whole, option = variants.whole, variants.task_option
    free = (option != NONE) | (whole.rank_of_task == NONE)
    edges, of_edge = whole.edges, variants.edge_option
    for one, other in ((edges.before, edges.after), (edges.after, edges.before)):
        safe = (edges.lag >= 0) & ((of_edge == NONE) | (of_edge == option[other]))
        held = ~free
        while (found := other[safe & held[one] & ~held[other]]).size:
            held[found] = True
        if not held.all():
            return False
    return True
