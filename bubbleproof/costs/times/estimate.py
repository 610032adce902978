"""Estimates of rows: the iteration's milliseconds, and the bytes of the fullest card."""

from __future__ import annotations

from collections.abc import Sequence

from bubbleproof.costs.times.calibration import Calibration
from bubbleproof.costs.times.iteration import IterationPlan, iteration_plan
from bubbleproof.costs.times.rows import Row

GIB = 2**30


def row_plan(row: Row, by: Calibration) -> IterationPlan:
    """The iteration of a row whose scope is settled (``Calibration.taken``)."""
    return iteration_plan(
        row.model,
        row.at,
        microbatches=row.microbatches,
        runs=row.runs,
        constants=by.constants,
        cards_per_node=by.card.cards_per_node,
    )


def estimated_ms(rows: Sequence[Row], by: Calibration) -> list[float]:
    """The iterations of rows, each the makespan of its schedule."""
    return [row_plan(row, by).milliseconds() for row in by.taken(rows)]
