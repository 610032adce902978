"""The keys of a schedule file, their types and ranges; ``schedule_json`` tells their meaning."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from bubbleproof.formats.claims_layout import ClaimLayout
from bubbleproof.formats.pipeline_layout import PipelineLayout, PipelineLayout1
from bubbleproof.formats.problem_layout import ProblemLayout
from bubbleproof.formats.validation import Layout, Natural

TimedAction = Annotated[tuple[str, Natural], Field(strict=False)]


class AnyScheduleLayout(Layout):
    """A schedule file; exactly one of pipeline and problem, exactly one of orders and program."""

    format: Literal["bubbleproof/schedule"]
    name: str = ""
    problem: ProblemLayout | None = None
    orders: dict[str, list[TimedAction]] | None = None
    program: dict[str, list[str]] | None = None
    claims: dict[str, ClaimLayout] = Field(default_factory=dict)


class ScheduleLayout(AnyScheduleLayout):
    """A schedule file of version 2, whose pipeline has its choices."""

    version: Literal[2]
    pipeline: PipelineLayout | None = None


class ScheduleLayout1(AnyScheduleLayout):
    """A schedule file of version 1, which is read and no longer written."""

    version: Literal[1]
    pipeline: PipelineLayout1 | None = None


VERSIONS: dict[object, type[ScheduleLayout] | type[ScheduleLayout1]] = {
    1: ScheduleLayout1, 2: ScheduleLayout,
}  # fmt: skip


def schedule_schema(version: int = 2) -> dict[str, object]:
    """The JSON schema of a schedule file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **VERSIONS[version].model_json_schema(),
    }
