"""The nearest memory in which a candidate fits: that of one microbatch at a time.

Whatever the number of microbatches, a candidate that has room for one at a time has a schedule, one
microbatch after the other. So the least peak of its pipeline with a single microbatch, with nothing
chosen or with every stage recomputed that may be, is a memory that works.
"""

from __future__ import annotations

from dataclasses import replace

from bubbleproof.solvers import SolveOptions, solve
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.shapes.shaping import ShapedPipeline

MOST = 1.0  # seconds, or units of work, for each pipeline; it has one microbatch


def least_capacity(given: ShapedPipeline, how: SolveOptions) -> int | None:
    """Memory units per rank in which the candidate has a schedule; None where none was found."""
    again = None if given.allowed is None else given.allowed.recompute
    plain = _one_microbatch(given.pipeline)
    tried = [plain]
    if again is not None:
        recompute = Recompute(stages=again.stages, kept=again.kept, duration=again.duration)
        tried.append(plain.with_changes(recompute=recompute))
    how = replace(how.at_most(MOST), objective="peak", within=None, threads=1)
    peaks = [solve(pipeline.problem(), how).peak for pipeline in tried]
    return min((peak for peak in peaks if peak is not None), default=None)


def _one_microbatch(pipeline: Pipeline) -> Pipeline:
    """The pipeline with one microbatch (one each way where it runs both ways), memory unlimited."""
    number = min(2, pipeline.num_microbatches) if pipeline.is_bidirectional else 1
    split = pipeline.split_backward
    if not isinstance(split, bool):
        split = tuple(row[:number] for row in split)
    return pipeline.with_changes(num_microbatches=number, split_backward=split, capacity=None)
