"""The layout of a ``Pipeline`` in a schedule file: one key per field, named as the field.

Per-stage fields are a number or a list with one number per stage; they are written as lists, the
way a ``Pipeline`` keeps them, so that a pipeline reads back equal. Ticks may also be rows with one
number per slice, and ``weight_parts`` and ``weight_workspace`` (left out where there is none) hold
rows with one number per part of W (see ``theory.pipelines.stage_numbers``). Overlapped pairs are
written in text form, ``["0F7", "7B3"]``.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Literal

from pydantic import Field

from bubbleproof.formats.action_text import parse_action
from bubbleproof.formats.errors import UnusableInput, quoted, values_at
from bubbleproof.formats.sizes import refuse_overflow, refuse_oversize
from bubbleproof.formats.validation import Count, Layout, Natural, Whole
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.pipelines.overlaps import Overlap
from bubbleproof.theory.pipelines.pipeline import Link, Pipeline

PerStage = Natural | list[Natural]
Rows = list[list[Natural]]
Pair = Annotated[tuple[str, str], Field(strict=False)]
RankPair = Annotated[tuple[Natural, Natural], Field(strict=False)]
Json = dict[str, object]


class LinkLayout(Layout):
    """The latency between two ranks, in both directions."""

    ranks: RankPair
    latency: Natural


class PipelineLayout(Layout):
    """A training step by its shape; absent keys take the defaults of ``Pipeline``."""

    num_ranks: Count
    num_microbatches: Count
    num_chunks: Count = 1
    num_slices: Count = 1
    placement: Literal["loop", "wave", "bidirectional"] | list[Natural] = "loop"
    split_backward: bool | list[list[bool]] = False
    forward: PerStage | Rows = 1
    backward: PerStage | Rows = 2
    input_backward: PerStage | Rows = 1
    weight_backward: PerStage | Rows = 1
    weight_parts: list[Natural] | Rows = Field(default_factory=list)
    latency: Natural = 0
    links: list[LinkLayout] = Field(default_factory=list)
    activation: PerStage = 1
    released_at_input: Whole | list[Whole] = 0
    weight_workspace: Natural | list[Natural] | Rows = Field(default_factory=list)
    static: PerStage = 0
    capacity: Natural | list[Natural | None] | None = None
    overlaps: list[Pair] = Field(default_factory=list)
    unit: str = "tick"
    memory_unit: str = "activation"


def pipeline_to_json(pipeline: Pipeline) -> Json:
    """Every field of the pipeline under its own name."""
    data = {field.name: _plain(getattr(pipeline, field.name)) for field in fields(pipeline)}
    if not pipeline.workspace:
        del data["weight_workspace"]  # readers of older versions do not know it
    data["links"] = [
        {"ranks": list(link.ranks), "latency": link.latency} for link in pipeline.links
    ]
    data["overlaps"] = [[f"{f}F{i}", f"{b}B{j}"] for (f, i), (b, j) in pipeline.overlaps]
    return data


def pipeline_from_layout(layout: PipelineLayout) -> Pipeline:
    """The pipeline described. Raises ``UnusableInput`` where its fields do not fit together."""
    refuse_oversize(
        ranks=layout.num_ranks,
        microbatches=layout.num_microbatches,
        chunks=layout.num_chunks,
        slices=layout.num_slices,
    )
    values = {name: _frozen(getattr(layout, name)) for name in PipelineLayout.model_fields}
    values["links"] = tuple(Link(ranks=link.ranks, latency=link.latency) for link in layout.links)
    values["overlaps"] = tuple(
        _overlap(f"pipeline.overlaps[{row}]", pair) for row, pair in enumerate(layout.overlaps)
    )
    with values_at("pipeline"):
        pipeline = Pipeline(**values)  # type: ignore[arg-type]  # the layout has checked each field
    refuse_overflow(pipeline)
    return pipeline


def _overlap(where: str, pair: tuple[str, str]) -> Overlap:
    forward, backward = (parse_action(f"{where}[{side}]", text) for side, text in enumerate(pair))
    if (forward.kind, backward.kind) != (Kind.F, Kind.B) or forward.slice or backward.slice:
        raise UnusableInput(where, "an F and a B action", quoted(" ".join(pair)))
    return (forward.stage, forward.microbatch), (backward.stage, backward.microbatch)


def _plain(value: object) -> object:
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _frozen(value: object) -> object:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
