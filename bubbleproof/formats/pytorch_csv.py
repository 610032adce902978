"""PyTorch's pipeline tables: one row per rank, one cell per action, no header.

A cell is ``<stage><TYPE><microbatch>`` (``3F7``), a collective ``<stage><TYPE>`` (``3UNSHARD``),
an overlapped pair ``(0F7;7B3)OVERLAP_F_B``, or empty for an idle step. Both forms that
``torch.distributed.pipelining`` writes are read, of torch 2.6 to 2.15 (``pytorch_runtime``):
``compute_only`` and ``compute_comms`` (with SEND and RECV). Cells are read whole: ``0F0x`` and
``0BW0`` are refused, where PyTorch's own reader takes them for ``0F0`` and ``0B``. Rows may differ
in length, as PyTorch's own do; the shorter ones idle at the end. ``refuse_cut_off`` tells such a
table from one that was cut off. Rows and columns in messages count from 1, as in a spreadsheet.

Dialects. Since late 2024 (``new``) ``B`` is the full backward and ``I`` the input gradient;
before (``old``) ``B`` was the input gradient and ``BW`` the full backward. A table is read as new
unless the reader is told that it is old: ``BW`` is refused otherwise. With ``B`` and ``W`` but no
``I``, it is a whole old table or a broken new one, and the reader asks to be told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bubbleproof.formats.action_text import known_action, too_large
from bubbleproof.formats.errors import UnusableInput, about, quoted
from bubbleproof.formats.files import MEBIBYTE, FilePath, read_lines
from bubbleproof.theory.model.actions import (
    COMMUNICATION_KINDS,
    NONE,
    Action,
    ActionTable,
    Ints,
    Kind,
)
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.limits import MAX_RANKS
from bubbleproof.verify.communication.runtime_collectives import COLLECTIVES

Dialect = Literal["new", "old"]

SIZE_LIMIT = 256 * MEBIBYTE
ROW_LIMIT = 4 * MEBIBYTE
LONGEST_CELL = 80

COMPUTATIONS = (Kind.F, Kind.B, Kind.I, Kind.W, Kind.OVERLAP_F_B)
KINDS = frozenset({*COMPUTATIONS, *COMMUNICATION_KINDS, *COLLECTIVES})

_EXPECTED = "a PyTorch action such as 0F0, 0UNSHARD or (0F1;1B0)OVERLAP_F_B"
_BACKWARD = re.compile(r"(\d{1,9})(BW|B|I|W)(\d{1,9})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveCell:
    """A collective of a table: it stands before the rank's program action number ``position``."""

    rank: int
    position: int
    action: Action


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableFile:
    """What a table says.

    ``program`` holds the computations and transfers, in the vocabulary of ``Kind`` whatever the
    dialect. Collectives are no task of a pipeline's problem; they stand apart in ``collectives``.
    ``row_lengths`` counts each row's cells, idle ones included.
    """

    program: Program
    collectives: tuple[CollectiveCell, ...]
    has_communication: bool
    dialect: Dialect
    row_lengths: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell that is not empty; row and column count from 0."""

    row: int
    column: int
    text: str

    @property
    def where(self) -> str:
        return f"row {self.row + 1}, column {self.column + 1}"


def read_table(path: FilePath, *, dialect: Dialect | None = None) -> TableFile:
    """Read a PyTorch table; ``dialect`` None is the new one, unless the table might be old.

    Raises ``UnusableInput`` naming row and column for a cell that is no action, an empty row, a
    stage on two ranks, and for a table that may be of the old dialect and is not said to be.
    """
    with about(path):
        return _table(read_lines(path, limit=SIZE_LIMIT, line_limit=ROW_LIMIT), dialect)


def _table(lines: Iterable[str], dialect: Dialect | None) -> TableFile:
    cells, row_lengths = _cells(lines)
    dialect = dialect or _untold_dialect(cells)
    actions = [_action(cell, dialect) for cell in cells]
    _refuse_stage_on_two_ranks(cells, actions)
    orders: list[list[Action]] = [[] for _ in row_lengths]
    for cell, action in zip(cells, actions, strict=True):
        orders[cell.row].append(action)
    program, collectives = apart(orders)
    return TableFile(
        program=program,
        collectives=collectives,
        has_communication=bool(program.actions.is_kind(*COMMUNICATION_KINDS).any()),
        dialect=dialect,
        row_lengths=row_lengths,
    )


def apart(
    orders: Sequence[Sequence[Action]], problem: Problem | None = None
) -> tuple[Program, tuple[CollectiveCell, ...]]:
    """The program, and the collectives that are no task of the problem, at their places."""
    program = Program.from_orders(orders)
    aside = program.actions.is_kind(*COLLECTIVES)
    if problem is not None:
        aside &= problem.locate(program.actions) == NONE
    cells = []
    before: Ints = np.cumsum(~aside) - ~aside  # rows of the program that stand before each
    first = np.searchsorted(program.resource, program.resource)
    for row in np.flatnonzero(aside).tolist():
        position = int(before[row] - before[first[row]])
        rank = int(program.resource[row])
        cells.append(CollectiveCell(rank=rank, position=position, action=program.actions[row]))
    kept = ~aside
    rest = Program(
        actions=program.actions.take(kept) if kept.any() else ActionTable.from_actions(()),
        resource=program.resource[kept],
    )
    return rest, tuple(cells)


def with_cells(program: Program, collectives: Sequence[CollectiveCell]) -> Program:
    """The program with collectives at their cells, as the table has them."""
    orders = program.orders(int(program.resource.max(initial=-1)) + 1)
    for cell in reversed(collectives):  # from each row's end on, so that positions stay right
        orders[cell.rank].insert(cell.position, cell.action)
    return Program.from_orders(orders)


def refuse_cut_off(table: TableFile, problem: Problem) -> None:
    """Raise ``UnusableInput`` where a row is shorter than others and misses actions of its rank.

    PyTorch writes rows of different lengths, so a short row alone is no fault; a short row without
    all of its rank's actions was cut off. ``problem`` is what the table should solve.
    """
    there = np.zeros(problem.num_tasks, dtype=bool)
    task = problem.locate(table.program.actions)
    there[task[task != NONE]] = True
    longest = max(table.row_lengths)
    for row, length in enumerate(table.row_lengths):
        missing = np.flatnonzero(~there & (problem.rank_of_task == row))
        if length < longest and len(missing):
            whole = table.row_lengths.index(longest) + 1
            raise UnusableInput(
                f"row {row + 1}",
                f"{longest} cells as in row {whole}, or every action of the rank",
                f"{length} cells, without {problem.label(int(missing[0]))}",
            )


def _cells(lines: Iterable[str]) -> tuple[list[_Cell], tuple[int, ...]]:
    cells: list[_Cell] = []
    row_lengths: list[int] = []
    row = -1
    for row, line in enumerate(lines):
        if row >= MAX_RANKS:
            raise UnusableInput(f"row {row + 1}", f"at most {MAX_RANKS} rows", "more")
        before = len(cells)
        row_lengths.append(line.count(",") + 1)
        for column, text in enumerate(line.split(",")):
            if stripped := text.strip():
                cells.append(_Cell(row, column, stripped))
                if len(stripped) > LONGEST_CELL:
                    raise _no_action(cells[-1])
        if len(cells) == before:
            raise UnusableInput(f"row {row + 1}", "the actions of a rank", "an empty row")
    if row < 0:
        raise UnusableInput("", "a row per rank", "an empty file")
    return cells, tuple(row_lengths)


def _untold_dialect(cells: Sequence[_Cell]) -> Dialect:
    """New, when nobody said so. Raises ``UnusableInput`` where the cells may be of the old one."""
    first: dict[str, _Cell] = {}
    for cell in cells:
        if match := _BACKWARD.fullmatch(cell.text):
            first.setdefault(match[2], cell)
        elif cell.text.endswith("OVERLAP_F_B"):
            first.setdefault("I", cell)
    if "BW" in first:
        old = first["BW"]
        hint = ' (a full backward in the old dialect only: dialect="old")'
        raise UnusableInput(old.where, _EXPECTED, quoted(old.text) + hint)
    if "W" in first and "B" in first and "I" not in first:
        expected = (
            'dialect="old" (B is the input gradient) or dialect="new" (B is the full backward)'
        )
        raise UnusableInput(first["W"].where, expected, "a table with B and W that fits both")
    return "new"


def _action(cell: _Cell, dialect: Dialect) -> Action:
    text = cell.text
    if dialect == "old":
        text = _renewed(cell)
    action = known_action(text)
    if action is None and (expected := too_large(text)) is not None:
        raise UnusableInput(cell.where, expected, quoted(cell.text))
    if action is None or action.kind not in KINDS or "." in text:
        raise _no_action(cell)
    return action


def _renewed(cell: _Cell) -> str:
    """The text of an old cell in the new dialect."""
    match = _BACKWARD.fullmatch(cell.text)
    if cell.text.startswith("(") or (match and match[2] == "I"):
        raise UnusableInput(cell.where, "the old dialect (F B W BW)", quoted(cell.text))
    if match is None:
        return cell.text
    kind = {"BW": "B", "B": "I", "W": "W"}[match[2]]
    return f"{match[1]}{kind}{match[3]}"


def _no_action(cell: _Cell) -> UnusableInput:
    return UnusableInput(cell.where, _EXPECTED, quoted(cell.text))


def _refuse_stage_on_two_ranks(cells: Sequence[_Cell], actions: Sequence[Action]) -> None:
    home: dict[int, int] = {}
    for cell, action in zip(cells, actions, strict=True):
        for part in (action, action.partner):
            if part is not None and home.setdefault(part.stage, cell.row) != cell.row:
                expected = f"stage {part.stage} on one rank only (row {home[part.stage] + 1})"
                found = f"{quoted(cell.text)}: a stage mapped twice"
                raise UnusableInput(cell.where, expected, found)
