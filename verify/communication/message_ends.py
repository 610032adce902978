"""Where the ends of messages stand in a program: the SENDs and RECVs of each, by rank and name."""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.model.actions import NONE, Bools
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.programs.messages import MessageTable


class MessageEnds:
    """The rows of the SEND and of the RECV of each message.

    ``is_whole``: both stand once. ``send`` and ``recv`` are their rows then, and any row otherwise.
    """

    def __init__(self, program: Program, is_end: Bools, messages: MessageTable) -> None:
        """``is_end``: which rows of the program are ends of messages."""
        rows = np.flatnonzero(is_end)
        named = program.actions.take(rows), messages.send, messages.recv
        ranks = np.concatenate([program.resource[rows], messages.source, messages.target])
        keys = np.concatenate([actions.keys() for actions in named])
        place = np.unique(keys, return_inverse=True)[1].ravel()
        place = place * (1 + ranks.max(initial=0)) + ranks
        found, wanted = np.split(place, [len(rows)])
        order = np.argsort(found, kind="stable")
        self._rows, found = rows[order], found[order]
        self._begin = np.searchsorted(found, wanted)
        again = np.ones(len(wanted), dtype=np.bool_)  # what is wanted twice stands for the first
        again[np.unique(wanted, return_index=True)[1]] = False
        self._stop = np.where(again, self._begin, np.searchsorted(found, wanted, side="right"))
        self.is_whole: Bools = (self._stop - self._begin == 1).reshape(2, -1).all(axis=0)
        self.send, self.recv = np.append(self._rows, NONE)[self._begin].reshape(2, -1)
        is_foreign = ~np.isin(found, wanted)
        self._foreign = self._rows[is_foreign], found[is_foreign]

    def rows_of(self, number: int) -> tuple[list[int], list[int]]:
        """All rows of a message's SEND, and of its RECV.

        Parameters
        ----------
        number
            Of the message, in the order of the table.
        """
        send, recv = (
            self._rows[self._begin[end] : self._stop[end]].tolist()
            for end in (number, number + len(self.send))
        )
        return send, recv

    def foreign(self) -> list[list[int]]:
        """The rows of each end that no message has, in the order of their first."""
        rows: dict[int, list[int]] = {}
        for row, place in zip(*(column.tolist() for column in self._foreign), strict=True):
            rows.setdefault(place, []).append(row)
        return sorted(rows.values())
