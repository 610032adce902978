"""What the symbolic run executes, and what it finds wrong with it.

A ``SymbolicAction`` is one action of a program's row (an ``OVERLAP_F_B`` is two of one row). A
``Fault`` says what the work needs, what it finds instead, and in which row that came about;
sentences are made only for faults that are shown. ``awaited`` is the ``supply`` that would end the
fault, if any can.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from bubbleproof.theory.model.actions import NONE, Kind
from bubbleproof.verify.dataflow.training_step import SamplePart, name

Supply = tuple[int, ...]
Thing = tuple[str, Kind | None, SamplePart]  # a sentence with {} for the action, which may be None
NO_PART: SamplePart = (NONE, NONE, NONE)


class SymbolicAction(NamedTuple):
    """One action: its row, the resource it stands on, and which action it is."""

    row: int
    resource: int
    kind: Kind
    part: SamplePart
    piece: int = NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """``needed`` against ``found``; ``origin`` is the row that made it so (``NONE``: no row).

    ``subject`` is what needs it where that is no work (a gradient when the run has ended).
    """

    needed: Thing
    found: Thing
    origin: int = NONE
    awaited: Supply | None = None
    subject: str = ""

    def sentence(self, *, sliced: bool) -> str:
        """What the work lacks, ``... needs ...: ...``; no subject stands where that is the work.

        Parameters
        ----------
        sliced
            Whether slices are written out.
        """
        begin = f"{self.subject} needs" if self.subject else "needs"
        return f"{begin} {_text(self.needed, sliced)}: {_text(self.found, sliced)}"


def said(sentence: str) -> Thing:
    """A thing that names no action.

    Parameters
    ----------
    sentence
        What it says of itself.
    """
    return sentence, None, NO_PART


def _text(thing: Thing, sliced: bool) -> str:
    sentence, kind, part = thing
    return sentence if kind is None else sentence.format(name(kind, part, sliced=sliced))
