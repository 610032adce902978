"""A schedule as plain text for a terminal: a line per rank, a column per tick (or per larger unit).

>>> from bubbleproof.theory.families import member
>>> small = member("1f1b", p=2, m=2)
>>> print(grid(small.problem, small.schedule))
time    0  1  2  3  4  5  6  7  8
rank 0  F0 F1 .  .  B0--- .  B1---
rank 1  .  F0 B0--- F1 B1--- .  .

An action's label stands in its first column and dashes fill the rest; a dot is an idle column. With
several chunks the label begins with the stage (``4F0``), with slices it ends in the slice
(``F0.1``). A column is the greatest common divisor of all starts and durations. Where the line has
no room for that, the whole schedule is drawn to scale instead: a character is so many ticks, an
action takes its share of them, and a line of times says where one is.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bubbleproof.report.amounts import TimeScale
from bubbleproof.report.amounts import time as amount
from bubbleproof.report.bars import Bars, bars_of
from bubbleproof.report.timeline import cells_of
from bubbleproof.theory.model.actions import NONE, Kind
from bubbleproof.theory.model.measures import known_rows
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule

WIDTH = 120  # of a line, in characters
MAX_LINES = 40
LEAST = 10  # characters of a chart, however narrow the line is


def grid(
    problem: Problem,
    schedule: Schedule,
    *,
    window: tuple[int, int] | None = None,
    max_lines: int = MAX_LINES,
    waiting: Mapping[int, str] | None = None,
    width: int = WIDTH,
) -> str:
    """The rank by time grid of a schedule; what is left out is named in its last lines.

    ``window`` (ticks) begins and ends the grid there; ``waiting`` names by resource the task that
    never starts, which stands in brackets at the end of the line; ``width`` is how many characters
    a line may have. Raises ``ValueError`` for an empty window.
    """
    bars = bars_of(problem, *known_rows(problem, schedule))
    if window is not None and window[0] >= window[1]:
        raise ValueError(f"a window must end after it starts, got {window[0]} to {window[1]}")
    first, last = window or (int(bars.start.min(initial=0)), int(bars.end.max(initial=1)))
    inside = bars.take(bars.in_window((first, last)))
    busy = np.unique(inside.row[inside.row >= problem.num_ranks]).tolist()
    resources = [*range(problem.num_ranks), *busy]
    notes = []
    if len(resources) > max_lines:
        notes.append(f"cut after {max_lines} of {len(resources):,} lines")
        resources = resources[:max_lines]
    names = [problem.resources[r].name for r in resources]
    margin = max(len(name) for name in ("time", *names))
    room = width - margin - 2
    unit = _common_ticks(inside, first, last)
    columns = max(1, -(-(last - first) // unit))
    wide = 0
    if columns * 2 <= room:
        cells = _cells(inside, (first, unit, columns))
        wide = _cell_width(cells, first, unit, columns)
    if 0 < columns * wide <= room:
        ruler = _ruler(first, unit, columns, wide)
        lines = [_line(cells.get(r, []), columns, wide) for r in resources]
        if unit > 1 or problem.unit != "tick":
            notes.insert(0, f"a column is {amount(unit, problem.unit)}")
    else:
        scaled = _Scaled(problem, inside, (first, last), max(LEAST, room))
        ruler, lines = scaled.ruler(), [scaled.line(r) for r in resources]
        notes[:0] = scaled.notes()
    lines = [line + _never(waiting, r) for line, r in zip(lines, resources, strict=True)]
    rows = zip(("time", *names), (ruler, *lines), strict=True)
    text = [f"{name:<{margin}}  {line}".rstrip() for name, line in rows]
    return "\n".join([*text, *(f"({note})" for note in notes)])


class _Scaled:
    """A chart of so many characters, each of ``unit`` ticks, two digits of them and then zeros.

    Where actions are shorter than a character, a character shows the kind that is owed most
    (``cells``); a lower-case letter is a later chunk.
    """

    def __init__(self, problem: Problem, bars: Bars, window: tuple[int, int], room: int) -> None:
        self.problem, self.bars, self.window = problem, bars, window
        first, last = window
        self.unit = _two_digits(-(-(last - first) // room))
        self.columns = -(-(last - first) // self.unit)
        self.scale = TimeScale.of(problem.unit, last)
        length = (bars.end - bars.start)[bars.row < problem.num_ranks]
        typical = np.median(length[length > 0]) if (length > 0).any() else self.unit
        self.is_dense = bool(typical < 2 * self.unit)
        self.hidden = 0
        if self.is_dense:
            rows = int(bars.row.max(initial=0)) + 1
            self.bars = cells_of(bars, window=window, num_rows=rows, cell_ticks=self.unit)

    def line(self, resource: int) -> str:
        """The chart of one resource."""
        first, _ = self.window
        mine = self.bars.take(self.bars.row == resource)
        mine = mine.take(np.argsort(mine.start, kind="stable"))
        line = ""
        for bar in range(len(mine)):
            low, high = (
                (int(at[bar]) - first + self.unit // 2) // self.unit
                for at in (mine.start, mine.end)
            )
            low, high = max(low, len(line)), min(high, self.columns)
            if high <= low:
                self.hidden += 1
                continue
            line = line.ljust(low, ".") + self._drawn(mine, bar, high - low)
        return line.ljust(self.columns, ".")

    def _drawn(self, bars: Bars, bar: int, length: int) -> str:
        kind = Kind(int(bars.actions.kind[bar])).name[0]
        if self.is_dense:
            return (kind.lower() if bars.chunk[bar] else kind) * length
        label = _label(bars, bar, with_stage=bool((self.bars.chunk > 0).any()))
        return (label if len(label) <= length else kind).ljust(length, "-")

    def ruler(self) -> str:
        """Round times above the characters where they begin, with their unit at the first."""
        first, last = self.window
        widest = len(self.scale.number(last)) + len(self.scale.name) + 2
        step = next(
            size
            for power in range(40)
            for size in (10**power, 2 * 10**power, 5 * 10**power)
            if size >= widest * self.unit
        )
        line = ""
        for time in range(-(-first // step) * step, last, step):
            at = (time - first) // self.unit
            text = self.scale.number(time) if line else self.scale.amount(time)
            line = f"{line.ljust(at)}{text}"
        return line

    def notes(self) -> list[str]:
        """What a character is, and what is not shown."""
        told = f"a column is {amount(self.unit, self.problem.unit)}"
        if self.is_dense:
            told += " and shows the kind of action that runs most"
            told += " (lower case: a later chunk)" if (self.bars.chunk > 0).any() else ""
        elif self.hidden:
            told += f"; {self.hidden:,} actions of less than half a column are not shown"
        return [told]


def _two_digits(value: int) -> int:
    """The least number not below, of two digits and zeros after them."""
    size: int = 10 ** max(0, len(str(value)) - 2)
    return -(-value // size) * size


def _never(waiting: Mapping[int, str] | None, resource: int) -> str:
    return f"[{waiting[resource]}]" if waiting and resource in waiting else ""


def _common_ticks(bars: Bars, first: int, last: int) -> int:
    """The greatest common divisor of all starts and durations, in ticks."""
    times = np.concatenate([bars.start - first, bars.end - bars.start, [last - first]])
    return max(int(np.gcd.reduce(times)), 1)


def _cells(bars: Bars, scale: tuple[int, int, int]) -> dict[int, list[tuple[int, int, str]]]:
    """(first column, columns, label) of the actions by resource."""
    first, unit, columns = scale
    many_chunks = bool((bars.chunk > 0).any())
    cells: dict[int, list[tuple[int, int, str]]] = {}
    for bar in np.lexsort((bars.start, bars.row)).tolist():
        low = max((int(bars.start[bar]) - first) // unit, 0)
        length = min((int(bars.end[bar]) - first) // unit, columns) - low
        if length > 0:
            label = _label(bars, bar, with_stage=many_chunks)
            cells.setdefault(int(bars.row[bar]), []).append((low, length, label))
    return cells


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
