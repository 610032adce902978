"""Iterations of many rows under many sets of constants at once, for a fit.

An iteration is counts of a longest path (``critical_paths``) times durations (``kernels``), plus
the step at its end: what ``iteration`` finds from the schedule, in the order of a millisecond for
all rows. A set of constants is a column of shape (sets, 1); rows lie along the second axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from bubbleproof.costs.times.critical_paths import Path, graph, longest_path
from bubbleproof.costs.times.iteration import stage_times, steps_of
from bubbleproof.costs.times.job_rows import JobRow
from bubbleproof.costs.times.kernels import KernelTimes, kernel_times
from bubbleproof.costs.times.step_work import Step, stacked, step_times
from bubbleproof.costs.times.work import Floats, MicrobatchWork, work

MESSAGE_FLOOR = 1e-6  # ms: what the schedule's whole nanosecond comes to


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JobColumns:
    """Rows as columns: their work, the steps of their ranks, [rank, row], and a chunk's layers."""

    rows: tuple[JobRow, ...]
    work: MicrobatchWork
    steps: Step
    layers: Floats
    chunks: Floats


def prepared(rows: Sequence[JobRow], cards_per_node: int) -> JobColumns:
    """What is the same under all constants.

    Parameters
    ----------
    cards_per_node
        Cards that share a node's links.

    Raises
    ------
    ValueError
        For rows of models with several kinds of layer.
    """
    for row in rows:
        if row.model.dense_layers:
            raise ValueError(
                f"row {row.number}: dense_layers must be 0 in rows that are fitted, got "
                f"{row.model.dense_layers}; leave it out, it can be estimated"
            )
    works = [work(row.model, row.at, row.runs, cards_per_node) for row in rows]
    steps = [steps_of(row.model, row.at, row.runs, cards_per_node) for row in rows]
    most = max(len(each) for each in steps)
    filled = [[each[min(stage, len(each) - 1)] for each in steps] for stage in range(most)]
    columns: dict[str, Floats] = {
        field.name: np.array(
            [[getattr(each, field.name) for each in line] for line in filled], dtype=np.float64
        )
        for field in fields(Step)
    }
    return JobColumns(
        rows=tuple(rows),
        work=stacked(works),
        steps=Step(**columns),
        layers=np.array([row.model.layers / (row.at.pipeline * row.chunks) for row in rows]),
        chunks=np.array([float(row.chunks) for row in rows]),
    )


def paths(of: JobColumns, constants: Mapping[str, float]) -> list[Path]:
    """The longest path of each row.

    Parameters
    ----------
    constants
        A value for each of the model's constants, by name.
    """
    times = kernel_times(of.work, constants)
    steps = step_times(of.steps, constants, _beside(of, times))
    return [_path(of, number, times, steps[:, number]) for number in range(len(of.rows))]


def _beside(of: JobColumns, times: KernelTimes) -> Floats:
    """A microbatch's forward and backward through a rank's layers."""
    return np.asarray(of.layers * of.chunks * (times.forward + times.backward))


def _path(of: JobColumns, number: int, times: KernelTimes, steps: Floats) -> Path:
    row = of.rows[number]
    ranks, count = row.at.pipeline, row.microbatches
    if ranks == 1:
        return Path(
            forwards=count,
            backwards=count,
            first_forwards=count,
            first_backwards=count,
            last_forwards=count,
            last_backwards=count,
            messages=0,
            ends_at=0,
        )
    one = _of_row(times, number)
    stages = ranks * row.chunks
    forward, backward = stage_times(one, [[(one, row.model.layers // stages)]] * stages)
    return longest_path(
        graph(ranks, count, row.chunks),
        [float(value) for value in forward],
        [float(value) for value in backward],
        float(times.message[number] + times.latency),
        steps[:ranks].tolist(),
    )[1]


def _of_row(times: KernelTimes, number: int) -> KernelTimes:
    values = {field.name: getattr(times, field.name) for field in fields(KernelTimes)}
    return KernelTimes(**{n: np.asarray(v[number] if v.ndim else v) for n, v in values.items()})


def predicted(of: JobColumns, along: Sequence[Path], constants: Mapping[str, Floats]) -> Floats:
    """Milliseconds of each row along its path, [set, row]; at most the makespan's.

    Parameters
    ----------
    constants
        For each constant by name its values, a row for each set of constants.
    """
    counts = {
        field.name: np.array([getattr(path, field.name) for path in along], dtype=np.float64)
        for field in fields(Path)
    }
    times = kernel_times(of.work, constants)
    rows = np.arange(len(of.rows))
    ends_at = counts["ends_at"].astype(np.int64)
    last = Step(**{f.name: getattr(of.steps, f.name)[ends_at, rows] for f in fields(Step)})
    ends = (counts["first_forwards"] + counts["first_backwards"]) * times.embedding_each_way
    ends = ends + (counts["last_forwards"] + 2 * counts["last_backwards"]) * times.head_each_pass
    layers = counts["forwards"] * times.forward + counts["backwards"] * times.backward
    return np.asarray(
        of.layers * layers
        + ends
        + counts["messages"] * (times.message + times.latency)
        + step_times(last, constants, _beside(of, times))
        + constants["iteration"]
    )
