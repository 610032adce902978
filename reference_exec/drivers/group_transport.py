"""Messages between real processes, over ``torch.distributed`` process groups.

Messages carry no tags, as on NCCL: what arrives is what the order says. EVICT and LOAD have groups
of their own, so that a message never stands in the way of a transfer. A receive is posted at its
RECV and waited for where it is used; a send's buffer is kept, and waited for, until the end.

On NCCL a transfer is *queued* on the device, and so is the wait for it: the host goes on, and only
the end of the run tells whether all of it went through (``unfinished``). An un-batched send or
receive of NCCL runs in order with all others of its communicator, in both directions, here of its
unordered pair of ranks (``by_pairs``), whatever torch would make of one group for all. What orders
the communicators of a device ``nccl_order`` says.

The replicas of a rank have a group for each direction of each pair: in a collective every member
sends before it receives, which one stream for both directions would not let through. Computation
makes the room that these messages come into, so their receives come after it, and the host waits
for their ends, as it has to look at what came.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import pairwise, permutations
from typing import Protocol
from weakref import WeakKeyDictionary

import torch
import torch.distributed

from bubbleproof.reference_exec.broken import one_line
from bubbleproof.reference_exec.plans.replay_plan import TRANSFER_KINDS, ReplayPlan
from bubbleproof.reference_exec.runtime.device import CPU, Device, DeviceLane
from bubbleproof.reference_exec.runtime.updates import exchanging
from bubbleproof.theory.model.actions import Action

Group = torch.distributed.ProcessGroup | None
MemberPair = tuple[int, int]  # (lower rank, higher rank), or of one direction (sender, receiver)
Groups = Mapping[
    MemberPair, torch.distributed.ProcessGroup
]  # by (sender, receiver); else the default
POLL_SECONDS = 0.0005


class ConnectionClosed(RuntimeError):  # noqa: N818 - what happened to the connection
    """A transfer that cannot be posted any more: the peer gave up, or is gone."""


class PendingWork(Protocol):
    """The part of ``torch.distributed.Work`` used here."""

    def is_completed(self) -> bool: ...

    def wait(self, timeout: timedelta = ...) -> bool: ...


@dataclass(slots=True, kw_only=True, eq=False, weakref_slot=True)
class GroupTransfer:
    """A posted send or receive, with the buffer that must live until it ends.

    torch's work has the buffer too, so whoever keeps this keeps the memory.

    The host does not wait for one that ``is_queued``, unless it ``is_awaited``.
    """

    tag: Action
    work: PendingWork
    tensor: torch.Tensor = field(repr=False)
    device: Device
    is_send: bool
    is_queued: bool
    is_awaited: bool = False
    waited: bool = False
    is_taken: bool = False

    def is_done(self) -> bool:
        return self.waited or (self.is_queued and self.work.is_completed())

    def buffers(self) -> tuple[torch.Tensor, ...]:
        """The tensor until the transfer has ended; what is received, until somebody has it too.

        Computation may have it before the device has run the transfer.
        """
        is_through = self.work.is_completed() if self.is_queued else self.waited
        return () if is_through and (self.is_send or self.is_taken) else (self.tensor,)

    def get(self) -> torch.Tensor:
        self.is_taken = True
        return self.device.use(self.tensor)

    def wait(self, seconds: float) -> None:
        """Block until the transfer ends, or queue that computation waits for it.

        Raises torch's ``RuntimeError`` where it does not end in time.
        """
        if self.is_queued:
            if self.is_awaited:
                await_end(self.work, seconds)
            self.work.wait()
        else:
            self.work.wait(timedelta(seconds=max(seconds, 0.001)))
        self.waited = True


def await_end(work: PendingWork, seconds: float) -> None:
    """Wait here, on the host, for a queued transfer. Raises ``RuntimeError`` after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not work.is_completed():
        if time.monotonic() > deadline:
            raise RuntimeError("timed out")
        time.sleep(POLL_SECONDS)


def require_work(work: PendingWork | None, peer: int) -> PendingWork:
    """What torch posted; it posts nothing for a process that is not in the group."""
    if work is None:
        raise RuntimeError(f"no process group to meet process {peer} in")
    return work


@dataclass(slots=True, kw_only=True)
class GroupTransport:
    """One rank's transport: messages in the groups ``messages``, transfers in ``links``.

    ``members`` are the groups of replicas (``among``). ``receives`` is the lane that receives come
    after. ``processes`` says which process a peer is, by its number; without it they are numbered
    alike.
    """

    rank: int
    messages: Groups
    links: Groups
    members: Groups = field(default_factory=dict)
    receives: DeviceLane = DeviceLane.RECEIVES
    is_awaited: bool = False
    device: Device = CPU
    is_queued: bool = False
    is_blocking: bool = False
    processes: tuple[int, ...] | None = None
    _posted: WeakKeyDictionary[GroupTransfer, None] = field(default_factory=WeakKeyDictionary)

    @classmethod
    def by_default(cls, plan: ReplayPlan, rank: int) -> GroupTransport:
        """All messages in the default group. Every process of the plan calls it."""
        links: Groups = {}
        if plan.acceptors:
            links = dict.fromkeys(_in_replicas(plan, evicting(plan)), torch.distributed.new_group())
        return cls(rank=rank, messages={}, links=_both_ways(links))

    @classmethod
    def by_pairs(
        cls, plan: ReplayPlan, rank: int, *, backend: str, device: Device, seconds: float
    ) -> GroupTransport:
        """A group per pair of processes that talk, one per pair that evicts, each used once here.

        ``rank`` is this process's number; to connect may take so many ``seconds``. Every process of
        the plan calls it. The first use of a group makes its connection, which blocks both ends;
        all do so in one order, so none waits for another in a circle.
        """
        limit = timedelta(seconds=seconds)
        messages, links, members = (
            _opened(pairs, backend, limit)
            for pairs in (talking(plan), _in_replicas(plan, evicting(plan)), twins(plan))
        )
        for groups in (messages, links, members):
            for pair in sorted(groups):
                if rank in pair:
                    _greet(pair, rank, groups[pair], device)
        return cls(
            rank=rank,
            messages=_both_ways(messages),
            links=_both_ways(links),
            members=members,
            device=device,
            is_queued=backend == "nccl",
        )

    def within(self, plan: ReplayPlan, replica: int) -> GroupTransport:
        """The same between the ranks of one replica."""
        first = replica * plan.num_ranks
        return replace(self, processes=tuple(range(first, first + plan.num_ranks)))

    def among(self, plan: ReplayPlan, rank: int) -> GroupTransport:
        """The same among the replicas of one rank."""
        return replace(
            self,
            processes=tuple(range(rank, plan.num_processes, plan.num_ranks)),
            messages=self.members,
            receives=DeviceLane.SENDS,  # which come after computation
            is_awaited=True,
        )

    def post(self, tag: Action, end: torch.Tensor, peer: int, *, is_send: bool) -> GroupTransfer:
        end, process = end.contiguous() if is_send else end, self._process(peer)
        lane, group = self._way(tag, process, is_send=is_send)
        start = torch.distributed.isend if is_send else torch.distributed.irecv
        with self.device.on(lane), connected(tag, peer):
            work = start(end, process, group=group)
        transfer = GroupTransfer(
            tag=tag,
            work=require_work(work, process),
            tensor=end,
            device=self.device,
            is_send=is_send,
            is_queued=self.is_queued,
            is_awaited=self.is_awaited,
        )
        if self.is_queued:
            self._posted[transfer] = None  # in this order, for as long as it is kept
        return transfer

    def finished(self, seconds: float) -> str | None:
        """Wait until the device has run all that was queued; what has not ended, or None."""
        if self.device.finish(seconds):
            return None
        open_ = [str(each.tag) for each in self._posted if not each.work.is_completed()]
        return f"the device is still busy; not through: {', '.join(open_) or 'no message'}"

    def _process(self, peer: int) -> int:
        return peer if self.processes is None else self.processes[peer]

    def _way(self, tag: Action, peer: int, *, is_send: bool) -> tuple[DeviceLane, Group]:
        ends = (self.rank, peer) if is_send else (peer, self.rank)
        if tag.kind in TRANSFER_KINDS:
            return DeviceLane.TRANSFERS, self.links.get(ends)
        return DeviceLane.SENDS if is_send else self.receives, self.messages.get(ends)


@contextmanager
def connected(tag: Action, peer: int) -> Iterator[None]:
    """Say ``ConnectionClosed`` where torch refuses to post; the cause is the peer's to tell."""
    try:
        yield
    except RuntimeError as error:
        why = reason(error)
        raise ConnectionClosed(f"{tag} cannot be posted to rank {peer} ({why})") from error


def reason(error: Exception) -> str:
    """Why a transfer did not end: what torch says of connections and clocks, in our words."""
    text = str(error).lower()
    if "closed" in text or "reset" in text:
        return "the connection was closed"
    if "timed out" in text or "timeout" in text:
        return "timed out"
    return one_line(error)


def talking(plan: ReplayPlan) -> frozenset[MemberPair]:
    """The pairs of processes of a replica that send each other messages, in a pass or after it.

    They hold neighbouring stages for some microbatch, or the same stage.
    """
    neighbours = _pairs(
        ends
        for microbatch in range(plan.num_microbatches)
        for ends in pairwise(plan.rank_of(g, microbatch) for g in range(plan.num_stages))
    )
    return _in_replicas(plan, neighbours | exchanging(plan))


def twins(plan: ReplayPlan) -> frozenset[MemberPair]:
    """The processes of one rank in two replicas, as (sender, receiver), both ways."""
    return frozenset(
        ends
        for rank in range(plan.num_ranks)
        for ends in permutations(range(rank, plan.num_processes, plan.num_ranks), 2)
    )


def _in_replicas(plan: ReplayPlan, pairs: frozenset[MemberPair]) -> frozenset[MemberPair]:
    """The pairs of ranks as pairs of processes, in every replica."""
    firsts = range(0, plan.num_processes, plan.num_ranks)
    return frozenset((first + low, first + high) for first in firsts for low, high in pairs)


def evicting(plan: ReplayPlan) -> frozenset[MemberPair]:
    """The pairs of ranks between which activations move."""
    return _pairs((plan.rank_of(*key[:2]), peer) for key, peer in plan.acceptors.items())


def _pairs(ends: Iterable[MemberPair]) -> frozenset[MemberPair]:
    return frozenset((min(pair), max(pair)) for pair in ends if pair[0] != pair[1])


def _opened(
    pairs: frozenset[MemberPair], backend: str, timeout: timedelta
) -> dict[MemberPair, torch.distributed.ProcessGroup]:
    """A group for each pair, opened in one order on all ranks."""
    new_group = torch.distributed.new_group
    return {pair: new_group(list(pair), timeout, backend) for pair in sorted(pairs)}


def _both_ways(groups: Groups) -> Groups:
    """The groups of pairs, for messages in either direction."""
    return {**groups, **{(high, low): group for (low, high), group in groups.items()}}


def _greet(
    pair: MemberPair, rank: int, group: torch.distributed.ProcessGroup, device: Device
) -> None:
    """Send one byte from the first of a pair to the second."""
    byte = torch.zeros(1, dtype=torch.uint8, device=device.torch_device)
    if rank == pair[0]:
        torch.distributed.send(byte, pair[1], group=group)
    else:
        torch.distributed.recv(byte, pair[0], group=group)
    device.settle(DeviceLane.COMPUTE)
