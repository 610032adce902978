"""Programs run to where they stand still, as ranks and their devices would do.

A second judge of hangs, from programs instead of dumps: it shares nothing with
``verify.communication``. Each rank has rows: computations, SENDs, RECVs, waits and collectives. Its
host issues calls in order. It stops at a computation whose RECVs have not ended (``ahead`` = 0), or
leaves that to its device and goes on, past so many of them. What then starts and ends is what the
semantics says (``bubbleproof.verify.communication.semantics``), and two ends of different sizes or
types start and never end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

from bubbleproof.theory.model.actions import Action
from proofs_tests.verify.token_links import Part
from proofs_tests.verify.token_simulator import WAITS, Wiring

CALLS = ("send", "recv", "all_reduce", "barrier")


@dataclass(slots=True, kw_only=True, eq=False)
class ProgramRow:
    """A row of a rank's program; ``needs`` are the rows that end before what stands behind it."""

    rank: int
    operation: str
    step: int = 0
    action: Action | None = None
    token: Part | None = None
    peer: int | None = None
    group: str = "0"
    size: tuple[int, ...] = (4,)
    dtype: str = "Float"
    reads: set[Part] = field(default_factory=set)
    needs: list[ProgramRow] = field(default_factory=list)
    is_started: bool = False
    is_ended: bool = False

    @property
    def is_call(self) -> bool:
        return self.operation in CALLS

    @property
    def channel(self) -> tuple[str, int, int]:
        peer = self.rank if self.peer is None else self.peer
        ends = (self.rank, peer) if self.operation == "send" else (peer, self.rank)
        return (self.group, *ends)

    def fits(self, other: ProgramRow) -> bool:
        same = (self.size, self.dtype) == (other.size, other.dtype)
        return same and (self.peer is not None or self.operation == other.operation)


def rows_of(wiring: Wiring, orders: list[list[Action]], steps: int = 1) -> list[list[ProgramRow]]:
    """The rows of lowered programs that are run several times, before any is changed."""
    found = []
    for rank, order in enumerate(orders):
        rows = []
        for step, action in product(range(steps), order):
            row = ProgramRow(rank=rank, operation="compute", action=action, step=step)
            if action.kind in WAITS:
                row.operation = "wait"
                row.token = (WAITS[action.kind], action.stage, action.microbatch, action.slice)
            elif action in wiring.inputs:
                row.reads = set(wiring.inputs[action])
            else:
                row.operation, row.token, row.peer = wiring.post(rank, action)
            rows.append(row)
        found.append(rows)
    return found


class StandingRun:
    """A run of programs under one semantics, up to where nothing more can happen."""

    def __init__(self, rows: list[list[ProgramRow]], semantics: str, *, ahead: int = 0) -> None:
        self.rows, self.semantics = rows, semantics
        self.position = [0] * len(rows)
        self.budget = [ahead] * len(rows)
        self.issued: list[list[ProgramRow]] = [[] for _ in rows]
        for order in rows:
            self._find_needs(order)
        while self._host_steps() or self._device_steps():
            pass

    @staticmethod
    def _find_needs(order: list[ProgramRow]) -> None:
        before: list[ProgramRow] = []
        needs: dict[int, ProgramRow] = {}
        for row in order:
            mine = [r for r in before if r.step == row.step]
            if row.operation == "compute":
                reads = [r for r in mine if r.operation == "recv" and r.token in row.reads]
            elif row.operation == "wait":
                reads = [r for r in mine if r.operation == "send" and r.token == row.token]
            else:
                reads = []
            needs |= {id(r): r for r in reads}
            row.needs = list(needs.values())
            before.append(row)

    def _host_steps(self) -> bool:
        moved = False
        for rank, order in enumerate(self.rows):
            while self.position[rank] < len(order):
                row = order[self.position[rank]]
                if row.is_call and row not in self.issued[rank]:
                    self.issued[rank].append(row)
                    moved = True
                if row.is_call and self.semantics == "rendezvous" and not row.is_ended:
                    break
                if not row.is_call and any(not need.is_ended for need in row.needs):
                    if not self.budget[rank]:
                        break
                    self.budget[rank] -= 1
                self.position[rank] += 1
                moved = True
        return moved

    def stream(self, row: ProgramRow) -> tuple[object, ...]:
        if self.semantics == "rank-stream":
            return ()
        if row.peer is None:
            return (row.group,)
        if self.semantics in ("buffered", "rendezvous"):
            return row.channel
        return (row.group, *sorted((row.rank, row.peer)))

    def before_in_stream(self, row: ProgramRow) -> list[ProgramRow]:
        """Those before a row in its stream that have not ended."""
        issued = self.issued[row.rank]
        earlier = issued[: issued.index(row)]
        return [r for r in earlier if self.stream(r) == self.stream(row) and not r.is_ended]

    def launched_before(self, row: ProgramRow) -> list[ProgramRow]:
        issued = self.issued[row.rank]
        is_ordered = self.semantics in ("launch-order", "rank-stream")
        return [r for r in issued[: issued.index(row)] if is_ordered and not r.is_started]

    def _may_start(self, row: ProgramRow) -> bool:
        waits = self.before_in_stream(row)
        if self.semantics == "launch-order":
            waits += self.launched_before(row)
        return not waits and all(need.is_ended for need in row.needs)

    def _device_steps(self) -> bool:
        moved = False
        for issued in self.issued:
            for row in issued:
                if not row.is_started and self._may_start(row):
                    row.is_started = moved = True
                    row.is_ended |= self.semantics == "buffered" and row.operation == "send"
        for together in self.meetings():
            first = together[0]
            may_end = all(r.is_started for r in together) and all(r.fits(first) for r in together)
            if may_end and not all(r.is_ended for r in together):
                moved = True
                for row in together:
                    row.is_ended = True
        return moved

    def meetings(self) -> Iterator[list[ProgramRow]]:
        """The two ends of each message, and all members of each collective, once all are there."""
        sends: dict[object, list[ProgramRow]] = defaultdict(list)
        recvs: dict[object, list[ProgramRow]] = defaultdict(list)
        entered: dict[tuple[str, int], list[ProgramRow]] = defaultdict(list)
        for issued in self.issued:
            count: dict[str, int] = defaultdict(int)
            for row in issued:
                if row.peer is None:
                    entered[row.group, count[row.group]].append(row)
                    count[row.group] += 1
                else:
                    (sends if row.operation == "send" else recvs)[row.channel].append(row)
        for channel, outs in sends.items():
            yield from ([out, into] for out, into in zip(outs, recvs[channel], strict=False))
        yield from (rows for rows in entered.values() if len(rows) == len(self.rows))

    def pending(self, rank: int) -> list[ProgramRow]:
        return [row for row in self.issued[rank] if not row.is_ended]

    @property
    def hangs(self) -> bool:
        return any(self.pending(rank) for rank in range(len(self.rows)))

    def other_ends(self, row: ProgramRow) -> dict[int, ProgramRow | None]:
        """By rank the row without which this one does not end, issued or still to be; or None."""
        if row.peer is None:
            number = self._collective_number(row)
            others = [r for r in range(len(self.rows)) if r != row.rank]
            return {rank: self._nth_collective(rank, row.group, number) for rank in others}
        number = [r for r in self.rows[row.rank] if self._is_like(r, row)].index(row)
        ends = [
            r
            for r in self.rows[row.peer]
            if r.peer == row.rank and r.operation != row.operation and r.group == row.group
        ]
        return {row.peer: ends[number] if number < len(ends) else None}

    @staticmethod
    def _is_like(one: ProgramRow, other: ProgramRow) -> bool:
        return one.peer is not None and (one.channel, one.operation) == (
            other.channel,
            other.operation,
        )

    def _collective_number(self, row: ProgramRow) -> int:
        return self._collectives(row.rank, row.group).index(row)

    def _nth_collective(self, rank: int, group: str, number: int) -> ProgramRow | None:
        rows = self._collectives(rank, group)
        return rows[number] if number < len(rows) else None

    def _collectives(self, rank: int, group: str) -> list[ProgramRow]:
        rows = self.rows[rank]
        return [r for r in rows if r.is_call and r.peer is None and r.group == group]
