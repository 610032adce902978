"""The rank runtime: runs one rank's program, action by action.

``Rank.run`` is a generator, so the same code serves every driver: it yields ``None`` after each
action (another rank may go on here) and ``BlockedAction`` where it cannot go on until a transfer
ends. Messages are ``rank_messages``' business. EVICT and LOAD stand twice in the program of either
of their ranks: the first posts the transfer, the second waits for it. Its bytes count on both ranks
in between. UNSHARD and REDUCE_GRAD stand twice too.

What the program promises is asserted as it runs: an action may only use what an earlier one left,
and at the end nothing is left over and every parameter has a gradient. What is still held then is
reported.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar

import torch

from bubbleproof.reference_exec.births import BIRTHS
from bubbleproof.reference_exec.broken import BrokenProgram, ModelFailed
from bubbleproof.reference_exec.flop_count import FlopCount
from bubbleproof.reference_exec.plans.predicted_work import ActionWork
from bubbleproof.reference_exec.plans.replay_plan import TRANSFER_KINDS, ReplayPlan, key_of
from bubbleproof.reference_exec.plans.state_bytes import StateAt
from bubbleproof.reference_exec.runtime.compute import Compute, Forward, Gradients, Losses
from bubbleproof.reference_exec.runtime.device import CPU, Device
from bubbleproof.reference_exec.runtime.peer_transfers import EvictLoad
from bubbleproof.reference_exec.runtime.rank_messages import RankMessages, tag_of
from bubbleproof.reference_exec.runtime.replica_collectives import Collectives
from bubbleproof.reference_exec.runtime.trace import TraceRow
from bubbleproof.reference_exec.runtime.transport import BlockedAction, Transport
from bubbleproof.reference_exec.runtime.updates import Updates
from bubbleproof.theory.model.actions import Action, Kind

T = TypeVar("T")
Versions = dict[Hashable, tuple[int, int]]  # by gradient: which tensor, and its version


class RankWorkAccount:
    """The account of one rank; ``passes`` has the work of each action of each pass so far.

    At the end of a pass stands what was done after its last action.
    """

    def __init__(self, compute: Compute) -> None:
        self.passes: list[list[ActionWork]] = []
        parameters = {p for stage in compute.stages.values() for p in stage.parameters()}
        self._parameters = [(id(parameter), parameter) for parameter in parameters]
        self._shards = compute.shards
        self._count = FlopCount()
        self._flops = 0
        self._before: Versions = {}

    def counted(self, events: Iterator[T]) -> Iterator[T]:
        """The same events, with all that runs between them counted."""
        while True:
            with self._count:
                try:
                    event = next(events)
                except StopIteration:
                    return
            yield event
            del event  # it keeps its message

    def begin_pass(self) -> None:
        """Begin a pass, the gradients being what they are."""
        self.passes.append([])
        self._before = self._versions()

    def end_action(self) -> None:
        """Note what was done since this was called before."""
        flops, versions = self._count.flops, self._versions()
        before, gradients = self._before, 0
        if versions != before:
            changed = [(before.get(key), now) for key, now in versions.items()]
            gradients = sum(self._additions(old, now) for old, now in changed if old != now)
        self.passes[-1].append(ActionWork(flops - self._flops, gradients))
        self._flops, self._before = flops, versions

    def _versions(self) -> Versions:
        found: Versions = {
            key: (id(gradient), gradient._version)
            for key, parameter in self._parameters
            if (gradient := parameter.grad) is not None
        }
        for stage, shards in self._shards.items():
            for key, buffer in shards.gradients.items():
                found[stage, *key] = _FLAT, buffer.flat._version
        return found

    @staticmethod
    def _additions(before: tuple[int, int] | None, now: tuple[int, int]) -> int:
        """How many gradients were added to; of a flat buffer as many as its versions say."""
        if now[0] != _FLAT:
            return before != now
        return now[1] - (0 if before is None else before[1])


_FLAT = 0  # no tensor's id


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankResult:
    """What a rank has to show for its program.

    ``gradients`` by (stage, parameter name); ``losses`` of all passes, on the last stage's
    rank; ``live_bytes`` after each F, R, B, I and W (an overlapped pair counts as its two parts, a
    recomputed forward as itself and its drop), after each post and wait of what runs beside them,
    and after each STEP and exchange of a training; ``host_live_bytes`` those of the rank's host at
    the same moments, empty where no host has a part in the plan. ``born_bytes`` are what had been
    made, here and on the host, when the rank was. ``updated`` are the weights by (stage, parameter
    name) that the rank or its host has stepped.
    ``allocated_bytes`` is what torch's allocator has given out on the device, where ``live_bytes``
    is read; empty on devices that keep no count. Where stages are sharded ``gradients`` and
    ``updated`` have this member's row of each parameter, ``losses`` go by the number in the whole
    batch. ``states`` are the model state that the rank, and its host, hold as each pass begins and
    as it ends. ``passes`` have the rows of each, by action. ``left_bytes`` are live here and on the
    host after a pass, and no model state, ``saved_bytes`` what each forward needed for its
    backward, ``kept_bytes`` what stages of a user's model may keep beside that, ``written_bytes``
    what was there before and they write into. ``work`` is what each action of each pass computed,
    with that after the last one (``RankWorkAccount``); empty where none is counted.
    """

    gradients: Gradients
    losses: Losses
    live_bytes: tuple[int, ...]
    updated: Gradients = field(default_factory=dict)
    host_live_bytes: tuple[int, ...] = ()
    allocated_bytes: tuple[int, ...] = ()
    born_bytes: tuple[int, int] = (0, 0)
    states: tuple[StateAt, ...] = ()
    passes: tuple[tuple[TraceRow, ...], ...] = ()
    left_bytes: int = 0
    kept_bytes: int = 0
    written_bytes: int = 0
    saved_bytes: Mapping[Forward, int] = field(default_factory=dict)
    work: tuple[tuple[ActionWork, ...], ...] = ()


def account(plan: ReplayPlan) -> AbstractContextManager[None]:
    """The context in which ranks of a plan are made and run, where its bytes are counted.

    Ranks that share a process share it, so that no rank's tensors are old to another.
    """
    _warm_up()
    return BIRTHS.watched() if plan.counts_bytes else nullcontext()


@cache
def _warm_up() -> None:
    """Load what torch loads at a process's first backward, for which no action is to wait."""
    one = torch.ones(1, requires_grad=True)
    torch.autograd.backward(one, torch.ones(1))


class Rank:
    """One rank of a plan in one replica, on ``device``; ``transport`` reaches the other ranks.

    ``group`` reaches the replicas of the same rank; with one replica there is none.
    """

    def __init__(
        self,
        plan: ReplayPlan,
        process: int,
        transport: Transport,
        device: Device = CPU,
        group: Transport | None = None,
    ) -> None:
        self.process = process
        self.replica, self.rank = plan.seat(process)
        self.actions = plan.order(process)
        self.position = 0
        self._plan = plan
        self._passes: list[list[TraceRow]] = []
        self._states: list[StateAt] = []
        self._left_bytes = 0
        with account(plan):
            self._compute = Compute(plan, process, device)
            self._transfers = EvictLoad(plan, self._compute, transport)
            self._collectives = Collectives(plan, self._compute, group)
            self._updates = Updates(plan, self._compute, transport)
            self._messages = RankMessages(plan, self.rank, transport, device)
            host = self._compute.host.ledger
            here = self._compute.birth.end(host.needed_keys())
            self._born_bytes = here, host.live_bytes
        self._work = RankWorkAccount(self._compute) if plan.counts_work else None
        ledger = self._compute.ledger
        ledger.elsewhere[:0] = (self._under_way, self._updates.tensors)
        ledger.others += (self._messages.in_hand, self._collectives.keys)
        self._handlers: dict[Kind, Callable[[Action], Iterator[BlockedAction]]] = {
            Kind.F: self._forward,
            Kind.OVERLAP_F_B: self._overlap,
            Kind.STEP: self._step,
            Kind.REDUCE_GRAD: self._reduce,
            Kind.WAIT_REDUCE_GRAD: self._refuse,
            **dict.fromkeys((Kind.B, Kind.I), self._backward),
            **dict.fromkeys((Kind.W, Kind.R), self._alone),
            **dict.fromkeys((*TRANSFER_KINDS, Kind.OFFLOAD, Kind.RELOAD), self._transfers.run),
            **dict.fromkeys((Kind.UNSHARD, Kind.RESHARD), self._collective),
            **dict.fromkeys((Kind.SEND_F, Kind.SEND_B), self._messages.send),
            **dict.fromkeys((Kind.RECV_F, Kind.RECV_B), self._messages.receive),
            **dict.fromkeys((Kind.WAIT_SEND_F, Kind.WAIT_SEND_B), self._messages.wait),
        }

    def run(self) -> Iterator[BlockedAction | None]:
        """Run the program, once per step of a training; see the module for what is yielded."""
        events = self._run_passes()
        if self._work is not None:
            events = self._work.counted(events)
        self._passes.clear()
        self._states.clear()
        if not self._plan.counts_bytes:
            yield from events
            return
        with account(self._plan):
            BIRTHS.forget()
            for event in events:
                BIRTHS.leave_to(self._compute.ledger)  # another rank may go on here
                yield event
                del event  # it keeps its message
            BIRTHS.leave_to(self._compute.ledger)

    def _run_passes(self) -> Iterator[BlockedAction | None]:
        for step in range(self._plan.num_passes):
            self._compute.batch.begin_pass(step)
            self._updates.begin_pass(step)
            self._collectives.begin_pass()
            self._passes.append([])
            self._note_state()
            if self._work is not None:
                self._work.begin_pass()
            yield from self._run_once()
            if self._plan.training is None:
                yield from self._updates.step_shards()
            self._end_work()
            self._note_state()

    def _run_once(self) -> Iterator[BlockedAction | None]:
        for position, action in enumerate(self.actions):
            self.position = position
            try:
                yield from self._timed(action)
                self._messages.let_go()
                self._end_work()
            except (BrokenProgram, ModelFailed) as error:
                raise type(error)(self._at(str(error))) from error
            yield None
        yield from self._messages.until_sent()
        self._assert_nothing_left()

    def _timed(self, action: Action) -> Iterator[BlockedAction]:
        """Run one action and note when, and what it waited."""
        samples, waited = len(self._compute.live_bytes), 0
        begin = time.monotonic_ns()
        for blocked in self._handlers[action.kind](action):
            since = time.monotonic_ns() if waited else begin  # the first comes before all work
            yield blocked
            del blocked  # or it would keep the message
            waited += time.monotonic_ns() - since
        end, new = time.monotonic_ns(), len(self._compute.live_bytes) - samples
        self._passes[-1].append(TraceRow(begin, waited, end, samples, new))

    def drop_gradients(self) -> None:
        """Forget the gradients, so that the program can be run again."""
        for module in self._compute.stages.values():
            module.zero_grad(set_to_none=True)

    def parameter_gradients(self) -> list[torch.Tensor | None]:
        """Those that there are by now."""
        modules = self._compute.stages.values()
        return [each.grad for module in modules for each in module.parameters()]

    def result(self) -> RankResult:
        """The gradients, losses and live bytes. Precondition: ``run`` has ended."""
        compute = self._compute
        return RankResult(
            gradients={key: value.cpu() for key, value in compute.gradients().items()},
            losses={key: value.cpu() for key, value in compute.losses.items()},
            live_bytes=tuple(compute.live_bytes),
            updated=compute.host.stepped() | self._updates.weights() | self._collectives.weights(),
            host_live_bytes=tuple(compute.host_live_bytes),
            allocated_bytes=tuple(compute.allocated_bytes),
            born_bytes=self._born_bytes,
            states=tuple(self._states),
            passes=tuple(map(tuple, self._passes)),
            left_bytes=self._left_bytes,
            kept_bytes=compute.ledger.forgiven_bytes,
            written_bytes=compute.birth.written_bytes,
            saved_bytes=compute.saved_bytes,
            work=() if self._work is None else tuple(map(tuple, self._work.passes)),
        )

    def _forward(self, action: Action) -> Iterator[BlockedAction]:
        yield from self._run_forward(action)
        self._compute.drop_recomputed(key_of(action))

    def _run_forward(self, action: Action) -> Iterator[BlockedAction]:
        if action.stage == 0:
            x = self._compute.batch.input(key_of(action)).clone()  # the rank's own, to let go
        else:
            x = (yield from self._messages.take(action, Kind.RECV_F)).requires_grad_(
                self._plan.trains
            )
        output = self._compute.forward(key_of(action), x)
        del x
        if output is not None:
            self._messages.hand_over(tag_of(action, Kind.RECV_F, 1), output)
        if not self._plan.trains:
            self._compute.sample()

    def _backward(self, action: Action) -> Iterator[BlockedAction]:
        key = key_of(action)
        self._compute.require_forwarded(key, action.kind.name)
        output_gradient = None
        if action.stage < self._plan.num_stages - 1:
            output_gradient = yield from self._messages.take(action, Kind.RECV_B)
        gradient = self._compute.backward(key, output_gradient, is_split=action.kind is Kind.I)
        if gradient is not None:
            self._messages.hand_over(tag_of(action, Kind.RECV_B, -1), gradient)
        self._compute.sample()

    def _alone(self, action: Action) -> Iterator[BlockedAction]:
        """Run a W or an R, which take nothing from other ranks."""
        if action.kind is Kind.W:
            self._compute.weight(key_of(action), action.part)
        else:
            self._compute.recompute(key_of(action))
        yield from ()

    def _overlap(self, action: Action) -> Iterator[BlockedAction]:
        yield from self._run_forward(action)
        if action.partner is not None:
            yield from self._backward(action.partner)
        self._compute.drop_recomputed(key_of(action))

    def _collective(self, action: Action) -> Iterator[BlockedAction]:
        yield from self._collectives.run(action)
        self._compute.sample()

    def _step(self, action: Action) -> Iterator[BlockedAction]:
        if action.stage in self._plan.hosted:
            yield from self._transfers.run(action)
        else:
            yield from self._updates.run(action)
            self._compute.sample()

    def _reduce(self, action: Action) -> Iterator[BlockedAction]:
        """Sum gradients: among replicas, or with another rank of this one."""
        parallel = self._plan.parallel
        if parallel is None or action not in parallel.homes:
            yield from self._updates.run(action)
            self._compute.sample()
        else:
            yield from self._collective(action)

    def _note_state(self) -> None:
        """Note the model state that is here and on the host."""
        self._states.append((self._updates.state(), self._compute.host.state()))

    def _under_way(self) -> Iterator[torch.Tensor]:
        return self._messages.tensors(self._transfers.posted())

    def _end_work(self) -> None:
        if self._work is not None:
            self._work.end_action()

    def _refuse(self, action: Action) -> Iterator[BlockedAction]:
        raise BrokenProgram(f"{action} is for PyTorch's runtime: here a reduction ends by itself")

    def _at(self, message: str) -> str:
        return f"{self._plan.name(self.process)}, action {self.position}: {message}"

    def _assert_nothing_left(self) -> None:
        left = [
            *self._compute.left_over(),
            *self._transfers.left_over(),
            *self._collectives.left_over(),
            *self._updates.left_over(),
            *self._messages.left_over(),
        ]
        if left:
            raise BrokenProgram(self._at(f"left over: {', '.join(left)}"))
        if self._plan.counts_bytes:
            held = self._compute.ledger.live_bytes + self._compute.host.left_bytes()
            self._left_bytes = max(self._left_bytes, held)
