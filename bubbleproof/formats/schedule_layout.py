"""The keys of a schedule file, their types and ranges; ``schedule_json`` tells their meaning."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from bubbleproof.formats.claims_layout import ClaimLayout
from bubbleproof.formats.pipeline_layout import PipelineLayout
from bubbleproof.formats.problem_layout import ProblemLayout
from bubbleproof.formats.validation import Layout, Natural

TimedAction = Annotated[tuple[str, Natural], Field(strict=False)]


class ScheduleLayout(Layout):
    """A schedule file; exactly one of pipeline and problem, exactly one of orders and program."""

    format: Literal["bubbleproof/schedule"]
    version: Literal[1]
    name: str = ""
    pipeline: PipelineLayout | None = None
    problem: ProblemLayout | None = None
    orders: dict[str, list[TimedAction]] | None = None
    program: dict[str, list[str]] | None = None
    claims: dict[str, ClaimLayout] = Field(default_factory=dict)


def schedule_schema() -> dict[str, object]:
    """The JSON schema of a schedule file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **ScheduleLayout.model_json_schema(),
    }
