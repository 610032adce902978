"""The layout of a ``Pipeline`` in a schedule file: one key per field, named as the field.

Fields and choices are declared in ``theory.pipelines``, and the layout is made from there
(``derived_layout``). Per-stage fields are a number or a list with one number per stage; they are
written as lists, the way a ``Pipeline`` keeps them, so that a pipeline reads back equal. Ticks may
also be rows with one number per slice, and ``weight_workspace`` holds rows with one number per part
of W (see ``theory.pipelines.stage_numbers``). Of ``choices`` those that are not the default are
written: overlapped pairs and waits as actions in text form, ``["0F7", "7B3"]``. Files of version 1
have four choices beside the numbers and know no others.
"""

from __future__ import annotations

from dataclasses import fields

from pydantic import create_model

from bubbleproof.formats.layouts.derived_layout import forms_of, layout_of, plain
from bubbleproof.formats.sizes import refuse_overflow, refuse_oversize
from bubbleproof.formats.validation import Json, Layout, described
from bubbleproof.theory.pipelines.choices import Choices
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.value_types import declared

EARLY = ("placement", "split_backward", "weight_parts", "overlaps")


class PipelineLayout(layout_of(Pipeline)):  # type: ignore[misc]  # made from Pipeline's fields
    """A training step: its numbers, and what is chosen."""


_early = {
    **{name: form for name, form in forms_of(Pipeline).items() if name != "choices"},
    **{name: form for name, form in forms_of(Choices).items() if name in EARLY},
}


class PipelineLayout1(create_model("_Early", __base__=Layout, **_early)):  # type: ignore[misc]  # likewise
    """A training step in a file of version 1."""

    MAKES = Pipeline


def pipeline_to_json(pipeline: Pipeline) -> Json:
    """Every field of the pipeline under its own name; every choice that is not the default."""
    data = {field.name: plain(getattr(pipeline, field.name)) for field in fields(pipeline)}
    hints, choices = declared(Choices), pipeline.choices
    data["choices"] = {
        field.name: plain(getattr(choices, field.name), hints[field.name])
        for field in fields(choices)
        if getattr(choices, field.name) != field.default
    }
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
