"""A user's pipeline as a published family would run it.

A family has a shape of its own: chunks per rank, a placement, a full or split backward. The
user's work is put into that shape rank by rank: what the stages of a rank take and hold together
is cut into the family's chunks as evenly as whole numbers allow (each W whole where the chunks
change). Nothing is lost or added; that the cut is even (an embedding may sit in one chunk alone) is
the assumption of the comparison.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bubbleproof.formats.errors import UnusableInput, quoted
from bubbleproof.theory.families import Family, families
from bubbleproof.theory.near_names import nearest_name
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.stage_numbers import column

CUT = (
    "forward",
    "backward",
    "input_backward",
    "weight_backward",
    "activation",
    "released_at_input",
    "static",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedFamily:
    """A family to compare with, and its chunks per rank (None: the family's default)."""

    family: str
    num_chunks: int | None = None

    @property
    def label(self) -> str:
        """As it is written in a problem file."""
        return self.family + ("" if self.num_chunks is None else f" v={self.num_chunks}")


def parse_comparison(where: str, text: str) -> ComparedFamily:
    """Read ``1f1b`` or ``interleaved v=2``.

    Raises ``UnusableInput`` for an unknown family or option.
    """
    name, _, option = text.partition(" ")
    known = families()
    if name not in known:
        close = nearest_name(name, known)
        hint = f"; did you mean {close!r}?" if close else ""
        raise UnusableInput(where, f"a family ({' '.join(known)})", quoted(name) + hint)
    if not option:
        return ComparedFamily(family=name)
    match = re.fullmatch(r"v=([1-9][0-9]{0,4})", option)
    if match is None or "v" not in known[name].options:
        takes = "v=<chunks> at most" if "v" in known[name].options else "no option"
        raise UnusableInput(where, f"{takes} after {name}", quoted(option))
    return ComparedFamily(family=name, num_chunks=int(match[1]))


def comparison_pipeline(
    pipeline: Pipeline, family: Family, *, num_chunks: int | None = None
) -> Pipeline:
    """The pipeline in the family's shape, the work of each rank unchanged.

    Precondition: where the family splits the backward, the ticks of I and W are known. Whether the
    family takes the result is for ``family.refusal`` to say.
    """
    chunks = num_chunks or max(family.default_chunks, 1)
    if chunks == pipeline.num_chunks:
        same = family.fitted(pipeline)
        if same.stage_ranks == pipeline.stage_ranks:
            return same
    old = pipeline.stage_ranks
    shape = Pipeline(num_ranks=pipeline.num_ranks, num_microbatches=1, num_chunks=chunks)
    new = shape.with_changes(placement=family.places(shape)).stage_ranks
    cut = {name: _cut_rows(getattr(pipeline, name), old, new, chunks) for name in CUT}
    plain: dict[str, object] = {
        "placement": "loop",
        "split_backward": False,
        "overlaps": (),
        "weight_parts": (),
        "weight_workspace": _workspace(pipeline, old, new),
        "message": max(column(pipeline.message).tolist()),  # no smaller where stages are cut
    }
    return family.fitted(pipeline.with_changes(num_chunks=chunks, **plain, **cut))


def _workspace(
    pipeline: Pipeline, old: Sequence[int], new: Sequence[int]
) -> tuple[tuple[int], ...]:
    """Of each new stage the largest of its rank: GEMMs do not shrink where stages are cut."""
    largest = [0] * pipeline.num_ranks
    for rank, row in zip(old, pipeline.workspace, strict=False):
        largest[rank] = max(largest[rank], *row)
    return tuple((largest[rank],) for rank in new)


def _cut_rows(
    values: Sequence[int] | Sequence[Sequence[int]],
    old: Sequence[int],
    new: Sequence[int],
    chunks: int,
) -> list[int] | list[list[int]]:
    """Numbers per stage, or rows per stage with a number per slice, each slice cut on its own."""
    table = np.asarray(values, dtype=object)
    if table.ndim == 1:
        return _cut(table.tolist(), old, new, chunks)
    slices = [_cut(column, old, new, chunks) for column in table.T.tolist()]
    return [list(row) for row in zip(*slices, strict=True)]


def _cut(values: Sequence[int], old: Sequence[int], new: Sequence[int], chunks: int) -> list[int]:
    """Values per new stage: each rank's total over its old stages, cut into its chunks."""
    totals = [0] * (max(old) + 1)
    for rank, value in zip(old, values, strict=True):
        totals[rank] += value
    seen = [0] * len(totals)
    result = []
    for rank in new:
        share, rest = divmod(totals[rank], chunks)
        result.append(share + (seen[rank] < rest))
        seen[rank] += 1
    return result
