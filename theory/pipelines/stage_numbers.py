"""The numbers of a pipeline's stages: ticks and memory, checked and brought to one form.

``activation``, ``released_at_input`` and ``static`` are given once or with one number per stage.
Ticks may also differ by slice (causal attention makes later slices dearer, MEPipe section 5): then
they are given as rows with one number per slice, one row for all stages or one row per stage:

>>> stage_ticks("forward", [[3, 4]], num_stages=2, num_slices=2)
((3, 4), (3, 4))
>>> stage_ticks("forward", [[3, 3], [5, 5]], num_stages=2, num_slices=2)
(3, 5)

The second pair of rows says no more than one number per stage, and is kept as such.

A weight gradient may be cut into *parts*, one GEMM each (MEPipe section 5). ``weight_parts`` are
the ticks of each, one row for all stages or one row per stage; a stage with an empty row computes
it whole. Every slice has the same parts: weight GEMMs do not see the sequence length before them.
``weight_workspace`` is what each of them holds while it runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from bubbleproof.theory.model.actions import MAX_PART, Ints

PerStage = int | Sequence[int]
Ticks = PerStage | Sequence[Sequence[int]]
Parts = Sequence[int] | Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StageColumns:
    """A pipeline's memory per stage as int64 columns, shape (num_stages,)."""

    activation: Ints
    released: Ints
    static: Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ActionTicks:
    """Ticks of one action of each kind as int64 columns, shape (num_stages, num_slices)."""

    forward: Ints
    backward: Ints
    input_backward: Ints
    weight_backward: Ints


def stage_numbers(
    name: str, given: PerStage, *, num_stages: int, minimum: int | None
) -> tuple[int, ...]:
    """One number per stage.

    Parameters
    ----------
    name
        What the number is called in a message.
    given
        One number for all stages, or one per stage.
    num_stages
        How many stages there are.
    minimum
        The least value that is allowed; None where any is.

    Raises
    ------
    ValueError
        For another count, and for what is no whole number of ``minimum`` or more.
    """
    values = (given,) * num_stages if isinstance(given, int) else tuple(given)
    if len(values) != num_stages:
        raise ValueError(
            f"{name} must be one number or one per stage ({num_stages}), got {len(values)}"
        )
    for value in values:
        require_whole(name, value, minimum=minimum)
    return values


def stage_ticks(
    name: str, given: Ticks, *, num_stages: int, num_slices: int
) -> tuple[int, ...] | tuple[tuple[int, ...], ...]:
    """One number per stage, or where slices differ one row per stage with a number per slice.

    Parameters
    ----------
    name
        What the number is called in a message.
    given
        Ticks of one action: one number, one per stage, or rows with one number per slice.
    num_stages, num_slices
        How many there are.

    Raises
    ------
    ValueError
        For other shapes and for ticks below 0.
    """
    if isinstance(given, int) or not any(isinstance(entry, Sequence) for entry in given):
        return stage_numbers(name, given, num_stages=num_stages, minimum=0)  # type: ignore[arg-type]  # no rows
    rows = _rows(name, given, num_stages)
    for stage, row in enumerate(rows):
        if len(row) != num_slices:
            raise ValueError(
                f"{name} of stage {stage} must be one number per slice ({num_slices}), "
                f"got {len(row)}"
            )
    _require_natural(name, rows)
    is_even = all(len(set(row)) == 1 for row in rows)
    return tuple(row[0] for row in rows) if is_even else rows


def weight_rows(given: Parts, *, num_stages: int) -> tuple[tuple[int, ...], ...]:
    """The ticks of the parts of W, a row per stage; no row where every stage computes W whole.

    Parameters
    ----------
    given
        Ticks of each part: one row for all stages, or one row per stage.
    num_stages
        How many stages there are.

    Raises
    ------
    ValueError
        For another number of rows, more than ``MAX_PART + 1`` parts, or ticks below 0.
    """
    name = "weight_parts"
    rows = _rows(name, given, num_stages)
    if (most := max(map(len, rows))) > MAX_PART + 1:
        raise ValueError(f"{name} must be at most {MAX_PART + 1} parts, got {most}")
    _require_natural(name, rows)
    return rows if any(rows) else ()


def require_sums(rows: Sequence[Sequence[int]], weight: Ints) -> None:
    """Raise ``ValueError`` where parts do not add up to their W, shape (num_stages, num_slices).

    Parameters
    ----------
    rows
        Ticks of the parts of W, a row per stage; an empty row where W is whole.
    weight
        Ticks of the whole W, shape (num_stages, num_slices).
    """
    for stage, row in enumerate(rows):
        wrong = [ticks for ticks in weight[stage].tolist() if row and ticks != sum(row)]
        if wrong:
            raise ValueError(
                f"weight_parts of stage {stage} add up to {sum(row)} ticks, "
                f"but weight_backward is {wrong[0]}"
            )


def workspace_rows(given: int | Parts, *, num_parts: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """What each part of W holds while it runs, a row per stage; no row where none holds anything.

    ``num_parts`` is 1 for a W that is whole.

    Parameters
    ----------
    given
        Units of memory: one number, one row for all stages, or one row per stage.
    num_parts
        How many parts W has on each stage, 1 where it is whole.

    Raises
    ------
    ValueError
        For a row of another length, and for what is no whole number of 0 or more.
    """
    name = "weight_workspace"
    if isinstance(given, int):
        rows = tuple((given,) * count for count in num_parts)
    elif not given:
        return ()
    else:
        rows = _rows(name, given, len(num_parts))
    for stage, (row, count) in enumerate(zip(rows, num_parts, strict=True)):
        if len(row) != count:
            raise ValueError(
                f"{name} of stage {stage} must be one number per part of W ({count}), "
                f"got {len(row)}"
            )
    _require_natural(name, rows)
    return rows if any(map(any, rows)) else ()


def _rows(name: str, given: Parts, num_stages: int) -> tuple[tuple[int, ...], ...]:
    """A row per stage, where one row or one per stage is given."""
    if len({isinstance(row, Sequence) for row in given}) > 1:
        raise ValueError(f"{name} must be numbers or rows of numbers, got both")
    has_rows = any(isinstance(row, Sequence) for row in given)
    listed: Sequence[Sequence[int]] = given if has_rows else [given]  # type: ignore[assignment, list-item]  # checked above
    rows = tuple(map(tuple, listed))
    if len(rows) not in (1, num_stages):
        raise ValueError(
            f"{name} must be one row or one per stage ({num_stages}), got {len(rows)} rows"
        )
    return rows * num_stages if len(rows) == 1 else rows


def _require_natural(name: str, rows: Sequence[Sequence[int]]) -> None:
    for value in chain.from_iterable(rows):
        require_whole(name, value, minimum=0)


def grid(ticks: Ticks, *, num_slices: int) -> Ints:
    """Ticks in the form of ``stage_ticks`` as a table, shape (num_stages, num_slices).

    Parameters
    ----------
    ticks
        As ``stage_ticks`` gives them.
    num_slices
        Columns of the table where slices do not differ.
    """
    table = np.asarray(ticks, dtype=np.int64)
    return np.repeat(table[:, None], num_slices, axis=1) if table.ndim == 1 else table


def column(values: PerStage) -> Ints:
    """Numbers per stage as an int64 column."""
    return np.atleast_1d(np.asarray(values, dtype=np.int64))


def padded(rows: Sequence[Sequence[int]]) -> Ints:
    """Rows of different lengths as a table, with zeros behind, shape (stages, longest row).

    Parameters
    ----------
    rows
        One row or more of whole numbers.
    """
    table = np.zeros((len(rows), max(map(len, rows))), dtype=np.int64)
    for row, values in enumerate(rows):
        table[row, : len(values)] = values
    return table


def require_whole(name: str, value: int, *, minimum: int | None, bounded: bool = True) -> None:
    """Raise ``ValueError`` unless ``value`` is a whole number of at least ``minimum``.

    Parameters
    ----------
    name
        What the number is called in a message.
    value
        The number; a flag is none.
    minimum
        The least value that is allowed; None where any is.
    bounded
        Whether it must be less than 2**60, as sums of such numbers are taken.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name} must be a whole number, got {value!r}")
    if minimum is not None and value < minimum:
        raise ValueError(f"{name} must be {minimum} or more, got {value}")
    if bounded and abs(value) >= 1 << 60:
        raise ValueError(f"{name} must be less than 2**60, got one of {value.bit_length()} bits")
