"""The ends of a program's messages, exchanges and transfers, and the streams in which they stand.

An end is one row of a program that sends to another rank, receives from it, or both; an exchange
has one for each direction in which it talks. A semantics puts the ends of each rank in streams
(``waiting_rules``), which hold them in program order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from bubbleproof.theory.model.actions import Ints
from bubbleproof.verify.communication.waiting_rules import Stream


class Flow(IntEnum):
    """What an end carries."""

    FORWARD = 0
    BACKWARD = 1
    EXCHANGE = 2
    LINK = 3  # EVICT and LOAD


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEnds:
    """Columns of one length in program order: the row of each end, what it carries, and between
    which ranks, in the direction of the message."""

    row: Ints
    flow: Ints
    source: Ints
    target: Ints

    @classmethod
    def of(cls, ends: Iterable[Ints]) -> StreamEnds:
        """The ends of tables of shape (number, 4): row, flow, source and target.

        Parameters
        ----------
        ends
            Tables of shape (number, 4), with the columns row, flow, source and target.
        """
        table = np.concatenate([*ends])
        row, flow, source, target = table[np.argsort(table[:, 0], kind="stable")].T
        return cls(row=row, flow=flow, source=source, target=target)

    def in_streams(self, stream: Stream, rank: Ints) -> tuple[Ints, Ints]:
        """The rows of all ends stream by stream, in program order in each, and a number for each
        row's stream; ``rank`` is that of each row of the program.

        Parameters
        ----------
        rank
            The rank of each row of the program.
        """
        is_link = self.flow == Flow.LINK
        low, high = np.minimum(self.source, self.target), np.maximum(self.source, self.target)
        nothing = np.zeros_like(low)
        first, second = {
            Stream.RANK: (nothing, nothing),
            Stream.PAIR: (low, high),
            Stream.ORDERED_PAIR: (self.source, self.target),
            Stream.FLOW: (self.flow, nothing),
            Stream.PARITY: (self.source % 2, nothing),
        }[stream]
        if stream is not Stream.RANK:
            first, second = np.where(is_link, low, first), np.where(is_link, high, second)
        kind = nothing if stream is Stream.RANK else is_link.astype(np.int64)
        size = 1 + max(max(c.max(initial=0) for c in (first, second)), 1)
        number = ((rank[self.row] * 2 + kind) * size + first) * size + second
        order = np.argsort(number, kind="stable")
        return self.row[order], number[order]
