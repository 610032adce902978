"""A schedule as plain text for a terminal: a line per rank, a column per tick (or per larger unit).

>>> from bubbleproof.theory.families import member
>>> small = member("1f1b", p=2, m=2)
>>> print(grid(small.problem, small.schedule))
time    0  1  2  3  4  5  6  7  8
rank 0  F0 F1 .  .  B0--- .  B1---
rank 1  .  F0 B0--- F1 B1--- .  .

An action's label stands in its first column and dashes fill the rest; a dot is an idle column. With
several chunks the label begins with the stage (``4F0``), with slices it ends in the slice
(``F0.1``). A column is the greatest common divisor of all starts and durations; where that gives
too many columns it is the shortest action, and the last line says that starts are rounded.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bubbleproof.report.amounts import ticks
from bubbleproof.report.bars import Bars, bars_of
from bubbleproof.theory.model.actions import NONE, Kind
from bubbleproof.theory.model.measures import known_rows
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule

MAX_COLUMNS = 64
MAX_LINES = 40


def grid(
    problem: Problem,
    schedule: Schedule,
    *,
    window: tuple[int, int] | None = None,
    max_columns: int = MAX_COLUMNS,
    max_lines: int = MAX_LINES,
    waiting: Mapping[int, str] | None = None,
    width: int | None = None,
) -> str:
    """The rank by time grid of a small schedule; what is left out is named in its last lines.

    ``window`` (ticks) begins and ends the grid there; ``waiting`` names by resource the task that
    never starts, which stands in brackets at the end of the line; ``width`` is how many characters
    a line of the grid may have (None: as many as it takes). Raises ``ValueError`` for an
    empty window.
    """
    bars = bars_of(problem, *known_rows(problem, schedule))
    if window is not None and window[0] >= window[1]:
        raise ValueError(f"a window must end after it starts, got {window[0]} to {window[1]}")
    first, last = window or (int(bars.start.min(initial=0)), int(bars.end.max(initial=1)))
    inside = bars.take(bars.in_window((first, last)))
    unit, notes = _column_ticks(inside, first, last, max_columns)
    is_rounded = bool(notes)
    columns = max(1, (last - first + (unit // 2 if is_rounded else unit - 1)) // unit)
    notes = [_scale_note(unit, problem), *notes]
    whole, columns, place = columns, min(columns, max_columns), len(notes)
    busy = np.unique(inside.row[inside.row >= problem.num_ranks]).tolist()
    resources = [*range(problem.num_ranks), *busy]
    if len(resources) > max_lines:
        notes.append(f"cut after {max_lines} of {len(resources):,} lines")
        resources = resources[:max_lines]
    names = [problem.resources[r].name for r in resources]
    margin = max(len(name) for name in ("time", *names))
    cells, hidden = _cells(inside, (first, unit, columns))
    room = columns if width is None else _fitting(cells, (first, unit, columns), width - margin - 2)
    if room < columns:
        columns = room
        cells, hidden = _cells(inside, (first, unit, columns))
    if columns < whole:
        notes.insert(place, f"cut after {columns} of {whole:,} columns")
    if hidden:
        notes.append(f"{hidden} actions without a column of their own are not shown")
    wide = _cell_width(cells, first, unit, columns)
    lines = [("time", _ruler(first, unit, columns, wide))]
    lines += [
        (name, _line(cells.get(r, []), columns, wide) + _never(waiting, r))
        for name, r in zip(names, resources, strict=True)
    ]
    text = [f"{name:<{margin}}  {line}".rstrip() for name, line in lines]
    return "\n".join([*text, *(f"({note})" for note in notes if note)])


def _fitting(
    cells: dict[int, list[tuple[int, int, str]]], scale: tuple[int, int, int], width: int
) -> int:
    """How many columns a line of so many characters holds, one at least."""
    first, unit, columns = scale
    return max(1, min(columns, width // _cell_width(cells, first, unit, columns)))


def _never(waiting: Mapping[int, str] | None, resource: int) -> str:
    return f"[{waiting[resource]}]" if waiting and resource in waiting else ""


def _scale_note(unit: int, problem: Problem) -> str:
    return (
        "" if unit == 1 and problem.unit == "tick" else f"a column is {ticks(unit, problem.unit)}"
    )


def _column_ticks(bars: Bars, first: int, last: int, max_columns: int) -> tuple[int, list[str]]:
    """The ticks of one column, and a note where starts must be rounded to columns."""
    length = bars.end - bars.start
    exact = max(int(np.gcd.reduce(np.concatenate([bars.start - first, length, [0]]))), 1)
    shortest = int(length[length > 0].min(initial=last - first))
    if exact == shortest or (last - first) // exact <= max_columns:
        return exact, []
    return shortest, ["starts and ends are rounded to columns"]


def _cells(
    bars: Bars, scale: tuple[int, int, int]
) -> tuple[dict[int, list[tuple[int, int, str]]], int]:
    """(first column, columns, label) of the actions by resource, and how many have no column."""
    first, unit, columns = scale
    low = np.maximum((bars.start - first + unit // 2) // unit, 0)
    high = (bars.end - first + unit // 2) // unit
    many_chunks = bool((bars.chunk > 0).any())
    order = np.lexsort((low, bars.row))
    cells: dict[int, list[tuple[int, int, str]]] = {}
    hidden = 0
    for bar in order.tolist():
        row, column = int(bars.row[bar]), int(low[bar])
        taken = cells.setdefault(row, [])
        after = taken[-1][0] + taken[-1][1] if taken else 0
        length = min(int(high[bar]), columns) - max(column, after)
        if length > 0:
            taken.append((max(column, after), length, _label(bars, bar, with_stage=many_chunks)))
        elif column < columns:
            hidden += 1
    return cells, hidden


def _label(bars: Bars, bar: int, *, with_stage: bool) -> str:
    action = bars.actions[bar]
    if action.partner is not None:
        forward, partner = action.microbatch, action.partner.microbatch
        return f"F{forward}+B{partner}"
    stage = str(action.stage) if with_stage else ""
    number = "" if action.microbatch == NONE else str(action.microbatch)
    slice_ = f".{action.slice}" if bars.actions.is_sliced else ""
    part = "" if action.part == NONE else f"#{action.part}"
    kind = action.kind.name if action.kind is not Kind.STEP else "S"
    return f"{stage}{kind}{number}{slice_}{part}"


def _cell_width(
    cells: dict[int, list[tuple[int, int, str]]], first: int, unit: int, columns: int
) -> int:
    """Characters per column: enough for every label in its columns, with a space after it."""
    wanted = [-(-(len(text) + 1) // n) for row in cells.values() for _, n, text in row]
    return max([2, *wanted, len(str(first + unit * columns)) // 2 + 1])


def _ruler(first: int, unit: int, columns: int, wide: int) -> str:
    """The ticks at which columns begin, at every column where they fit, else at every n-th."""
    step = -(-(len(str(first + unit * columns)) + 1) // wide)
    marks = (str(first + unit * column) for column in range(0, columns, step))
    return "".join(f"{mark:<{wide * step}}" for mark in marks)


def _line(cells: list[tuple[int, int, str]], columns: int, wide: int) -> str:
    line, column = "", 0
    for at, length, text in cells:
        line += f"{'.':<{wide}}" * (at - column)
        line += f"{text:-<{wide * length - 1}} " if length > 1 else f"{text:<{wide}}"
        column = at + length
    return line + f"{'.':<{wide}}" * (columns - column)
