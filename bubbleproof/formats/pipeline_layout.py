"""The layout of a ``Pipeline`` in a schedule file: one key per field, named as the field.

Per-stage fields are a number or a list with one number per stage; they are written as lists, the
way a ``Pipeline`` keeps them, so that a pipeline reads back equal. Ticks may also be rows with one
number per slice, and ``weight_workspace`` holds rows with one number per part of W (see
``theory.pipelines.stage_numbers``). ``choices`` are told in ``pipeline_choices_layout``; files of
version 1 have four of them beside the numbers and know no others.
"""

from __future__ import annotations

import re
from dataclasses import fields
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field

from bubbleproof.formats.errors import UnusableInput, quoted, values_at
from bubbleproof.formats.pipeline_choices_layout import (
    Pair,
    PerStage,
    PipelineChoicesLayout,
    Placement,
    Rows,
    choices_from_layout,
    choices_to_json,
    frozen,
    overlaps_from,
    plain,
)
from bubbleproof.formats.sizes import refuse_overflow, refuse_oversize
from bubbleproof.formats.validation import Count, Layout, Natural, Whole
from bubbleproof.theory.pipelines.choices import Choices
from bubbleproof.theory.pipelines.links import Link
from bubbleproof.theory.pipelines.pipeline import Pipeline

RankPair = Annotated[tuple[Natural, Natural], Field(strict=False)]
Bandwidth = Natural | str
Duplex = Literal["half", "full"]
Json = dict[str, object]


class LinkLayout(Layout):
    """What lies between two ranks, in both directions; absent keys are those of the pipeline."""

    ranks: RankPair
    latency: Natural
    bandwidth: Bandwidth | None = None
    duplex: Duplex | None = None


class NumbersLayout(Layout):
    """The numbers of a training step; absent keys take the defaults of ``Pipeline``."""

    num_ranks: Count
    num_microbatches: Count
    num_chunks: Count = 1
    num_slices: Count = 1
    forward: PerStage | Rows = 1
    backward: PerStage | Rows = 2
    input_backward: PerStage | Rows = 1
    weight_backward: PerStage | Rows = 1
    activation: PerStage = 1
    released_at_input: Whole | list[Whole] = 0
    weight_workspace: Natural | list[Natural] | Rows = Field(default_factory=list)
    static: PerStage = 0
    capacity: Natural | list[Natural | None] | None = None
    message: PerStage = 0
    latency: Natural = 0
    bandwidth: Bandwidth | None = None
    duplex: Duplex = "half"
    links: list[LinkLayout] = Field(default_factory=list)
    unit: str = "tick"
    memory_unit: str = "activation"


class PipelineLayout(NumbersLayout):
    """A training step: its numbers, and what is chosen."""

    choices: PipelineChoicesLayout = PipelineChoicesLayout()


class PipelineLayout1(NumbersLayout):
    """A training step in a file of version 1."""

    placement: Placement = "loop"
    split_backward: bool | list[list[bool]] = False
    weight_parts: list[Natural] | Rows = Field(default_factory=list)
    overlaps: list[Pair] = Field(default_factory=list)


def pipeline_to_json(pipeline: Pipeline) -> Json:
    """Every field of the pipeline under its own name."""
    data = {field.name: plain(getattr(pipeline, field.name)) for field in fields(pipeline)}
    data["choices"] = choices_to_json(pipeline.choices)
    return data


def pipeline_from_layout(layout: PipelineLayout | PipelineLayout1) -> Pipeline:
    """The pipeline described. Raises ``UnusableInput`` where its fields do not fit together."""
    refuse_oversize(
        ranks=layout.num_ranks,
        microbatches=layout.num_microbatches,
        chunks=layout.num_chunks,
        slices=layout.num_slices,
    )
    values = {name: frozen(getattr(layout, name)) for name in NumbersLayout.model_fields}
    values["bandwidth"] = _rate(layout.bandwidth, "pipeline.bandwidth")
    values["links"] = tuple(
        Link(
            ranks=link.ranks,
            latency=link.latency,
            bandwidth=_rate(link.bandwidth, f"pipeline.links[{row}].bandwidth"),
            duplex=link.duplex,
        )
        for row, link in enumerate(layout.links)
    )
    choices = _choices(layout)
    with values_at("pipeline"):
        pipeline = Pipeline(**values, choices=choices)  # type: ignore[arg-type]  # checked above
    refuse_overflow(pipeline)
    return pipeline


def _rate(given: int | str | None, where: str) -> int | Fraction | None:
    """Memory units per tick: a whole number, or a ratio ``a/b``."""
    if not isinstance(given, str):
        return given
    if (match := re.fullmatch(r"([1-9][0-9]{0,15})/([1-9][0-9]{0,15})", given)) is None:
        raise UnusableInput(where, 'a number or a ratio "a/b"', quoted(given))
    return Fraction(int(match[1]), int(match[2]))


def _choices(layout: PipelineLayout | PipelineLayout1) -> Choices:
    if isinstance(layout, PipelineLayout):
        return choices_from_layout(layout.choices, "pipeline.choices")
    return Choices(
        placement=frozen(layout.placement),  # type: ignore[arg-type]  # the layout checked it
        split_backward=frozen(layout.split_backward),  # type: ignore[arg-type]  # likewise
        weight_parts=frozen(layout.weight_parts),  # type: ignore[arg-type]  # likewise
        overlaps=overlaps_from(layout.overlaps, "pipeline.overlaps"),
    )
