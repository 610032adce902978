"""The rank runtime: runs one rank's program, action by action.

``Rank.run`` is a generator, so the same code serves every driver: it yields ``None`` after each
action (another rank may go on here) and ``Blocked`` where it cannot go on until a transfer ends.
SEND and RECV only post (unless the transport is blocking); the action that consumes a message
waits for it. What the program promises is asserted as it runs: an action may only use what an
earlier one left, and at the end nothing is left over, no storage is held and every parameter has a
gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

import torch

from bubbleproof.reference_exec.linear import WeightGradStore
from bubbleproof.reference_exec.models import (
    Stage,
    microbatch_input,
    microbatch_loss,
    microbatch_target,
)
from bubbleproof.reference_exec.plan import Plan
from bubbleproof.reference_exec.saved import Hold, Ledger
from bubbleproof.reference_exec.transport import Transfer, Transport
from bubbleproof.theory.actions import Action, Kind

Key = tuple[int, int]
Gradients = dict[tuple[int, str], torch.Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """A rank cannot go on with ``action`` before ``transfer``, the message ``tag``, ends."""

    action: Action
    tag: Action
    peer: int
    transfer: Transfer

    def __str__(self) -> str:
        return f"{self.action} waits for {self.tag} with rank {self.peer}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankResult:
    """What a rank has to show for its program.

    ``gradients`` by (stage, parameter name); ``losses`` by microbatch, on the last stage's rank;
    ``live_bytes`` after each F, B, I and W (an overlapped pair counts as its two parts).
    """

    gradients: Gradients
    losses: dict[int, torch.Tensor]
    live_bytes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Forwarded:
    """What F leaves for B or I: the stage's input and output, both held, and its GEMMs' store."""

    x: torch.Tensor
    root: torch.Tensor
    store: WeightGradStore
    holds: tuple[Hold, Hold]


class Rank:
    """One rank of a plan, talking to the others through ``transport``."""

    def __init__(self, plan: Plan, rank: int, transport: Transport) -> None:
        self.rank = rank
        self.actions = plan.order(rank)
        self.position = 0
        self._plan = plan
        self._transport = transport
        self._stages = {stage: Stage(plan.spec, stage) for stage in plan.stages_of(rank)}
        self._ledger = Ledger()
        for module in self._stages.values():
            self._ledger.exclude(module.parameters())
        self._forwarded: dict[Key, _Forwarded] = {}
        self._deferred: dict[Key, WeightGradStore] = {}
        self._ready: dict[Action, torch.Tensor] = {}  # by tag: to be sent, or used on this rank
        self._arriving: dict[Action, Blocked] = {}
        self._leaving: list[Blocked] = []
        self._losses: dict[int, torch.Tensor] = {}
        self._live_bytes: list[int] = []
        self._handlers: dict[Kind, Callable[[Action], Iterator[Blocked]]] = {
            Kind.F: self._forward,
            Kind.B: self._backward,
            Kind.I: self._backward,
            Kind.W: self._weight,
            Kind.OVERLAP_F_B: self._overlap,
            Kind.SEND_F: self._send,
            Kind.SEND_B: self._send,
            Kind.RECV_F: self._receive,
            Kind.RECV_B: self._receive,
        }

    def run(self) -> Iterator[Blocked | None]:
        """Run the program; see the module docstring for what is yielded."""
        for position, action in enumerate(self.actions):
            self.position = position
            yield from self._handlers[action.kind](action)
            self._leaving = [sent for sent in self._leaving if not sent.transfer.is_done()]
            yield None
        for sent in self._leaving:
            yield from _until_done(sent)
        self._leaving.clear()
        self._assert_nothing_left()

    def result(self) -> RankResult:
        """The gradients, losses and live bytes. Precondition: ``run`` has ended."""
        gradients: Gradients = {}
        for stage, module in self._stages.items():
            for name, parameter in module.named_parameters():
                assert parameter.grad is not None, self._at(f"stage {stage} {name} has no gradient")
                gradients[stage, name] = parameter.grad
        return RankResult(
            gradients=gradients, losses=self._losses, live_bytes=tuple(self._live_bytes)
        )

    def _forward(self, action: Action) -> Iterator[Blocked]:
        plan, stage, microbatch = self._plan, action.stage, action.microbatch
        key = (stage, microbatch)
        assert key not in self._forwarded, self._at(f"{action} runs twice")
        if stage == 0:
            x = microbatch_input(plan.spec, microbatch)
        else:
            x = (yield from self._take(action, Kind.RECV_F)).requires_grad_()
        store = WeightGradStore(self._ledger)
        with self._ledger.hooks():
            root = self._stages[stage](x, store)
            if stage == plan.num_stages - 1:
                target = microbatch_target(plan.spec, microbatch)
                root = microbatch_loss(plan.spec, root, target, plan.num_microbatches)
                self._losses[microbatch] = root.detach()
            else:
                self._hand_over(_tag(action, Kind.RECV_F, 1), root.detach())
        holds = (Hold(self._ledger, x), Hold(self._ledger, root))
        self._forwarded[key] = _Forwarded(x=x, root=root, store=store, holds=holds)
        self._sample()

    def _backward(self, action: Action) -> Iterator[Blocked]:
        stage, key = action.stage, (action.stage, action.microbatch)
        assert key in self._forwarded, self._at(f"{action} without its forward, or again")
        output_gradient = None
        if stage < self._plan.num_stages - 1:
            output_gradient = yield from self._take(action, Kind.RECV_B)
        forwarded = self._forwarded.pop(key)
        forwarded.store.is_deferring = action.kind is Kind.I
        torch.autograd.backward(forwarded.root, output_gradient)
        if stage > 0:
            assert forwarded.x.grad is not None
            self._hand_over(_tag(action, Kind.RECV_B, -1), forwarded.x.grad)
        if action.kind is Kind.I:
            self._deferred[key] = forwarded.store
        del forwarded
        self._sample()

    def _weight(self, action: Action) -> Iterator[Blocked]:
        key = (action.stage, action.microbatch)
        assert key in self._deferred, self._at(f"{action} without its I, or again")
        self._deferred.pop(key).run()
        self._sample()
        yield from ()

    def _overlap(self, action: Action) -> Iterator[Blocked]:
        assert action.partner is not None
        yield from self._forward(action)
        yield from self._backward(action.partner)

    def _send(self, action: Action) -> Iterator[Blocked]:
        forward = action.kind is Kind.SEND_F
        step, kind = (1, Kind.RECV_F) if forward else (-1, Kind.RECV_B)
        tag = _tag(action, kind, step)
        assert tag in self._ready, self._at(f"{action} has nothing to send")
        peer = self._plan.stage_ranks[action.stage + step]
        transfer = self._transport.isend(tag, self._ready.pop(tag), destination=peer)
        sent = Blocked(action=action, tag=tag, peer=peer, transfer=transfer)
        self._leaving.append(sent)
        if self._transport.is_blocking:
            yield from _until_done(sent)

    def _receive(self, action: Action) -> Iterator[Blocked]:
        step = -1 if action.kind is Kind.RECV_F else 1
        assert action not in self._arriving, self._at(f"{action} runs twice")
        peer = self._plan.stage_ranks[action.stage + step]
        transfer = self._transport.irecv(action, source=peer)
        arriving = Blocked(action=action, tag=action, peer=peer, transfer=transfer)
        self._arriving[action] = arriving
        if self._transport.is_blocking:
            yield from _until_done(arriving)

    def _hand_over(self, tag: Action, tensor: torch.Tensor) -> None:
        """Make a tensor ready for its SEND, or for its consumer on this rank.

        The latter gets a copy, as a message is one: its bytes are the consumer's own.
        """
        assert tag not in self._ready, self._at(f"{tag} is ready twice")
        here = self._plan.stage_ranks[tag.stage] == self.rank
        self._ready[tag] = tensor.clone() if here else tensor

    def _take(self, action: Action, kind: Kind) -> Generator[Blocked, None, torch.Tensor]:
        """The message that ``action`` consumes, waiting for it where it comes from another rank."""
        tag = _tag(action, kind, 0)
        if tag in self._ready:
            return self._ready.pop(tag)
        assert tag in self._arriving, self._at(f"{action} needs {tag}, which is not posted")
        arriving = self._arriving.pop(tag)
        waiting = Blocked(action=action, tag=tag, peer=arriving.peer, transfer=arriving.transfer)
        yield from _until_done(waiting)
        return waiting.transfer.get()

    def _sample(self) -> None:
        self._live_bytes.append(self._ledger.live_bytes)

    def _at(self, message: str) -> str:
        return f"rank {self.rank}, action {self.position}: {message}"

    def _assert_nothing_left(self) -> None:
        left = [
            *(f"{stage}F{microbatch} without backward" for stage, microbatch in self._forwarded),
            *(f"{stage}I{microbatch} without W" for stage, microbatch in self._deferred),
            *(f"{tag} never sent or used" for tag in self._ready),
            *(f"{tag} never used" for tag in self._arriving),
        ]
        assert not left, self._at(f"left over: {', '.join(left)}")
        assert not self._ledger.live_bytes, self._at(f"{self._ledger.live_bytes} bytes still held")


def _tag(action: Action, kind: Kind, step: int) -> Action:
    """The RECV of the stage ``step`` further on that names a message of this microbatch."""
    return Action(
        stage=action.stage + step, kind=kind, microbatch=action.microbatch, slice=action.slice
    )


def _until_done(blocked: Blocked) -> Iterator[Blocked]:
    while not blocked.transfer.is_done():
        yield blocked
