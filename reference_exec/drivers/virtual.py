"""The virtual driver: all ranks in one process, interleaved at random but reproducibly.

A message passes when both its ends are posted and each is at the head of its queue. What shares a
queue is the *semantics*, named and defined as in ``verify``:

- ``buffered``: one queue per ordered pair of ranks and end; a send is done as soon as it is posted;
- ``rendezvous``: the same queues, but SEND and RECV block their rank until the message has passed;
- ``pair-stream``: a rank keeps one queue per peer for sends and receives together;
- ``launch-order``: the same queues, and a message passes only once all that either rank posted
  before has come to the head of its queue;
- ``rank-stream``: a rank keeps one queue for everything.

EVICT and LOAD have queues of their own, one per unordered pair of ranks: a link carries one
transfer at a time. The replicas of one rank have queues of their own too, always ``buffered``.
Real channels carry no tags; here every message does, and two ends that meet with different tags,
shapes or types are a ``MessageMismatch``. A run that cannot go on is a
``ReplayStalled`` with what each rank waits for.
"""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from bubbleproof.error_base import Error
from bubbleproof.reference_exec.broken import BrokenProgram, MessageMismatch, require
from bubbleproof.reference_exec.plans.replay_plan import TRANSFER_KINDS, ReplayPlan
from bubbleproof.reference_exec.runtime.device import CPU, Device, DeviceLane
from bubbleproof.reference_exec.runtime.rank import Rank, RankResult, account
from bubbleproof.reference_exec.runtime.transport import BlockedAction
from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.verify.communication.semantics import Semantics

QueueKey = tuple[int, ...]


class ReplayStalled(Error, RuntimeError):  # noqa: N818 - what happened to the run
    """Ranks that wait for each other, or for one that ended; the message lists them all."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Post:
    """One end of a message, waiting in a queue of ``rank``."""

    rank: int
    peer: int
    tag: Action
    is_send: bool
    tensor: torch.Tensor | None = field(default=None, repr=False)
    has_started: bool = False  # under launch-order
    done: bool = False
    has_got: bool = False  # the receiver has it, whose business it is now

    def is_done(self) -> bool:
        return self.done

    def buffers(self) -> tuple[torch.Tensor, ...]:
        return () if self.tensor is None or self.has_got else (self.tensor,)

    def get(self) -> torch.Tensor:
        require(self.done, f"{self.tag} has not arrived")
        if self.tensor is None:
            raise BrokenProgram(f"{self.tag} was handed over before")
        self.has_got = True
        return self.tensor

    def key(self, semantics: Semantics) -> QueueKey:
        """The queue this end stands in."""
        return _queue(self.rank, self.peer, self.tag, semantics, is_send=self.is_send)

    def other_key(self, semantics: Semantics) -> QueueKey:
        """The queue in which the other end of this message stands or will stand."""
        return _queue(self.peer, self.rank, self.tag, semantics, is_send=not self.is_send)

    def meets(self, other: _Post) -> bool:
        """Whether the other end may be that of the same message."""
        ends = (other.rank, other.peer, other.is_send)
        return ends == (self.peer, self.rank, not self.is_send)


def _queue(rank: int, peer: int, tag: Action, semantics: Semantics, *, is_send: bool) -> QueueKey:
    if semantics is Semantics.RANK_STREAM:
        return (rank,)
    if tag.kind in TRANSFER_KINDS:
        return (rank, peer, 0, 0)
    is_of_pair = semantics in (Semantics.PAIR_STREAM, Semantics.LAUNCH_ORDER)
    return (rank, peer) if is_of_pair else (rank, peer, int(is_send))


class Network:
    """The queues of all ranks, which compute on ``device``."""

    def __init__(self, semantics: Semantics, device: Device = CPU) -> None:
        self._semantics, self._device = semantics, device
        self._queues: defaultdict[QueueKey, deque[_Post]] = defaultdict(deque)
        self._launched: defaultdict[int, deque[_Post]] = defaultdict(deque)  # not started, by rank

    def post(self, post: _Post) -> None:
        """Queue one end and let every message pass that now can."""
        buffered = self._semantics is Semantics.BUFFERED and post.tag.kind not in TRANSFER_KINDS
        post.done = post.is_send and buffered
        self._queue_of(post).append(post)
        if self._semantics is Semantics.LAUNCH_ORDER:
            self._launched[post.rank].append(post)
            self._start({post.rank})
        else:
            self._pass(post)

    def _queue_of(self, post: _Post) -> deque[_Post]:
        return self._queues[post.key(self._semantics)]

    def _start(self, ranks: set[int]) -> None:
        """Start what may start on these ranks, and on those that it lets go on."""
        while ranks:
            launched = self._launched[ranks.pop()]
            while launched and self._queue_of(launched[0])[0] is launched[0]:
                post = launched.popleft()
                post.has_started = True
                ranks |= self._pass(post)

    def _pass(self, post: _Post) -> set[int]:
        """Let the message at the head of a post's queue pass, and those behind it; their ranks."""
        ranks: set[int] = set()
        heads = [self._queue_of(post)]
        while heads:
            queue = heads.pop()
            if not queue or (other_queue := self._opposite(queue[0])) is None:
                continue
            post, other = queue.popleft(), other_queue.popleft()
            _transfer(*((post, other) if post.is_send else (other, post)), self._device)
            heads += [queue, other_queue]
            ranks |= {post.rank, other.rank}
        return ranks

    def _opposite(self, post: _Post) -> deque[_Post] | None:
        """The queue at whose head the other end of a post's message is, where both can pass."""
        queue = self._queues[post.other_key(self._semantics)]
        if not queue or not post.meets(queue[0]):
            return None
        is_free = self._semantics is not Semantics.LAUNCH_ORDER
        return queue if is_free or (post.has_started and queue[0].has_started) else None


def _transfer(send: _Post, receive: _Post, device: Device) -> None:
    if send.tag != receive.tag:
        raise MessageMismatch(
            f"rank {send.rank} sent {send.tag} where rank {receive.rank} expected {receive.tag}"
        )
    if send.tensor is None or receive.tensor is None:
        raise BrokenProgram(f"{send.tag} was handed over before")
    if (send.tensor.shape, send.tensor.dtype) != (receive.tensor.shape, receive.tensor.dtype):
        raise MessageMismatch(
            f"rank {send.rank} sent {send.tag} as {tuple(send.tensor.shape)} {send.tensor.dtype}, "
            f"rank {receive.rank} expected {tuple(receive.tensor.shape)} {receive.tensor.dtype}"
        )
    for lane in (
        DeviceLane.RECEIVES,
        DeviceLane.TRANSFERS,
    ):  # where the buffer was made, and perhaps filled
        device.join(lane)
    device.use(receive.tensor).copy_(send.tensor.detach())
    send.tensor = None
    send.done = receive.done = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One rank's transport into a network; where it ``is_of_group``, one replica's to the others.

    There what is sent is copied at once, and messages are not told apart: collectives know by their
    own headers what arrives.
    """

    network: Network
    rank: int
    is_blocking: bool = False
    is_of_group: bool = False

    def post(self, tag: Action, end: torch.Tensor, peer: int, *, is_send: bool) -> _Post:
        known, message = tag, end
        if self.is_of_group:
            known, message = _UNTAGGED, end.clone() if is_send else end
        post = _Post(rank=self.rank, peer=peer, tag=known, is_send=is_send, tensor=message)
        self.network.post(post)
        return post


_UNTAGGED = Action(stage=0, kind=Kind.UNSHARD)


def run_virtual(
    plan: ReplayPlan,
    *,
    seed: int = 0,
    semantics: Semantics = Semantics.PAIR_STREAM,
    progress: Callable[[str], None] | None = None,
    device: Device = CPU,
) -> list[RankResult]:
    """Run every rank of a plan; the seed picks who goes on next. Results in rank order.

    All ranks compute on ``device``, in the streams of one rank; messages pass as copies there.
    The plan is not verified here: see ``replay``. Raises ``ReplayStalled``, ``MessageMismatch``,
    and ``BrokenProgram`` where a program uses what is not there.
    """
    with account(plan):
        return _run(_ranks(plan, semantics, device), plan, seed, semantics, progress)


def _run(
    ranks: list[Rank],
    plan: ReplayPlan,
    seed: int,
    semantics: Semantics,
    progress: Callable[[str], None] | None,
) -> list[RankResult]:
    choice = random.Random(seed)
    running = {rank.process: rank.run() for rank in ranks}
    blocked: dict[int, BlockedAction] = {}
    while running:
        able = [r for r in running if r not in blocked or blocked[r].transfer.is_done()]
        if not able:
            raise ReplayStalled(_stall(plan, semantics, seed, blocked))
        rank = choice.choice(able)
        blocked.pop(rank, None)
        event = None  # an event keeps its message, which is not the driver's
        try:
            event = next(running[rank])
        except StopIteration:
            del running[rank]
            if progress is not None:
                progress(f"{plan.name(rank)} has ended")
            continue
        if event is not None:
            blocked[rank] = event
    return [rank.result() for rank in ranks]


def _ranks(plan: ReplayPlan, semantics: Semantics, device: Device) -> list[Rank]:
    """The ranks of all replicas: a network in each, and one for the replicas of each rank."""
    networks = [Network(semantics, device) for _ in range(plan.num_replicas)]
    groups = [Network(Semantics.BUFFERED, device) for _ in range(plan.num_ranks)]
    blocking = semantics is Semantics.RENDEZVOUS
    found = []
    for process in range(plan.num_processes):
        replica, rank = plan.seat(process)
        within = Endpoint(network=networks[replica], rank=rank, is_blocking=blocking)
        group = Endpoint(network=groups[rank], rank=replica, is_of_group=True)
        found.append(Rank(plan, process, within, device, group))
    return found


def _stall(
    plan: ReplayPlan, semantics: Semantics, seed: int, blocked: dict[int, BlockedAction]
) -> str:
    waits = "; ".join(f"{plan.name(each)}: {blocked[each]}" for each in sorted(blocked))
    return f"the replay stalled under {semantics}, seed {seed}: {waits}"
