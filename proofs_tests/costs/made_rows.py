"""Rows of many shapes that nobody measured, and constants that are not the data sheet's."""

from __future__ import annotations

from dataclasses import replace

from bubbleproof.costs.times.calibration import Calibration, uncalibrated
from bubbleproof.costs.times.card_files import card
from bubbleproof.costs.times.estimation import estimated_ms
from bubbleproof.costs.times.job_rows import JobRow, rows_of

CARD = card("a100-80gb")
HEAD = "gpus,global_batch,micro_batch,hidden,heads,layers,sequence,tensor,data,pipeline,scope"


def made_rows(scope: str = "none") -> list[JobRow]:
    """Rows of one node of many shapes, measured by nobody."""
    lines = [
        f"{t * d * p},{8 * d * b},{b},{hidden},16,16,1024,{t},{d},{p},{scope}"
        for hidden in (1024, 2048, 4096)
        for b in (1, 4, 8)
        for t, d, p in ((1, 1, 1), (2, 1, 1), (4, 1, 2), (8, 1, 1), (1, 2, 4), (2, 4, 1))
    ]
    return rows_of("\n".join([HEAD, *lines]), measured=False)


def made_by(rows: list[JobRow], by: Calibration) -> list[JobRow]:
    """The rows as if these constants had been measured."""
    times = estimated_ms(rows, by)
    return [replace(row, measured=time) for row, time in zip(rows, times, strict=True)]


def off_the_sheet() -> Calibration:
    """Constants off the data sheet."""
    begun = uncalibrated(CARD)
    changes = {
        "matmul": 0.8,
        "attention": 0.8,
        "memory": 1.15,
        "launch": 1.7,
        "group": 0.7,
        "kernels": 1.8,
    }
    values = {name: changes.get(name, 1.0) * value for name, value in begun.constants.items()}
    return replace(begun, constants=values)
