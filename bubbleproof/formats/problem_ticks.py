"""The table ``[durations]`` of a problem file as ticks of a ``Pipeline``.

Ticks are a number, a list with one per stage, or rows with one number per slice. Of a backward the
file may tell the whole, its input and weight part, and the GEMMs that W is cut into: what follows
from the others may be left out, and what is told twice must agree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bubbleproof.formats.errors import UnusableInput, quoted, values_at
from bubbleproof.formats.problem_file_layout import DurationsLayout, ProblemFileLayout
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.pipelines.stage_numbers import Ticks, grid, stage_ticks, weight_rows

TABLES = ("forward", "backward", "input", "weight")


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """Ticks as a ``Pipeline`` takes them; without a split backward I and W stay at one tick."""

    forward: Ticks
    backward: Ticks
    input_backward: Ticks = 1
    weight_backward: Ticks = 1
    weight_parts: tuple[tuple[int, ...], ...] = ()


def durations(layout: ProblemFileLayout) -> Durations:
    """The ticks of every action.

    Raises ``UnusableInput`` naming the key that is missing, has another shape or disagrees.
    """
    shape = (layout.ranks * layout.chunks, layout.slices)
    given = layout.durations
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
    return Durations(
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


def _table(name: str, value: Ticks, shape: tuple[int, int]) -> Ints:
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
