"""A PyTorch table as a schedule: its pipeline is inferred, and its starts are the earliest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

from bubbleproof.formats.errors import about
from bubbleproof.formats.inference import infer_pipeline
from bubbleproof.formats.pytorch_csv import read_table, refuse_cut_off
from bubbleproof.formats.schedule_file import ScheduleFile
from bubbleproof.theory.pipelines.timing import UntimedProgram, left_shift
from bubbleproof.verify.communication.matching import compute_part


def read_timed_table(path: str, dialect: Literal["new", "old"] | None = None) -> ScheduleFile:
    """The schedule of a table, left-shifted, with the pipeline that it seems to be of."""
    table = read_table(path, dialect=dialect)
    compute = compute_part(table.program) if table.has_communication else table.program
    pipeline = infer_pipeline(compute, subject=path)
    problem = pipeline.problem()
    with about(path):
        refuse_cut_off(table, problem)
    name = Path(path).stem
    return timed(
        ScheduleFile(
            problem=problem,
            program=table.program,
            pipeline=pipeline,
            name=name,
            collectives=table.collectives,
        )
    )


def timed(given: ScheduleFile) -> ScheduleFile:
    """The file with left-shifted starts, or without any where its program has none."""
    try:
        schedule = left_shift(given.problem, given.compute)
    except UntimedProgram:
        return replace(given, schedule=None)
    return replace(given, schedule=schedule, claims=schedule.claims)
