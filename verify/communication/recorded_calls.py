"""The calls of communication that ranks recorded, and which of them are ends of one message.

A recorder keeps what its rank *issued*, in order, and which of that has *completed*. It does not
say what a call waits for, nor what the rank would have issued next. Messages carry no tags: within
a communicator the k-th send from one rank to another is received by the k-th receive there. A
collective is known by its number within its communicator, which all members count alike. Where a
recorder lost its first calls, the first that are not complete are taken for ends of one message; a
send that was complete before its receive makes that wrong, so it is no more than likely.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from math import prod

Place = tuple[int, int]  # a rank, and the number of a call among those of its record
Channel = tuple["Communicator", int, int]  # what one rank sends to another there

# Collectives whose members may give tensors of different sizes.
_UNEVEN = {
    "all_to_all",
    "all_to_all_single",
    "all_to_all_v_single",
    "scatter",
    "all_gather_v",
    "reduce_scatter_v",
    "split",
    "new_window",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Communicator:
    """A process group: its name, and the ranks of the job that are its members."""

    name: str
    ranks: tuple[int, ...]

    def __str__(self) -> str:
        return f"communicator {self.name!r} of ranks {', '.join(map(str, self.ranks))}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordedCall:
    """A call that ``rank`` issued: a ``send`` to or a ``recv`` from ``peer``, or a collective.

    ``number`` counts the calls of the record, ``record_id`` is the recorder's own; ``sequence``
    counts the collectives of the communicator. Calls of one ``batch`` of a rank start together.
    """

    rank: int
    number: int
    record_id: int
    operation: str
    communicator: Communicator
    sizes: tuple[tuple[int, ...], ...] = ()
    dtypes: tuple[str, ...] = ()
    peer: int | None = None
    sequence: tuple[int, int] = (0, 0)
    batch: int | None = None
    is_completed: bool = False

    @property
    def place(self) -> Place:
        return self.rank, self.number

    @property
    def is_message(self) -> bool:
        return self.peer is not None

    @property
    def is_send(self) -> bool:
        return self.operation == "send"

    @property
    def channel(self) -> Channel:
        """Where a message goes. Precondition: ``is_message``."""
        peer = self.rank if self.peer is None else self.peer
        ends = (self.rank, peer) if self.is_send else (peer, self.rank)
        return self.communicator, *ends

    @property
    def tensor(self) -> str:
        """What is sent, in words."""
        sizes = " and ".join("x".join(map(str, size)) or "1" for size in self.sizes)
        return f"{sizes or 'nothing'} of {' and '.join(self.dtypes) or 'no type'}"

    def __str__(self) -> str:
        to = "" if self.peer is None else f" {'to' if self.is_send else 'from'} rank {self.peer}"
        return f"rank {self.rank}'s {self.operation}{to} (record {self.record_id})"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankRecord:
    """What one rank issued, in order; ``is_whole`` where nothing before it was lost."""

    rank: int
    calls: tuple[RecordedCall, ...]
    is_whole: bool = True

    @property
    def pending(self) -> list[RecordedCall]:
        return [call for call in self.calls if not call.is_completed]


@dataclass(eq=False)
class RecordedRun:
    """The records of some or all ranks of one job."""

    num_ranks: int
    records: Mapping[int, RankRecord]

    def __post_init__(self) -> None:
        self.records = dict(sorted(self.records.items()))
        self.pending = {rank: record.pending for rank, record in self.records.items()}

    @property
    def missing(self) -> list[int]:
        """The ranks without a record."""
        return [rank for rank in range(self.num_ranks) if rank not in self.records]

    @property
    def lost(self) -> list[int]:
        """The ranks whose recorders lost their first calls."""
        return [rank for rank, record in self.records.items() if not record.is_whole]

    def calls(self) -> Iterator[RecordedCall]:
        """All calls of all ranks, rank by rank, each in the order in which it was issued."""
        for record in self.records.values():
            yield from record.calls

    def call(self, place: Place) -> RecordedCall:
        """The call at a place of its rank's record."""
        return self.records[place[0]].calls[place[1]]

    @cached_property
    def ends(self) -> dict[Channel, list[tuple[RecordedCall | None, RecordedCall | None]]]:
        """(send, receive) of each message, in order; None where one is not recorded."""
        sends: dict[Channel, list[RecordedCall]] = defaultdict(list)
        recvs: dict[Channel, list[RecordedCall]] = defaultdict(list)
        for call in self.calls():
            if call.is_message and (self._is_whole(call.channel) or not call.is_completed):
                (sends if call.is_send else recvs)[call.channel].append(call)
        channels = dict.fromkeys([*sends, *recvs])
        return {c: list(zip_longest(sends.get(c, ()), recvs.get(c, ()))) for c in channels}

    def _is_whole(self, channel: Channel) -> bool:
        records = [self.records[rank] for rank in channel[1:] if rank in self.records]
        return all(record.is_whole for record in records)

    @cached_property
    def partner(self) -> dict[Place, RecordedCall | None]:
        """The other end of each recorded end of a message."""
        found: dict[Place, RecordedCall | None] = {}
        for send, recv in (pair for pairs in self.ends.values() for pair in pairs):
            for one, other in ((send, recv), (recv, send)):
                if one is not None:
                    found[one.place] = other
        return found

    @cached_property
    def collectives(self) -> dict[tuple[Communicator, tuple[int, int]], dict[int, RecordedCall]]:
        """The members that entered each collective, by rank."""
        found: dict[tuple[Communicator, tuple[int, int]], dict[int, RecordedCall]] = {}
        for call in self.calls():
            if not call.is_message:
                found.setdefault((call.communicator, call.sequence), {})[call.rank] = call
        return found

    def others(self, call: RecordedCall) -> dict[int, RecordedCall | None]:
        """By rank, the calls without which this one does not complete; None is not recorded."""
        if call.peer is not None:
            return {call.peer: self.partner.get(call.place)}
        entered = self.collectives[call.communicator, call.sequence]
        return {rank: entered.get(rank) for rank in call.communicator.ranks if rank != call.rank}


def difference(one: RecordedCall, other: RecordedCall) -> str | None:
    """In what two ends of a message, or two members of a collective, differ; None in nothing."""
    if not one.is_message and one.operation != other.operation:
        return "operation"
    if one.dtypes and other.dtypes and set(one.dtypes) != set(other.dtypes):
        return "type"
    if one.operation in _UNEVEN:
        return None
    return "size" if _numbers(one) != _numbers(other) else None


def _numbers(call: RecordedCall) -> list[int]:
    return [prod(size) for size in call.sizes]
