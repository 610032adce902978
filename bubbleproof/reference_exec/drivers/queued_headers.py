"""Debug headers over NCCL: a header on the device goes ahead of each message, on the same stream.

Un-batched sends and receives of a pair of ranks run in one order on both ends, so a header's
receive meets a header's send and the message follows it: posting both at once keeps every order
that was verified. What uses a message first waits, on the host, until its header is here and looks
at it; a ``MessageMismatch`` names both sides before computation goes on. (A message of another size
than its receive may keep NCCL busy for ever. Its header has come by then.) The host stops at each
use, so it finds faults and takes no times.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from datetime import timedelta

import torch

from bubbleproof.reference_exec.drivers.group_transport import (
    POLL_SECONDS,
    GroupTransfer,
    GroupTransport,
    Work,
)
from bubbleproof.reference_exec.drivers.headers import HEADER_SIZE, Header, HeaderTransport
from bubbleproof.reference_exec.runtime.device import Device, Lane, handed_over
from bubbleproof.theory.model.actions import Action


@dataclass(slots=True, kw_only=True, eq=False)
class _Sent:
    """A header and its message, under way."""

    header: GroupTransfer
    message: Work

    def is_completed(self) -> bool:
        return self.header.work.is_completed() and self.message.is_completed()

    def wait(self, timeout: timedelta | None = None) -> bool:
        del timeout  # what is queued is waited for on the device
        self.header.work.wait()
        return self.message.wait()


@dataclass(slots=True, kw_only=True, eq=False)
class _Expected:
    """A message that is not taken in before its header has been looked at.

    ``others`` are those of this rank whose headers have not been: one that came in another's place
    may keep a header from coming.
    """

    header: GroupTransfer
    message: Work
    expected: Header
    ranks: tuple[int, int]  # (source, this one)
    device: Device = field(repr=False)
    seconds: float
    others: list[_Expected] = field(repr=False)

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
        if self not in self.others or not self.header.work.is_completed():
            return
        with self.device.on(Lane.RECEIVES):  # has nothing to do that a look would wait for
            self.header.work.wait()
            found = Header.decoded(self.header.tensor)
        self.expected.require(found, *self.ranks)
        self.others.remove(self)


@dataclass(slots=True, kw_only=True)
class QueuedHeaderTransport(GroupTransport):
    """A transport on NCCL whose messages have headers; each comes within ``seconds``."""

    seconds: float
    _open: list[_Expected] = field(default_factory=list)

    def isend(self, tag: Action, tensor: torch.Tensor, *, destination: int) -> GroupTransfer:
        numbers = handed_over(Header.of(tag, tensor).encoded(), self.device)
        header = GroupTransport.isend(self, tag, numbers, destination=destination)
        message = GroupTransport.isend(self, tag, tensor, destination=destination)
        work = _Sent(header=header, message=message.work)
        return replace(message, work=work, beside=(numbers,))

    def irecv(self, tag: Action, buffer: torch.Tensor, *, source: int) -> GroupTransfer:
        lane, _ = self._way(tag, self._process(source), is_send=False)
        with self.device.on(lane):
            room = torch.empty(HEADER_SIZE, dtype=torch.int64, device=self.device.torch_device)
        header = GroupTransport.irecv(self, tag, room, source=source)
        message = GroupTransport.irecv(self, tag, buffer, source=source)
        work = _Expected(
            header=header,
            message=message.work,
            expected=Header.of(tag, buffer),
            ranks=(self._process(source), self.rank),
            device=self.device,
            seconds=self.seconds,
            others=self._open,
        )
        self._open.append(work)
        return replace(message, work=work, beside=(room,))


def with_headers(transport: GroupTransport, seconds: float) -> GroupTransport:
    """The transport with a header ahead of each message; ``seconds`` as in either's class."""
    cls = QueuedHeaderTransport if transport.is_queued else HeaderTransport
    return cls(
        rank=transport.rank,
        messages=transport.messages,
        links=transport.links,
        members=transport.members,
        device=transport.device,
        is_queued=transport.is_queued,
        seconds=seconds,
    )
