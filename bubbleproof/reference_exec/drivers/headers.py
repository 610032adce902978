"""Debug headers: each message between processes says what it is, and the receiver looks.

Messages carry no tags (``group_transport``), so one that arrives in another's place is used as what
it is not. ``HeaderTransport`` sends a header ahead of each: what it is named, its shape and its
type. The receiver takes a message in only when its header says what the program expects; a
``MessageMismatch`` names both sides. The k-th message from one rank to another is still the k-th
received: a header and its message have numbers of their own as gloo's tags, so neither can be taken
for another. It costs a second message and a thread for each receive, for finding faults.
On NCCL, which has no tags, ``queued_headers`` does it.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta

import torch
import torch.distributed

from bubbleproof.reference_exec.broken import MessageMismatch
from bubbleproof.reference_exec.drivers.group_transport import (
    Group,
    GroupTransfer,
    GroupTransport,
    Work,
    connected,
    require_work,
)
from bubbleproof.reference_exec.plans.plan import TRANSFER_KINDS
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
    """A header and its message, under way."""

    header: Work
    message: Work
    buffer: torch.Tensor = field(repr=False)  # the header's, which must live until it has left

    def is_completed(self) -> bool:
        return self.header.is_completed() and self.message.is_completed()

    def wait(self, timeout: timedelta = timedelta(hours=1)) -> bool:
        begun = time.monotonic()
        self.header.wait(timeout)
        spent = timedelta(seconds=time.monotonic() - begun)
        return self.message.wait(max(timeout - spent, timedelta(milliseconds=1)))


class _Expected(threading.Thread):
    """A receive: a thread of its own awaits the header, looks at it, and takes the message in."""

    def __init__(
        self, expected: Header, source: int, rank: int, buffer: torch.Tensor, limit: timedelta
    ) -> None:
        super().__init__(daemon=True)
        self._expected, self._ranks, self._buffer, self._limit = (
            expected,
            (source, rank),
            buffer,
            limit,
        )
        self.numbers = torch.zeros(HEADER_SIZE, dtype=torch.int64)
        self._error: RuntimeError | None = None

    def post(self, group: Group, number: int) -> None:
        """Post the header's receive and start."""
        self._group, self._number = group, number
        self._header = _irecv(self.numbers, self._ranks[0], group, 2 * number)
        self.start()

    def run(self) -> None:
        try:
            self._header.wait(self._limit)
            self._look()
            tag = 2 * self._number + 1
            _irecv(self._buffer, self._ranks[0], self._group, tag).wait(self._limit)
        except RuntimeError as error:
            self._error = error

    def _look(self) -> None:
        self._expected.require(Header.decoded(self.numbers), *self._ranks)

    def is_completed(self) -> bool:
        return not self.is_alive() and self._error is None

    def wait(self, timeout: timedelta = timedelta(hours=1)) -> bool:
        self.join(timeout.total_seconds())
        if self._error is not None:
            raise self._error
        if self.is_alive():
            raise RuntimeError("timed out")
        return True


@dataclass(slots=True, kw_only=True)
class HeaderTransport(GroupTransport):
    """A transport on gloo whose messages have headers; receives take ``seconds`` at most."""

    seconds: float
    _numbers: Counter[tuple[int, int, bool]] = field(default_factory=Counter)

    def isend(self, tag: Action, tensor: torch.Tensor, *, destination: int) -> GroupTransfer:
        message, numbers = tensor.contiguous(), Header.of(tag, tensor).encoded()
        peer = self._process(destination)
        number, group = self._next(tag, peer, is_send=True)
        with connected(tag, destination):
            work = _Sent(
                header=_isend(numbers, peer, group, 2 * number),
                message=_isend(message, peer, group, 2 * number + 1),
                buffer=numbers,
            )
        return replace(self._transfer(tag, work, message), beside=(numbers,))

    def irecv(self, tag: Action, buffer: torch.Tensor, *, source: int) -> GroupTransfer:
        peer = self._process(source)
        number, group = self._next(tag, peer, is_send=False)
        limit = timedelta(seconds=self.seconds)
        work = _Expected(Header.of(tag, buffer), peer, self.rank, buffer, limit)
        with connected(tag, source):
            work.post(group, number)
        return replace(self._transfer(tag, work, buffer), beside=(work.numbers,))

    def _next(self, tag: Action, peer: int, *, is_send: bool) -> tuple[int, Group]:
        """The number of a message in its channel, and the group it takes."""
        channel = (peer, int(is_send), tag.kind in TRANSFER_KINDS)
        self._numbers[channel] += 1
        _, group = self._way(tag, peer, is_send=is_send)
        return self._numbers[channel], group


def _isend(tensor: torch.Tensor, peer: int, group: Group, tag: int) -> Work:
    return require_work(torch.distributed.isend(tensor, peer, group=group, tag=tag), peer)


def _irecv(tensor: torch.Tensor, peer: int, group: Group, tag: int) -> Work:
    return require_work(torch.distributed.irecv(tensor, peer, group=group, tag=tag), peer)
