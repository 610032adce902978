"""Actions: the words a schedule is written in.

An action is one unit of work of one pipeline stage: the forward of a microbatch, its backward, a
transfer, a collective. Its text form is PyTorch's, ``<stage><KIND><microbatch>[.<slice>]``, and
where a W is cut into single GEMMs ``#<part>`` tells which one it is:

>>> Action.parse("3I7.1")
Action(stage=3, kind=<Kind.I: 2>, microbatch=7, slice=1, part=-1, partner=None)
>>> str(Action.parse("3W7.1#0"))
'3W7.1#0'
>>> str(Action.parse("(0F7;7B3)OVERLAP_F_B"))
'(0F7;7B3)OVERLAP_F_B'

``B`` is the full backward, ``I`` the backward for the input only and ``W`` for the weights only
(the zero-bubble papers and PyTorch's first CSV files write ``B`` for ``I``; see
``formats.pytorch_csv``). Stages, microbatches, slices and parts count from 0; a whole action has
part ``NONE``. Kinds that belong to a stage and not to a microbatch (``UNSHARD``, ``STEP``, ...)
have microbatch ``NONE``. A schedule of half a million actions is ordinary, so many of them live as
columns in an ``ActionTable``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Self

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Column = Ints | int  # a number stands for a column of it

NONE = -1
MAX_STAGE, MAX_MICROBATCH, MAX_SLICE = (1 << 16) - 2, (1 << 24) - 2, (1 << 12) - 2
MAX_PART = (1 << 6) - 2


class Kind(IntEnum):
    """What an action does; the names are the text form."""

    F = 0
    B = 1
    I = 2  # noqa: E741 - the field's letter for the input gradient
    W = 3
    R = 4
    EVICT = 5
    LOAD = 6
    OFFLOAD = 7
    RELOAD = 8
    UNSHARD = 9
    RESHARD = 10
    REDUCE_GRAD = 11
    STEP = 12
    SEND_F = 13
    RECV_F = 14
    SEND_B = 15
    RECV_B = 16
    OVERLAP_F_B = 17
    WAIT_SEND_F = 18
    WAIT_SEND_B = 19
    WAIT_REDUCE_GRAD = 20


FORWARD_KINDS = (Kind.F, Kind.OVERLAP_F_B)
BACKWARD_KINDS = (Kind.B, Kind.I, Kind.OVERLAP_F_B)
COMMUNICATION_KINDS = tuple(kind for kind in Kind if "SEND" in kind.name or "RECV" in kind.name)
STAGE_KINDS = (Kind.UNSHARD, Kind.RESHARD, Kind.REDUCE_GRAD, Kind.STEP, Kind.WAIT_REDUCE_GRAD)

_TEXT = re.compile(r"([0-9]{1,9})([A-Z_]+?)([0-9]{1,9})?(?:\.([0-9]{1,9}))?(?:#([0-9]{1,9}))?")
_OVERLAP = re.compile(r"\(([^();]+);([^();]+)\)OVERLAP_F_B")


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One action; ``partner`` is the backward that an ``OVERLAP_F_B`` runs with its forward.

    ``part`` is the GEMM of a W that is cut, ``NONE`` of any other action. Raises ``ValueError`` for
    a negative index, a missing or needless microbatch, a part of no W, or a bad partner.
    """

    stage: int
    kind: Kind
    microbatch: int = NONE
    slice: int = 0
    part: int = NONE
    partner: Action | None = None

    def __post_init__(self) -> None:
        fits = 0 <= self.stage <= MAX_STAGE and NONE <= self.microbatch <= MAX_MICROBATCH
        if not (fits and 0 <= self.slice <= MAX_SLICE and NONE <= self.part <= MAX_PART):
            bad = next(n for n, low, high in _INDICES if not low <= getattr(self, n) <= high)
            raise ValueError(f"{bad} must be 0 to {_RANGES[bad][1]}, got {getattr(self, bad)}")
        if (self.microbatch == NONE) != (self.kind in STAGE_KINDS):
            wants = "no microbatch" if self.kind in STAGE_KINDS else "a microbatch"
            raise ValueError(f"{self.kind.name} takes {wants}, got {self.microbatch}")
        if self.part != NONE and self.kind is not Kind.W:
            raise ValueError(f"only W is cut into parts, got part {self.part} of {self.kind.name}")
        if (self.partner is None) == (self.kind is Kind.OVERLAP_F_B):
            raise ValueError(f"{self.kind.name}: exactly OVERLAP_F_B has a partner action")
        if self.partner is not None and self.partner.kind is not Kind.B:
            raise ValueError(f"OVERLAP_F_B pairs an F with a B, got {self.partner}")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the text form; the whole text must match (PyTorch's reader accepts ``0F0x``).

        Parameters
        ----------
        text
            ``<stage><KIND><microbatch>[.<slice>][#<part>]``, or a pair ``(<F>;<B>)OVERLAP_F_B``.

        Raises
        ------
        ValueError
            For any other text; the message says what was expected and what was found.
        """
        if overlap := _OVERLAP.fullmatch(text):
            forward, backward = (cls.parse(part.strip()) for part in overlap.groups())
            if (forward.kind, backward.kind) != (Kind.F, Kind.B) or backward.slice != forward.slice:
                raise ValueError(f"expected (<F action>;<B action>)OVERLAP_F_B, got {text[:60]!r}")
            return replace(forward, kind=Kind.OVERLAP_F_B, partner=backward)
        match = _TEXT.fullmatch(text)
        if match is None or match[2] not in Kind.__members__ or match[2] == "OVERLAP_F_B":
            expected = "<stage><KIND><microbatch>[.<slice>][#<part>]"
            raise ValueError(f"expected {expected}, got {text[:60]!r}")
        return cls(
            stage=int(match[1]),
            kind=Kind[match[2]],
            microbatch=int(match[3] or NONE),
            slice=int(match[4] or 0),
            part=int(match[5] or NONE),
        )

    def label(self, *, sliced: bool = False) -> str:
        """The text form; with ``sliced`` slice 0 is written out too.

        Parameters
        ----------
        sliced
            Whether the table that the action stands in has slices.
        """
        if self.partner is not None:
            forward = replace(self, kind=Kind.F, partner=None)
            inside = f"{forward.label(sliced=sliced)};{self.partner.label(sliced=sliced)}"
            return f"({inside})OVERLAP_F_B"
        index = "" if self.microbatch == NONE else str(self.microbatch)
        slice_ = f".{self.slice}" if sliced or self.slice else ""
        part = "" if self.part == NONE else f"#{self.part}"
        return f"{self.stage}{self.kind.name}{index}{slice_}{part}"

    def __str__(self) -> str:
        return self.label()


_RANGES = {
    "kind": (0, len(Kind) - 1),
    "stage": (NONE, MAX_STAGE),
    "microbatch": (NONE, MAX_MICROBATCH),
    "slice": (0, MAX_SLICE),
    "part": (NONE, MAX_PART),
}
_INDICES = [("stage", 0, MAX_STAGE), *((n, *_RANGES[n]) for n in ("microbatch", "slice", "part"))]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ActionTable:
    """Many actions as columns of one length; ``part``, ``partner_*``: ``NONE`` if there is none.

    A long column of one number takes the room of one, and cannot be written to. Raises
    ``ValueError`` for columns of different lengths and for numbers beyond an action's
    (``keys`` packs them and would take one action for another). Stage ``NONE`` stands for no stage.
    """

    kind: Ints
    stage: Ints
    microbatch: Ints
    slice: Ints
    part: Ints
    partner_stage: Ints
    partner_microbatch: Ints

    def __post_init__(self) -> None:
        lengths = set(map(len, self._columns()))
        if len(lengths) > 1:
            raise ValueError(f"columns of an ActionTable differ in length: {sorted(lengths)}")
        least, most = np.minimum.reduce, np.maximum.reduce  # tables are mostly small
        for name, (low, high) in _RANGES.items():
            column = getattr(self, name)
            if len(column) and not low <= least(column) <= most(column) <= high:
                worst = column.min() if column.min() < low else column.max()
                raise ValueError(f"{name} must be {low} to {high}, got {worst}")
        for name in self.__slots__ if len(self) > 4096 else ():
            if (column := getattr(self, name)).strides != (0,) and (column == column[0]).all():
                object.__setattr__(self, name, np.broadcast_to(column[0], column.shape))

    def require_actions(self) -> None:
        """Raise ``ValueError`` where a row is no ``Action`` (a stage ``NONE``, a lost partner)."""
        wrong = (self.stage == NONE) | ((self.part != NONE) & (self.kind != Kind.W))
        wrong |= (self.microbatch == NONE) != self.is_kind(*STAGE_KINDS)
        wrong |= (self.partner_stage == NONE) == (self.kind == Kind.OVERLAP_F_B)
        for row in np.flatnonzero(wrong)[:1].tolist():
            try:
                self[row]  # says what is wrong
            except ValueError as error:
                raise ValueError(f"{error} in row {row}") from None

    @classmethod
    def of(
        cls, kind: Column, stage: Column, microbatch: Column, slice: Column = 0, part: Column = NONE
    ) -> ActionTable:
        """Broadcast scalars and columns to one table without partners."""
        zeros = 0 * (kind + stage + microbatch + slice + part)  # in the shape of all together
        given = (kind, stage, microbatch, slice, part, NONE, NONE)
        return cls._of_columns(np.array(zeros + one, dtype=np.int64).ravel() for one in given)

    @classmethod
    def _of_columns(cls, columns: Iterable[Ints]) -> ActionTable:
        return cls(**dict(zip(cls.__slots__, columns, strict=True)))

    def _columns(self) -> list[Ints]:
        return [getattr(self, name) for name in self.__slots__]

    @classmethod
    def from_actions(cls, actions: Iterable[Action]) -> ActionTable:
        """Columns of the given actions, in their order."""
        rows = [
            (a.kind, a.stage, a.microbatch, a.slice, a.part)
            + ((a.partner.stage, a.partner.microbatch) if a.partner else (NONE, NONE))
            for a in actions
        ]
        return cls._of_columns(np.array(rows, dtype=np.int64).reshape(len(rows), 7).T)

    @classmethod
    def concatenate(cls, tables: Iterable[ActionTable]) -> ActionTable:
        """The rows of all tables, one after another."""
        parts = list(tables) or [cls.from_actions(())]
        columns = zip(*(table._columns() for table in parts), strict=True)
        return cls._of_columns(map(np.concatenate, columns))

    def take(self, rows: Ints | Bools) -> ActionTable:
        """The chosen rows (indices or a mask), in the chosen order.

        Parameters
        ----------
        rows
            Indices of rows, or one flag per row.
        """
        return self._of_columns(column[rows] for column in self._columns())

    def __len__(self) -> int:
        return len(self.kind)

    def __getitem__(self, row: int) -> Action:
        return _action(*(column.item(row) for column in self._columns()))

    def __iter__(self) -> Iterator[Action]:
        return map(_action, *(column.tolist() for column in self._columns()))

    @property
    def is_sliced(self) -> bool:
        """Whether any action names a slice above 0, so that labels should write slices out.

        What a stage does as a whole has no slices: of collectives it is their number.
        """
        return bool(self.slice.any() and self.slice[~self.is_kind(*STAGE_KINDS)].any())

    def label(self, row: int) -> str:
        """The text form of one row, with slices written out when the table has any.

        Parameters
        ----------
        row
            The index of the row.
        """
        return self[row].label(sliced=self.is_sliced)

    def keys(self) -> Ints:
        """One integer per row, equal exactly for equal (kind, stage, microbatch, slice, part)."""
        key = self.kind << 16 | (self.stage + 1)
        key = (key << 24 | (self.microbatch + 1)) << 12 | self.slice
        return key << 6 | (self.part + 1)  # 5 + 16 + 24 + 12 + 6 bits

    def is_kind(self, *kinds: Kind) -> Bools:
        """Mask of the rows whose kind is one of ``kinds``."""
        lookup = np.zeros(len(Kind), dtype=bool)
        lookup[list(kinds)] = True
        return lookup[self.kind]


_KINDS = tuple(Kind)


def _action(
    of: int, stage: int, microbatch: int, slice: int, part: int, other: int, backward: int
) -> Action:
    """The action of one row; ``other`` and ``backward`` are its partner's stage and microbatch."""
    partner = None
    if other != NONE:
        partner = Action(stage=other, kind=Kind.B, microbatch=backward, slice=slice)
    return Action(
        stage=stage, kind=_KINDS[of], microbatch=microbatch, slice=slice, part=part, partner=partner
    )
