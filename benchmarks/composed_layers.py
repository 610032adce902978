"""Milliseconds of a layer as rows of one stage tell them, without any model of times.

Rows whose iterations are composed from a measured step of their shape (hidden, tensor, micro-batch)
with L layers, m microbatches and d replicas in one stage take

    m (L layer + ends) + L step(d) + rest,

linear in five or more unknowns of the shape. A layer's time is told where it follows from the rows
by least squares whatever the others are: where its direction lies in the space of the rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from benchmarks.markdown import markdown_table
from bubbleproof.costs.times.calibration import Calibration
from bubbleproof.costs.times.job_rows import JobRow
from bubbleproof.costs.times.kernels import kernel_times
from bubbleproof.costs.times.work import work

TELLS = 1e-6  # of a unit vector: what may lie outside the space of the rows
Shape = tuple[str, int, int]


def told_layers(rows: Sequence[JobRow]) -> dict[Shape, float]:
    """Milliseconds of a layer by (model, tensor, micro-batch), where rows tell it."""
    shapes: dict[Shape, list[JobRow]] = defaultdict(list)
    for row in rows:
        if row.at.pipeline == 1:
            shapes[shape_of(row)].append(row)
    found = {shape: _told_layer(own) for shape, own in shapes.items()}
    return {shape: value for shape, value in found.items() if value is not None}


def shape_of(row: JobRow) -> Shape:
    """Model, tensor and micro-batch."""
    return row.model.name, row.at.tensor, row.at.micro_batch


def _told_layer(rows: Sequence[JobRow]) -> float | None:
    sizes = sorted({row.at.data for row in rows})
    columns = np.array(
        [
            (
                row.microbatches * row.model.layers,
                row.microbatches,
                *(row.model.layers * (row.at.data == size) for size in sizes),
                1,
            )
            for row in rows
        ],
        dtype=np.float64,
    )
    unit = np.eye(columns.shape[1])[0]
    inverse = np.linalg.pinv(columns)
    if np.abs(unit - inverse @ columns @ unit).max() > TELLS:
        return None
    return float((inverse @ np.array([row.measured_ms for row in rows]))[0])


def layers_table(rows: Sequence[JobRow], by: Calibration) -> str:
    """Told and estimated milliseconds of a layer, tensor sizes by micro-batches; empty if none."""
    own = [row for row in by.taken(rows) if row.gpus <= by.card.cards_per_node]
    told = told_layers(own)
    some = {shape_of(row): row for row in own}
    sizes = sorted({shape[2] for shape in told})
    lines = []
    for name, tensor in sorted({shape[:2] for shape in told}):
        cells = [
            f"{told[shape]:.2f} / {_estimated(some[shape], by):.2f}" if shape in told else ""
            for shape in ((name, tensor, size) for size in sizes)
        ]
        lines.append((name, tensor, *cells))
    header = ("model", "tensor", *(f"micro-batch {size}" for size in sizes))
    return markdown_table(header, lines) if lines else ""


def _estimated(row: JobRow, by: Calibration) -> float:
    constants = by.constants_of(by.card, row.runs)
    times = kernel_times(work(row.model, row.at, row.runs, by.card.cards_per_node), constants)
    return float(times.forward + times.backward)
