"""What recorded calls that are not complete wait for, under one semantics.

The nodes of the graph are

- the *end* of a call: all ends of one message, or all members of a collective, end together, when
  all of them have started;
- the *start* of a call: after the end before it in its stream, after what its rank computed before
  it, and where the semantics says so after the starts of its rank before it;
- the *issue* of a call that is not recorded, by a rank that has not come to it.

The streams are those of torch on NCCL: a message that is not batched has one for each unordered
pair of ranks, batches and collectives that of their communicator. What a rank computed before a
call is known where there is a program; without one each earlier receive that is not complete may be
its input, and such a wait is not certain.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from bubbleproof.verify.communication.called_actions import CalledActions
from bubbleproof.verify.communication.recorded_calls import RecordedCall, RecordedRun
from bubbleproof.verify.communication.semantics import Semantics

Stream = tuple[object, ...]


class StepOfCall(Enum):
    """What a node of the graph is, of its call."""

    END = "end"
    START = "start"
    ISSUE = "issue"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallNode:
    """The end or the start of ``call``, or its being issued by ``rank`` for ``call`` to end."""

    step: StepOfCall
    call: RecordedCall
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitOfCall:
    """``node`` waits for ``on``; ``is_certain`` where that follows from what is known."""

    node: CallNode
    on: CallNode
    is_certain: bool
    why: str


def end_of(call: RecordedCall) -> CallNode:
    """The node at which a call has ended on its rank."""
    return CallNode(step=StepOfCall.END, call=call, rank=call.rank)


def start_of(call: RecordedCall) -> CallNode:
    """The node at which a call begins on its rank."""
    return CallNode(step=StepOfCall.START, call=call, rank=call.rank)


class RecordedWaits:
    """The waits among the calls of a run that are not complete."""

    def __init__(
        self, run: RecordedRun, semantics: Semantics, actions: CalledActions | None = None
    ) -> None:
        self.run, self.semantics, self.actions = run, semantics, actions
        self._before: dict[RecordedCall, list[RecordedCall]] = {}  # in its stream
        self._launched: dict[RecordedCall, list[RecordedCall]] = {}  # the one before on its rank
        self._inputs: dict[RecordedCall, list[RecordedCall]] = {}  # receives before it
        self._count: dict[tuple[int, bool, int], list[RecordedCall]] = defaultdict(list)
        self._number: dict[RecordedCall, int] = {}
        for calls in run.pending.values():
            self._order(calls)
        for call in run.calls():
            if call.peer is not None:
                of_end = self._count[call.rank, call.is_send, call.peer]
                self._number[call] = len(of_end)
                of_end.append(call)

    def _order(self, calls: Sequence[RecordedCall]) -> None:
        """What stands before each call of one rank: the last batch of its stream, and so on."""
        last: dict[Stream, list[RecordedCall]] = {}
        before: dict[Stream, list[RecordedCall]] = {}
        oldest: dict[int, RecordedCall] = {}  # receive, by peer
        launched: list[RecordedCall] = []
        at_batch: tuple[list[RecordedCall], list[RecordedCall]] = ([], [])
        for call in calls:
            stream = self._stream(call)
            batch = last.get(stream, [])
            if batch and call.batch is not None and batch[-1].batch == call.batch:
                batch.append(call)
                self._launched[call], self._inputs[call] = at_batch
            else:
                before[stream], last[stream] = batch, [call]
                at_batch = (launched, list(oldest.values()))
                self._launched[call], self._inputs[call] = at_batch
            self._before[call] = before[stream]
            launched = [call]
            if call.peer is not None and not call.is_send:
                oldest.setdefault(call.peer, call)

    def _stream(self, call: RecordedCall) -> Stream:
        if self.semantics is Semantics.RANK_STREAM:
            return ()
        if call.peer is None or call.batch is not None:
            return (call.communicator,)
        if self.semantics in (Semantics.BUFFERED, Semantics.RENDEZVOUS):
            return call.channel
        return (call.communicator, *sorted((call.rank, call.peer)))

    def waits(self, node: CallNode) -> Iterator[WaitOfCall]:
        """What a node waits for directly."""
        if node.step is StepOfCall.END:
            yield from self._of_end(node)
        elif node.step is StepOfCall.START:
            yield from self._of_start(node)
        else:
            yield from self._of_issue(node)

    def _of_end(self, node: CallNode) -> Iterator[WaitOfCall]:
        call = node.call
        yield WaitOfCall(node=node, on=start_of(call), is_certain=True, why="starts first")
        for rank, other in self.run.others(call).items():
            if other is None:
                issue = CallNode(step=StepOfCall.ISSUE, call=call, rank=rank)
                yield WaitOfCall(node=node, on=issue, is_certain=True, why="other end")
            elif not other.is_completed:
                yield WaitOfCall(node=node, on=start_of(other), is_certain=True, why="other end")

    def _of_start(self, node: CallNode) -> Iterator[WaitOfCall]:
        call = node.call
        for earlier in self._before[call]:
            yield WaitOfCall(node=node, on=end_of(earlier), is_certain=True, why="stream")
        if self.semantics is Semantics.LAUNCH_ORDER:
            for earlier in self._launched[call]:
                on = start_of(earlier)
                yield WaitOfCall(node=node, on=on, is_certain=True, why="launch order")
        position = None
        if self.actions is not None and call.peer is not None:
            end = (call.rank, call.is_send, call.peer)
            if self.actions.knows_what_is_before(end):
                position = self.actions.position(call)
        if position is None:
            for earlier in self._inputs[call]:
                yield WaitOfCall(node=node, on=end_of(earlier), is_certain=False, why="input")
        else:
            yield from self._before_position(node, call.rank, position)

    def _before_position(self, node: CallNode, rank: int, position: int) -> Iterator[WaitOfCall]:
        """What the program of a rank waits for before a position, and is not complete."""
        if self.actions is None:
            return
        waits = self.semantics is not Semantics.BUFFERED
        for end, number in self.actions.awaited(rank, position, waits=waits):
            called = self._count.get(end, [])[: number + 1]
            if called and not called[-1].is_completed:
                on = end_of(next(call for call in called if not call.is_completed))
                yield WaitOfCall(node=node, on=on, is_certain=True, why="input")

    def _of_issue(self, node: CallNode) -> Iterator[WaitOfCall]:
        pending = self.run.pending.get(node.rank, [])
        if self.is_never_issued(node) or not pending:
            return
        found = False
        position = self.position_of_issue(node)
        if self.actions is None or not self.actions.knows_what_is_before(
            self._other_end(node.call)
        ):
            position = None
        if position is not None:
            for wait in self._before_position(node, node.rank, position):
                found = True
                yield wait
        if self.semantics is Semantics.RENDEZVOUS and position is not None and len(pending) == 1:
            found = True
            why = "blocking call"
            yield WaitOfCall(node=node, on=end_of(pending[-1]), is_certain=True, why=why)
        if not found:
            for call in {self._stream(call): call for call in reversed(pending)}.values():
                yield WaitOfCall(node=node, on=end_of(call), is_certain=False, why="not issued")

    def is_never_issued(self, node: CallNode) -> bool:
        """Whether the program of a rank does not have the call for which another waits."""
        call = node.call
        if self.actions is None or call.peer is None or self.actions.position(call) is None:
            return False
        return self.actions.is_never_issued(self._other_end(call), self._number[call])

    def position_of_issue(self, node: CallNode) -> int | None:
        """Where its rank's program issues the other end of a call; None where that is not known."""
        call = node.call
        if self.actions is None or call.peer is None or self.actions.position(call) is None:
            return None
        return self.actions.position_of(self._other_end(call), self._number[call])

    def counterpart(self, call: RecordedCall) -> RecordedCall | None:
        """The other end of a message by its place among all of its ranks, in any communicator."""
        theirs, number = self._count[self._other_end(call)], self._number[call]
        return theirs[number] if number < len(theirs) else None

    def _other_end(self, call: RecordedCall) -> tuple[int, bool, int]:
        peer = call.rank if call.peer is None else call.peer
        return peer, not call.is_send, call.rank
