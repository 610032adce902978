"""Schedules in our own JSON: a schedule together with the problem that it solves.

The file is one object, its layout fixed by ``docs/reference/schemas/schedule-2.json``::

    {
      "format": "bubbleproof/schedule",
      "version": 2,
      "name": "1F1B on two ranks",
      "pipeline": {"num_ranks": 2, "num_microbatches": 1},
      "orders": {
        "rank 0": [["0F0", 0], ["0B0", 4]],
        "rank 1": [["1F0", 1], ["1B0", 2]]
      },
      "claims": {"makespan": 6, "idle_ratio": "1/2"}
    }

Where a solver made choices, ``allowed`` tells what was free to choose
(``theory.pipelines.allowed``): an optimum is one over these choices.

The problem is either a ``pipeline`` (every field of ``Pipeline``, its choices included) or, for one
built by hand, a ``problem`` (see ``formats.layouts.problem_layout``). ``orders`` gives each
resource its actions in order, each with its start in ticks; ``program`` gives the orders alone, and
the reader then starts each action as early as it can. A claim is a whole number, a ratio ``"a/b"``
or a list in rank order, under the name of a field of ``Measures``. The key ``format`` stands within
the first 64 KiB of the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from bubbleproof.formats.errors import UnusableInput, about, quoted, values_at
from bubbleproof.formats.files import MEBIBYTE, FilePath, read_text, write_text
from bubbleproof.formats.json_text import parse_json, render_json
from bubbleproof.formats.layouts.choices_layout import refuse_foreign
from bubbleproof.formats.layouts.derived_layout import layout_of, plain
from bubbleproof.formats.layouts.orders_layout import (
    ClaimLayout,
    claims_from_layout,
    claims_to_json,
    orders_to_json,
    program_from_orders,
)
from bubbleproof.formats.layouts.pipeline_layout import (
    PipelineLayout,
    PipelineLayout1,
    pipeline_from_layout,
    pipeline_to_json,
)
from bubbleproof.formats.layouts.problem_layout import (
    ProblemLayout,
    index_names,
    problem_from_layout,
    problem_to_json,
)
from bubbleproof.formats.schedule_file import ScheduleFile
from bubbleproof.formats.validation import AS_WHOLE, Layout, Natural, described, validate
from bubbleproof.theory.model.actions import NONE, ActionTable
from bubbleproof.theory.model.problem import Edges, MemoryEvents, Occupancy, Problem
from bubbleproof.theory.model.schedule import ClaimedNumber, Program, Schedule
from bubbleproof.theory.pipelines.allowed import AllowedChoices
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import UntimedProgram, left_shift
from bubbleproof.verify.candidates.chosen import foreign_choice, plain_of

FORMAT = "bubbleproof/schedule"
VERSION = 2
SIZE_LIMIT = 256 * MEBIBYTE
TABLES = frozenset(
    {"resources", "tasks", "edges", "stores", "events", "evictions", "offloads", "waits"}
)

TimedAction = Annotated[tuple[str, Natural], Field(strict=False)]


class AnyScheduleLayout(Layout):
    """A schedule file; exactly one of pipeline and problem, exactly one of orders and program."""

    format: Literal["bubbleproof/schedule"]
    name: str = ""
    problem: ProblemLayout | None = None
    orders: dict[str, list[TimedAction]] | None = None
    program: dict[str, list[str]] | None = None
    claims: dict[str, ClaimLayout] = Field(default_factory=dict)


class AllowedLayout(layout_of(AllowedChoices)):  # type: ignore[misc]  # made from its fields
    """What was free to choose; an absent table allowed nothing of its kind."""


class ScheduleLayout(AnyScheduleLayout):
    """A schedule file of version 2, whose pipeline has its choices."""

    version: Annotated[Literal[2], AS_WHOLE]
    pipeline: PipelineLayout | None = None
    allowed: AllowedLayout | None = None


class ScheduleLayout1(AnyScheduleLayout):
    """A schedule file of version 1, which is read and no longer written."""

    version: Annotated[Literal[1], AS_WHOLE]
    pipeline: PipelineLayout1 | None = None


VERSIONS: dict[int, type[ScheduleLayout] | type[ScheduleLayout1]] = {
    1: ScheduleLayout1,
    2: ScheduleLayout,
}


def read_schedule(path: FilePath) -> ScheduleFile:
    """Read a schedule file.

    Raises ``UnusableInput`` naming the key, what was expected and what was found.
    """
    with about(path):
        text = read_text(path, limit=SIZE_LIMIT, opening=_refuse_other)
        return schedule_of(parse_json(text))


def schedule_of(data: object) -> ScheduleFile:
    """What a schedule file of this content says. Raises as ``read_schedule``."""
    version = data.get("version") if isinstance(data, Mapping) else None
    layout: type[ScheduleLayout] | type[ScheduleLayout1] = ScheduleLayout
    if isinstance(version, int) and not isinstance(version, bool):
        layout = VERSIONS.get(version, ScheduleLayout)
    return _schedule_file(validate(layout, data))


def _schedule_file(layout: ScheduleLayout | ScheduleLayout1) -> ScheduleFile:
    pipeline, problem = _read_problem(layout)
    resources = index_names("resources", [r.name for r in problem.resources])
    claims = claims_from_layout(layout.claims)
    if (layout.orders is None) == (layout.program is None):
        raise _one_of("orders", "program", layout.orders is not None)
    if layout.orders is not None:
        texts = {name: [row[0] for row in rows] for name, rows in layout.orders.items()}
        starts = {name: [row[1] for row in rows] for name, rows in layout.orders.items()}
        program = program_from_orders("orders", texts, resources)
        # Orders may be listed in any resource order; the program's rows are grouped by resource.
        grouped = sorted(starts, key=resources.__getitem__)
        start = np.array([s for name in grouped for s in starts[name]], dtype=np.int64)
        task = problem.locate(program.actions)
        duration = None if (task == NONE).any() else problem.duration[task]
        schedule: Schedule | None = Schedule(
            program=program, start=start, claims=claims, duration=duration
        )
    else:
        program = program_from_orders("program", layout.program or {}, resources)
        schedule = _timed(problem, program, claims)
    return ScheduleFile(
        problem=problem,
        program=program,
        schedule=schedule,
        pipeline=pipeline,
        claims=claims,
        name=layout.name,
        allowed=_allowed(layout, pipeline),
    )


def _allowed(
    layout: ScheduleLayout | ScheduleLayout1, pipeline: Pipeline | None
) -> AllowedChoices | None:
    """What was free to choose; the pipeline has to be one of the choices."""
    if isinstance(layout, ScheduleLayout1) or layout.allowed is None:
        return None
    allowed: AllowedChoices = described(layout.allowed, "allowed")
    if pipeline is None:
        raise UnusableInput("allowed", "the key pipeline beside it", "nothing")
    refuse_foreign(allowed, pipeline, "allowed")
    if (foreign := foreign_choice(plain_of(pipeline), allowed, pipeline)) is not None:
        raise UnusableInput("allowed", "what the pipeline has chosen", foreign)
    return allowed


def write_schedule(path: FilePath, file: ScheduleFile) -> None:
    """Write a schedule file; an existing file is replaced whole or not at all.

    Raises ``UnusableInput`` where the layout cannot say the content: a pipeline that does not state
    the problem beside it, a resource that the problem does not have, a negative start.
    """
    with about(path):
        write_text(path, render_json(schedule_content(file), table_keys=TABLES))


def schedule_content(file: ScheduleFile) -> dict[str, object]:
    """What a schedule's file holds. Raises ``UnusableInput`` as ``write_schedule`` does."""
    content: dict[str, object] = {"format": FORMAT, "version": VERSION, "name": file.name}
    if file.pipeline is None:
        content["problem"] = problem_to_json(file.problem)
    else:
        if not is_same_problem(file.pipeline.problem(), file.problem):
            expected = "the problem of its pipeline"
            raise UnusableInput("problem", expected, "another one; leave out the pipeline")
        content["pipeline"] = pipeline_to_json(file.pipeline)
    if file.allowed is not None:
        tables = {
            each.name: plain(getattr(file.allowed, each.name)) for each in fields(AllowedChoices)
        }
        content["allowed"] = {name: table for name, table in tables.items() if table is not None}
    content |= orders_to_json(file.problem, file.program, file.schedule)
    content["claims"] = claims_to_json(file.claims)
    return content


def _refuse_other(opening: str) -> None:
    """Refuse, from its beginning alone, a file that is no schedule file of ours."""
    if not opening.lstrip().startswith("{"):
        found = quoted(opening.lstrip()[:20]) if opening.strip() else "an empty file"
        raise UnusableInput("", "a JSON object", found)
    versions = [str(version) for version in VERSIONS]
    for key, known in (("format", [f'"{FORMAT}"']), ("version", versions)):
        expected = " or ".join(known)
        match = re.search(rf'"{key}"\s*:\s*("[^"]*"|[^\s,}}]+)', opening)
        if match is None and key == "format":
            raise UnusableInput(key, expected, "no such key at the beginning of the file")
        if match is not None and match[1] not in known:
            raise UnusableInput(key, expected, quoted(match[1].strip('"')))


def _read_problem(layout: ScheduleLayout | ScheduleLayout1) -> tuple[Pipeline | None, Problem]:
    if layout.pipeline is not None and layout.problem is None:
        pipeline = pipeline_from_layout(layout.pipeline)
        with values_at("pipeline"):
            return pipeline, pipeline.problem()
    if layout.problem is not None and layout.pipeline is None:
        return None, problem_from_layout(layout.problem)
    raise _one_of("pipeline", "problem", layout.pipeline is not None)


def _one_of(one: str, other: str, is_both: bool) -> UnusableInput:
    found = "both" if is_both else "neither"
    return UnusableInput("", f"either the key {one} or the key {other}", found)


def _timed(
    problem: Problem, program: Program, claims: Mapping[str, ClaimedNumber]
) -> Schedule | None:
    try:
        return left_shift(problem, program, claims)
    except UntimedProgram:
        return None


def is_same_problem(one: Any, other: Any) -> bool:
    """Whether two problems, or tables of them, have the same in all columns, in the same order."""
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if not isinstance(one, Problem | ActionTable | Occupancy | Edges | MemoryEvents):
        return bool(one == other)
    columns = (each.name for each in fields(one))
    return all(is_same_problem(getattr(one, name), getattr(other, name)) for name in columns)
