"""Which action of a schedule each recorded call is, and for what its rank waits before it.

A rank's k-th send to another is the k-th SEND to it in the rank's program, its k-th receive from
it the k-th RECV; a run of several steps goes through the program again and again. So calls are
named by the order of each pair of ranks and direction, whatever the order among pairs.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from bubbleproof.theory.model.actions import Action
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.programs.messages import Message, as_kind, messages
from bubbleproof.verify.communication.recorded_calls import (
    RankRecord,
    RecordedCall,
    RecordedRun,
)
from bubbleproof.verify.communication.send_waits import SEND_OF

End = tuple[int, bool, int]  # a rank, whether it sends, and to or from which other


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitedEnd:
    """``position`` of a rank's program is passed only when the k-th of an end is complete.

    ``is_wait`` where the program waits for a SEND, which the semantics may complete at once.
    """

    position: int
    end: End
    number: int
    is_wait: bool


class CalledActions:
    """The recorded calls as actions of a lowered program; ranks that lost calls have none.

    ``has_own_order`` says that messages stood among the computations as in ``program``. Else only
    what is computed before a SEND is known: whoever lowers a schedule chooses where its RECVs are.
    """

    def __init__(
        self,
        problem: Problem,
        program: Program,
        run: RecordedRun,
        *,
        has_own_order: bool = True,
    ) -> None:
        self.has_own_order = has_own_order
        self.orders = program.orders(max(problem.num_ranks, len(problem.resources)))
        self.orders = self.orders[: problem.num_ranks]
        self.rows: dict[End, list[int]] = defaultdict(list)
        self.ends: list[dict[int, End]] = [{} for _ in self.orders]  # of each row that is one
        known = messages(problem)
        self._find_ends(known)
        self.awaited_ends = [
            [*self._inputs(problem, known, rank), *self._send_waits(rank)]
            for rank in range(len(self.orders))
        ]
        self._position: dict[RecordedCall, int] = {}
        for record in run.records.values():
            if record.is_whole and record.rank < len(self.orders):
                self._place(record)

    def _find_ends(self, known: list[Message]) -> None:
        """The SENDs and RECVs of each rank, and with which other."""
        peers: dict[tuple[int, Action], tuple[bool, int]] = {}
        for message in known:
            peers[message.source, message.send] = (True, message.target)
            peers[message.target, message.recv] = (False, message.source)
        for rank, order in enumerate(self.orders):
            for row, action in enumerate(order):
                if (rank, action) in peers:
                    end = (rank, *peers[rank, action])
                    self.ends[rank][row] = end
                    self.rows[end].append(row)

    def _inputs(self, problem: Problem, known: list[Message], rank: int) -> list[AwaitedEnd]:
        """The receives that feed the computations behind them."""
        order = self.orders[rank]
        row_of = {action: row for row, action in enumerate(order)}
        consumer = {m.recv: problem.actions[m.consumer] for m in known if m.target == rank}
        found = []
        for row, end in self.ends[rank].items():
            reader = row_of.get(consumer[order[row]]) if order[row] in consumer else None
            if reader is not None and reader > row:
                found.append(self._awaited(reader, row, end, is_wait=False))
        return found

    def _send_waits(self, rank: int) -> list[AwaitedEnd]:
        """The SENDs for which the program waits by name."""
        found = []
        rows = {action: row for row, action in enumerate(self.orders[rank])}
        for wait, action in enumerate(self.orders[rank]):
            sent = (
                rows.get(as_kind(action, SEND_OF[action.kind])) if action.kind in SEND_OF else None
            )
            if sent is not None and sent < wait and sent in self.ends[rank]:
                found.append(self._awaited(wait, sent, self.ends[rank][sent], is_wait=True))
        return found

    def _awaited(self, by: int, row: int, end: End, *, is_wait: bool) -> AwaitedEnd:
        number = self.rows[end].index(row)
        return AwaitedEnd(position=by, end=end, number=number, is_wait=is_wait)

    def _place(self, record: RankRecord) -> None:
        count: dict[End, int] = defaultdict(int)
        for call in record.calls:
            if call.peer is None:
                continue
            end = (record.rank, call.is_send, call.peer)
            position = self.position_of(end, count[end])
            count[end] += 1
            if position is not None:
                self._position[call] = position

    def position(self, call: RecordedCall) -> int | None:
        """Where a call stands in the program of its rank, counted over all steps."""
        return self._position.get(call)

    def knows_what_is_before(self, end: End) -> bool:
        """Whether the program says what its rank computes before it comes to an end."""
        return self.has_own_order or end[1]

    def action(self, call: RecordedCall) -> Action | None:
        """The action that issued a call; None where none is known to."""
        position = self._position.get(call)
        return None if position is None else self.action_at(call.rank, position)

    def position_of(self, end: End, number: int) -> int | None:
        """Where the program has the k-th of an end, over all steps; None where it has none.

        Parameters
        ----------
        number
            k, from 0 on.

        Returns
        -------
        int | None
            A position counted over all steps.
        """
        rows = self.rows.get(end)
        if not rows:
            return None
        step, row = divmod(number, len(rows))
        return step * len(self.orders[end[0]]) + rows[row]

    def action_at(self, rank: int, position: int) -> Action:
        """The action at a position of a rank's program.

        Parameters
        ----------
        rank
            From 0 on.
        position
            Counted over all steps, each of which runs the whole order.
        """
        return self.orders[rank][position % len(self.orders[rank])]

    def is_never_issued(self, end: End, number: int) -> bool:
        """Whether the k-th of an end is one that its rank does not do, though the other does.

        Parameters
        ----------
        number
            k, from 0 on.
        """
        rank, is_send, peer = end
        theirs, ours = self.rows.get((peer, not is_send, rank), []), self.rows.get(end, [])
        return bool(theirs) and number % len(theirs) >= len(ours)

    def awaited(self, rank: int, position: int, *, waits: bool) -> list[tuple[End, int]]:
        """(end, k) of what a rank waits for before a position, the last of each end.

        ``waits`` says whether its waits for SENDs count.

        Parameters
        ----------
        rank
            From 0 on.
        position
            Counted over all steps.
        waits
            Whether the rank's waits for its SENDs count.
        """
        last: dict[End, int] = {}
        step, within = divmod(position, len(self.orders[rank]))
        for awaited in self.awaited_ends[rank]:
            times = step + (awaited.position < within)
            if times and (waits or not awaited.is_wait):
                number = (times - 1) * len(self.rows[awaited.end]) + awaited.number
                last[awaited.end] = max(last.get(awaited.end, -1), number)
        return list(last.items())

    def departure(self, record: RankRecord) -> tuple[RecordedCall, Action] | None:
        """The first call of a rank that is not what its program has there, and what that is."""
        rows = self.ends[record.rank] if record.rank < len(self.ends) else {}
        if not rows or not record.is_whole or not self.has_own_order:
            return None
        order = list(rows.items())
        messages_called = [call for call in record.calls if call.peer is not None]
        for number, call in enumerate(messages_called):
            row, end = order[number % len(order)]
            if end[1:] != (call.is_send, call.peer):
                return call, self.orders[record.rank][row]
        return None
