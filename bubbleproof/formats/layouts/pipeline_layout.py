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

from pydantic import AfterValidator, Field

from bubbleproof.formats.errors import UnusableInput, quoted
from bubbleproof.formats.layouts.pipeline_choices_layout import (
    EarlyChoicesLayout,
    PerStage,
    PipelineChoicesLayout,
    choices_to_json,
    plain,
)
from bubbleproof.formats.sizes import refuse_overflow, refuse_oversize
from bubbleproof.formats.validation import (
    Count,
    Json,
    Layout,
    Natural,
    NaturalRows,
    RankPair,
    Whole,
    described,
)
from bubbleproof.theory.pipelines.links import Link
from bubbleproof.theory.pipelines.pipeline import Pipeline

Duplex = Literal["half", "full"]


def _ratio(text: str) -> Fraction:
    if (match := re.fullmatch(r"([1-9][0-9]{0,15})/([1-9][0-9]{0,15})", text)) is None:
        raise UnusableInput("", 'a number or a ratio "a/b"', quoted(text))
    return Fraction(int(match[1]), int(match[2]))


Bandwidth = Natural | Annotated[str, AfterValidator(_ratio)]  # memory units per tick


class LinkLayout(Layout):
    """What lies between two ranks, in both directions; absent keys are those of the pipeline."""

    MAKES = Link

    ranks: RankPair
    latency: Natural
    bandwidth: Bandwidth | None = None
    duplex: Duplex | None = None


class NumbersLayout(Layout):
    """The numbers of a training step; absent keys take the defaults of ``Pipeline``."""

    MAKES = Pipeline

    num_ranks: Count
    num_microbatches: Count
    num_chunks: Count = 1
    num_slices: Count = 1
    forward: PerStage | NaturalRows = 1
    backward: PerStage | NaturalRows = 2
    input_backward: PerStage | NaturalRows = 1
    weight_backward: PerStage | NaturalRows = 1
    activation: PerStage = 1
    released_at_input: Whole | list[Whole] = 0
    weight_workspace: Natural | list[Natural] | NaturalRows = Field(default_factory=list)
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


class PipelineLayout1(EarlyChoicesLayout, NumbersLayout):
    """A training step in a file of version 1."""


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
    pipeline: Pipeline = described(layout, "pipeline")
    refuse_overflow(pipeline)
    return pipeline
