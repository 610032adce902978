"""The keys of a problem file, their types and ranges; ``problem_toml`` tells their meaning.

Of a backward the file may tell the whole, its input and weight part, and the GEMMs that W is cut
into: what follows from the others may be left out, and what is told twice must agree
(``durations``).
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, TypedDict, cast

import numpy as np
from pydantic import Field, create_model

from bubbleproof.formats.errors import UnusableInput, quoted, values_at
from bubbleproof.formats.layouts.choices_layout import ChoicesLayout
from bubbleproof.formats.layouts.plan_layout import LayersLayout, PlanLayout
from bubbleproof.formats.validation import Count, Layout, Natural, RankPair
from bubbleproof.formats.values import (
    LongTime,
    NaturalSize,
    Rate,
    Seconds,
    Size,
    SizeInBytes,
    Time,
)
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.pipelines.stage_numbers import Ticks, grid, stage_ticks, weight_rows
from bubbleproof.wings import FILE_TABLES, given, present

TimeRows = list[list[Time]]
GivenTicks = Time | list[Time] | TimeRows


TABLES = ("forward", "backward", "input", "weight")
PAPER = "paper"  # the table whose keys a wing knows


class DurationsLayout(Layout):
    """Times of one action: a number, a list with one per stage, or rows with one per slice.

    A number counts ticks, whole or not; a text such as "9 ms" has a unit of its own.
    """

    forward: GivenTicks
    backward: GivenTicks | None = None
    """The full backward; input + weight where those are given."""
    input: GivenTicks | None = None
    """The backward for the input only."""
    weight: GivenTicks | None = None
    """The backward for the weights only; the sum of weight_parts where those are given."""
    weight_parts: list[Time] | TimeRows | None = None
    """The GEMMs that each backward for the weights is cut into: one row, or one per stage."""


class MemoryLayout(Layout):
    """Memory in memory_unit, or with a unit of its own such as "3.5 GiB"."""

    MAKES = dict

    capacity: NaturalSize | list[NaturalSize] | None = None
    """What each rank has: one size, or a list with one per rank; absent: unlimited."""
    activation: NaturalSize | list[NaturalSize] = Field(default=1, validate_default=True)
    """What an action holds from its forward to its backward."""
    released_at_input: Size | list[Size] = 0
    """The part of it that a split backward gives back after its input part."""
    weight_workspace: NaturalSize | list[NaturalSize] | list[list[NaturalSize]] = 0
    """What each GEMM of W holds while it runs: one size, or rows like durations.weight_parts."""
    static: NaturalSize | list[NaturalSize] = 0
    """Weights and optimizer state of each stage."""
    message: NaturalSize | list[NaturalSize] = 0
    """What a stage sends to the next for one action; its gradient that comes back is as large."""


class LinksLayout(Layout):
    """Messages between any two ranks that [[link]] does not name."""

    MAKES = dict

    latency: Time = 0
    """Ticks from the end of a message to its consumer."""
    bandwidth: Rate | None = None
    """Memory units per tick, or a rate such as "300 GB/s"; absent: messages occupy no link."""
    duplex: Literal["half", "full"] = "half"
    """Whether a link carries one message at a time, or one in each direction."""


class ProblemLinkLayout(Layout):
    """Messages between two ranks, in both directions; absent keys are those of [links]."""

    ranks: RankPair
    latency: Time | None = None
    bandwidth: Rate | None = None
    duplex: Literal["half", "full"] | None = None


class CompareLayout(Layout):
    """Published schedules to show beside the solved one, such as "1f1b" or "interleaved v=2"."""

    families: list[str] = Field(default_factory=list)


class SolveLayout(Layout):
    """What to look for, and for how long."""

    objective: Literal["makespan", "span_idle", "makespan-then-peak", "peak"] = "makespan"
    within: LongTime | None = None
    """Largest value wanted; for the objective "peak", the largest makespan."""
    time_limit: Seconds | None = None
    """Seconds, or a time such as "2 min"."""
    memory: SizeInBytes | None = None
    """What an engine may take, such as "4 GiB"; it then has a process of its own."""


class ProblemFileLayout(Layout):
    """A problem file."""

    name: str = ""
    """Default: the file's name."""
    description: str = ""
    unit: str = "tick"
    """What one tick is, such as "us"."""
    memory_unit: str = "activation"
    """What memory is counted in, such as "bytes"."""
    ranks: Count
    microbatches: Count
    chunks: Count = 1
    """Stages per rank."""
    slices: Count = 1
    """Pieces of a sample along the sequence."""
    placement: Literal["loop", "wave", "bidirectional"] | list[Natural] = "loop"
    """The rank of each stage, by name or as a list."""
    split_backward: bool = False
    """Whether every backward runs as an input and a weight part."""
    durations: DurationsLayout | None = None
    """Needed but where [layers] tells what a layer takes."""
    layers: LayersLayout | None = None
    memory: MemoryLayout = Field(default={}, validate_default=True)
    links: LinksLayout = LinksLayout()
    link: list[ProblemLinkLayout] = Field(default_factory=list)
    choices: ChoicesLayout = ChoicesLayout()
    compare: CompareLayout = CompareLayout()
    solve: SolveLayout = SolveLayout()
    plan: PlanLayout | None = None
    """Other shapes to try."""
    paper: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """What the papers' planners ask for beside."""


@cache
def problem_layout() -> type[ProblemFileLayout]:
    """The layout, with the tables of the papers where their wing is there; else any will do."""
    base = ProblemFileLayout
    if PAPER not in present(FILE_TABLES):
        return base
    table = cast(type[Layout], given(FILE_TABLES, PAPER, f"[{PAPER}]"))
    fields: dict[str, Any] = {PAPER: (table, table())}
    return create_model(base.__name__, __base__=base, __doc__=base.__doc__, **fields)


class TickFields(TypedDict):
    """Ticks as a ``Pipeline`` takes them; without a split backward I and W stay at one tick."""

    forward: Ticks
    backward: Ticks
    input_backward: Ticks
    weight_backward: Ticks
    weight_parts: tuple[tuple[int, ...], ...]


def durations(layout: ProblemFileLayout) -> TickFields:
    """The ticks of every action.

    Raises ``UnusableInput`` naming the key that is missing, has another shape or disagrees.
    """
    shape = (layout.ranks * layout.chunks, layout.slices)
    if (given := layout.durations) is None:
        raise UnusableInput("durations", "this table, or [layers]", "nothing")
    _refuse_missing(given, split=layout.split_backward)
    tables = {
        name: _table(name, value, shape)
        for name in TABLES
        if (value := getattr(given, name)) is not None
    }
    parts = _parts(given, shape[0])
    if parts:
        ticks = np.array([[sum(row)] * shape[1] for row in parts], dtype=np.int64)
        _refuse_other("weight", "weight_parts", tables.setdefault("weight", ticks), ticks)
    if "input" in tables:
        ticks = tables["input"] + tables["weight"]
        whole = tables.setdefault("backward", ticks)
        _refuse_other("backward", "input + weight", whole, ticks)
    plain = {name: table.tolist() for name, table in tables.items()}
    return TickFields(
        forward=plain["forward"],
        backward=plain["backward"],
        input_backward=plain.get("input", 1),
        weight_backward=plain.get("weight", 1),
        weight_parts=parts,
    )


def _refuse_missing(given: DurationsLayout, *, split: bool) -> None:
    has_input = given.input is not None
    has_weight = given.weight is not None or given.weight_parts is not None
    if has_input != has_weight or (split and not has_input):
        missing = "weight" if has_input else "input"
        either = has_input or has_weight
        why = "both input and weight" if either else "input and weight (split_backward = true)"
        raise UnusableInput(f"durations.{missing}", why, "nothing")
    if not has_input and given.backward is None:
        raise UnusableInput("durations.backward", "this key", "nothing")


def _table(name: str, value: GivenTicks, shape: tuple[int, int]) -> Ints:
    """The ticks as a table of the shape (stages, slices)."""
    where, (stages, slices) = f"durations.{name}", shape
    has_rows = isinstance(value, list) and any(isinstance(row, list) for row in value)
    if isinstance(value, list) and not has_rows and len(value) != stages:
        expected = f"one number or one per stage ({stages})"
        raise UnusableInput(where, expected, quoted(value))
    with values_at(where):
        ticks = stage_ticks(name, value, num_stages=stages, num_slices=slices)
    return grid(ticks, num_slices=slices)


def _parts(given: DurationsLayout, stages: int) -> tuple[tuple[int, ...], ...]:
    value = given.weight_parts
    if value is None:
        return ()
    if not value or [] in value:
        raise UnusableInput("durations.weight_parts", "one part or more", "none")
    with values_at("durations.weight_parts"):
        return weight_rows(value, num_stages=stages)


def _refuse_other(name: str, rule: str, given: Ints, wanted: Ints) -> None:
    """Raise ``UnusableInput`` at the first stage and slice where ``given`` is not ``wanted``."""
    for stage, slice_ in np.argwhere(given != wanted).tolist():
        which = f"slice {slice_} of stage {stage}" if wanted.shape[1] > 1 else f"stage {stage}"
        expected = f"{rule} = {wanted[stage, slice_]} on {which}"
        raise UnusableInput(f"durations.{name}", expected, str(given[stage, slice_]))
