"""Debug headers: each message between processes says what it is, and the receiver looks.

Messages carry no tags (``group_transport``), so one that arrives in another's place is used as what
it is not. ``HeaderTransport`` sends a header ahead of each: what it is named, its shape and its
type. The receiver takes a message in only when its header says what the program expects; a
``MessageMismatch`` names both sides. The k-th message from one rank to another is still the k-th
received. It costs a second message, for finding faults.

On gloo a header and its message have numbers of their own as gloo's tags, so neither can be taken
for another, and each receive has a thread that awaits the header and then the message. NCCL has no
tags, but un-batched sends and receives of a pair of ranks run in one order on both ends, so that a
header's receive meets a header's send and the message follows it: posting both at once keeps every
order that was verified. What uses a message first waits, on the host, until its header is here. (A
message of another size than its receive may keep NCCL busy for ever. Its header has come by then.)
The host stops at each use, so headers find faults and take no times.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta

import torch
import torch.distributed

from bubbleproof.reference_exec.broken import MessageMismatch
from bubbleproof.reference_exec.drivers.group_transport import (
    POLL_SECONDS,
    GroupTransfer,
    GroupTransport,
    PendingWork,
)
from bubbleproof.reference_exec.plans.replay_plan import TRANSFER_KINDS
from bubbleproof.reference_exec.runtime.device import Device, DeviceLane, handed_over
from bubbleproof.theory.model.actions import Action, Kind

MAX_DIMENSIONS = 4
_TYPES = (torch.float64, torch.float32, torch.uint8, torch.bfloat16, torch.float16, torch.int64)
HEADER_SIZE = 6 + MAX_DIMENSIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a message is: the action that receives it, its shape, its type."""

    tag: Action
    shape: tuple[int, ...]
    dtype: torch.dtype

    @classmethod
    def of(cls, tag: Action, tensor: torch.Tensor) -> Header:
        return cls(tag=tag, shape=tuple(tensor.shape), dtype=tensor.dtype)

    def encoded(self) -> torch.Tensor:
        """Shape (10,), int64. Raises ``ValueError`` for a message of more dimensions than four."""
        if len(self.shape) > MAX_DIMENSIONS:
            raise ValueError(f"{self.tag} has {len(self.shape)} dimensions, at most 4 fit a header")
        tag, missing = self.tag, MAX_DIMENSIONS - len(self.shape)
        name = (tag.kind.value, tag.stage, tag.microbatch, tag.slice)
        kind = (_TYPES.index(self.dtype), len(self.shape))
        return torch.tensor([*name, *kind, *self.shape, *[0] * missing], dtype=torch.int64)

    @classmethod
    def decoded(cls, numbers: torch.Tensor) -> Header:
        """The header that ``encoded`` gave."""
        kind, stage, microbatch, slice_, dtype, dimensions, *shape = numbers.tolist()
        return cls(
            tag=Action(kind=Kind(kind), stage=stage, microbatch=microbatch, slice=slice_),
            shape=tuple(shape[:dimensions]),
            dtype=_TYPES[dtype],
        )

    def require(self, found: Header, source: int, rank: int) -> None:
        """Raise ``MessageMismatch`` where what ``source`` sent is not what ``rank`` expects."""
        if found != self:
            raise MessageMismatch(f"rank {source} sent {found}, rank {rank} expected {self}")

    def __str__(self) -> str:
        return f"{self.tag} as {self.shape} {str(self.dtype).removeprefix('torch.')}"


@dataclass(slots=True, kw_only=True, eq=False)
class _Sent:
    """A header and its message, under way; what is queued on a device has no time limit."""

    header: PendingWork
    message: PendingWork

    def is_completed(self) -> bool:
        return self.header.is_completed() and self.message.is_completed()

    def wait(self, timeout: timedelta | None = None) -> bool:
        if timeout is None:
            self.header.wait()
            return self.message.wait()
        begun = time.monotonic()
        self.header.wait(timeout)
        spent = timedelta(seconds=time.monotonic() - begun)
        return self.message.wait(max(timeout - spent, timedelta(milliseconds=1)))


class _Awaited(threading.Thread):
    """A receive on gloo: a thread of its own awaits the header, looks at it, and takes it in."""

    def __init__(
        self,
        header: GroupTransfer,
        look: Callable[[torch.Tensor], None],
        receive: Callable[[], PendingWork],
        limit: timedelta,
    ) -> None:
        super().__init__(daemon=True)
        self._header, self._look, self._receive, self._limit = header, look, receive, limit
        self._error: RuntimeError | None = None
        self.start()

    def run(self) -> None:
        try:
            self._header.work.wait(self._limit)
            self._look(self._header.tensor)
            self._receive().wait(self._limit)
        except RuntimeError as error:
            self._error = error

    def is_completed(self) -> bool:
        return not self.is_alive() and self._error is None

    def wait(self, timeout: timedelta = timedelta(hours=1)) -> bool:
        self.join(timeout.total_seconds())
        if self._error is not None:
            raise self._error
        if self.is_alive():
            raise RuntimeError("timed out")
        return True


@dataclass(slots=True, kw_only=True, eq=False)
class _Queued:
    """A message on NCCL that is not taken in before its header has been looked at.

    ``others`` are those of this rank whose headers have not been: one that came in another's place
    may keep a header from coming.
    """

    header: PendingWork
    message: PendingWork
    numbers: torch.Tensor = field(repr=False)
    look: Callable[[torch.Tensor], None]
    device: Device = field(repr=False)
    seconds: float
    others: list[_Queued] = field(repr=False)

    def is_completed(self) -> bool:
        """Raises ``MessageMismatch`` where the header has come and is another's."""
        self._look()
        return self not in self.others and self.message.is_completed()

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Raises ``MessageMismatch``, or ``RuntimeError`` where no header comes in time."""
        del timeout
        deadline = time.monotonic() + self.seconds
        while self in self.others:
            for each in tuple(self.others):
                each._look()
            if time.monotonic() > deadline:
                raise RuntimeError("timed out")
            time.sleep(POLL_SECONDS)
        return self.message.wait()

    def _look(self) -> None:
        """Look at the header if it is here and nobody has."""
        if self not in self.others or not self.header.is_completed():
            return
        with self.device.on(DeviceLane.RECEIVES):  # has nothing to do that a look would wait for
            self.header.wait()
            self.look(self.numbers)
        self.others.remove(self)


@dataclass(slots=True, kw_only=True)
class HeaderTransport(GroupTransport):
    """A transport whose messages have headers; on gloo a message, on NCCL its header, comes within
    ``seconds``.
    """

    seconds: float
    _numbers: Counter[tuple[int, bool, bool]] = field(default_factory=Counter)
    _open: list[_Queued] = field(default_factory=list)

    def post(self, tag: Action, end: torch.Tensor, peer: int, *, is_send: bool) -> GroupTransfer:
        return self._sent(tag, end, peer) if is_send else self._received(tag, end, peer)

    def _sent(self, tag: Action, tensor: torch.Tensor, destination: int) -> GroupTransfer:
        numbers = handed_over(Header.of(tag, tensor).encoded(), self.device)
        number = self._next(tag, destination, is_send=True)
        header = self._post(tag, numbers, destination, number, is_send=True)
        message = self._post(tag, tensor, destination, number + 1, is_send=True)
        work = _Sent(header=header.work, message=message.work)
        return replace(message, work=work, beside=(numbers,))

    def _received(self, tag: Action, buffer: torch.Tensor, source: int) -> GroupTransfer:
        expected, sender = Header.of(tag, buffer), self._process(source)

        def look(numbers: torch.Tensor) -> None:
            expected.require(Header.decoded(numbers), sender, self.rank)

        number = self._next(tag, source, is_send=False)
        lane, _ = self._way(tag, sender, is_send=False)
        with self.device.on(lane):
            room = torch.empty(HEADER_SIZE, dtype=torch.int64, device=self.device.torch_device)
        header = self._post(tag, room, source, number, is_send=False)
        if not self.is_queued:
            work = _Awaited(
                header,
                look,
                lambda: self._post(tag, buffer, source, number + 1, is_send=False).work,
                timedelta(seconds=self.seconds),
            )
            return replace(self._transfer(tag, work, buffer), beside=(room,))
        message = self._post(tag, buffer, source, number + 1, is_send=False)
        queued = _Queued(
            header=header.work,
            message=message.work,
            numbers=room,
            look=look,
            device=self.device,
            seconds=self.seconds,
            others=self._open,
        )
        self._open.append(queued)
        return replace(message, work=queued, beside=(room,))

    def _next(self, tag: Action, peer: int, *, is_send: bool) -> int:
        """Gloo's tag of the next header in a channel; its message has the one after."""
        channel = (self._process(peer), is_send, tag.kind in TRANSFER_KINDS)
        self._numbers[channel] += 1
        return 2 * self._numbers[channel]


def with_headers(transport: GroupTransport, seconds: float) -> HeaderTransport:
    """The transport with a header ahead of each message."""
    given = {field.name: getattr(transport, field.name) for field in fields(transport)}
    return HeaderTransport(**given, seconds=seconds)
