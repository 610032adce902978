"""Sizes that a file may ask for: refused before anything of that size is built.

The shape is measured by ``theory.pipelines.limits``, as that of a family is, and by what ``Action``
can number; the totals keep every sum of ticks or memory within what a file can tell exactly, far
within 64-bit integers.
"""

from __future__ import annotations

from bubbleproof.formats.errors import UnusableInput
from bubbleproof.theory.model.actions import MAX_SLICE, MAX_STAGE
from bubbleproof.theory.pipelines.limits import OversizeError, oversize
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.pipeline_statement import TICKS
from bubbleproof.theory.pipelines.stage_numbers import column

LARGEST = (1 << 53) - 1  # the largest that every JSON reader keeps exactly (RFC 7493, section 2.2)
LARGEST_TOTAL = LARGEST  # so that a schedule's times and loads can be written
LARGEST_BASE = LARGEST  # the sums of static memory pass through float64


class OversizeInput(UnusableInput, OversizeError):  # noqa: N818 - as its base
    """A file that asks for more than is taken."""


def refuse_oversize(*, ranks: int, microbatches: int, chunks: int = 1, slices: int = 1) -> None:
    """Raise ``OversizeInput`` for a shape beyond the limits of this module or of ``Action``."""
    shape = oversize(ranks=ranks, chunks=chunks, microbatches=microbatches, slices=slices)
    for name, limit, value in (
        *([] if shape is None else [shape]),
        ("stages", MAX_STAGE + 1, ranks * chunks),
        ("slices", MAX_SLICE + 1, slices),
    ):
        if value > limit:
            raise OversizeInput("", f"at most {limit} {name}", str(value))


def refuse_overflow(pipeline: Pipeline) -> None:
    """Raise ``OversizeInput`` where all ticks or all memory exceed what a file tells exactly."""
    columns = pipeline.per_stage
    actions = pipeline.num_microbatches * pipeline.num_slices
    latency = max([pipeline.latency, *(link.latency for link in pipeline.links)])
    rates = [pipeline.bandwidth, *(link.bandwidth for link in pipeline.links)]
    message = max(column(pipeline.message).tolist())
    latency += max((-(-message // rate) for rate in rates if rate), default=0)
    ticks = [getattr(pipeline.ticks, name) for name in TICKS]
    once = sum(sum(map(max, table.tolist())) for table in ticks) + 2 * pipeline.num_stages * latency
    held = sum(map(abs, columns.activation.tolist() + columns.released.tolist()))
    held += sum(map(sum, pipeline.workspace))
    for name, total, limit in (
        ("ticks", once * actions, LARGEST_TOTAL),
        ("memory units of activations", held * actions, LARGEST_TOTAL),
        ("memory units of static load", sum(columns.static.tolist()), LARGEST_BASE),
    ):
        if total > limit:
            raise OversizeInput("", f"at most {limit} {name} in total", str(total))
