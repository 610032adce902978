"""The messages of one rank: activations and gradients between its stages and their neighbours.

SEND and RECV only post (unless the transport is blocking); the action that consumes a message waits
for it, a WAIT_SEND for what its rank sent. A message is known by its tag, the RECV that takes it in
(``transport``).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

import torch

from bubbleproof.reference_exec.broken import require
from bubbleproof.reference_exec.ledger import Keys, keys_of
from bubbleproof.reference_exec.models.footprint import of_size
from bubbleproof.reference_exec.models.layers import DTYPES
from bubbleproof.reference_exec.models.reference import message_shape
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.runtime.device import Device, DeviceLane
from bubbleproof.reference_exec.runtime.transport import (
    BlockedAction,
    Transport,
    posted,
    still_used,
    until_done,
)
from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.pipelines.programs.messages import as_kind
from bubbleproof.verify.communication.send_waits import SEND_OF


class RankMessages:
    """What a rank has to send, is to be sent, and has in hand."""

    def __init__(self, plan: ReplayPlan, rank: int, transport: Transport, device: Device) -> None:
        self._plan, self._rank, self._transport, self._device = plan, rank, transport, device
        self._moved = {*plan.acceptors, *plan.offloaded()}
        self._ready: dict[Action, torch.Tensor] = {}  # by tag: to be sent, or used on this rank
        self._in_hand: list[torch.Tensor] = []  # what the action that runs takes or gives
        self._arriving: dict[Action, BlockedAction] = {}
        self._leaving: list[BlockedAction] = []
        self._sent: set[Action] = set()  # in this pass, unless it was waited for

    def send(self, action: Action) -> Iterator[BlockedAction]:
        """Post the send of what is ready."""
        forward = action.kind is Kind.SEND_F
        step, kind = (1, Kind.RECV_F) if forward else (-1, Kind.RECV_B)
        tag = tag_of(action, kind, step)
        require(tag in self._ready, f"{action} has nothing to send")
        peer = self._plan.rank_of(action.stage + step, action.microbatch)
        own = posted(self._transport, tag, self._ready.pop(tag), peer, is_send=True)
        sent = replace(own, action=action)
        self._sent.add(action)
        self._leaving = still_used(self._leaving)
        self._leaving.append(sent)
        if self._transport.is_blocking:
            yield from until_done(sent)

    def wait(self, action: Action) -> Iterator[BlockedAction]:
        """Wait until what a SEND has posted has left."""
        sent = as_kind(action, SEND_OF[action.kind])
        require(sent in self._sent, f"{action} waits for {sent}, which is not posted")
        self._sent.discard(sent)
        for leaving in self._leaving:
            if leaving.action == sent:
                yield from until_done(replace(leaving, action=action))

    def receive(self, action: Action) -> Iterator[BlockedAction]:
        """Post a receive into memory of its own."""
        plan, step = self._plan, -1 if action.kind is Kind.RECV_F else 1
        require(action not in self._arriving, f"{action} runs twice")
        peer = plan.rank_of(action.stage + step, action.microbatch)
        entered = action.stage + (action.kind is Kind.RECV_B)
        spec = of_size(plan.spec, action.microbatch)
        buffer = self._buffer(message_shape(spec, entered, action.slice, plan.num_slices))
        arriving = posted(self._transport, action, buffer, peer, is_send=False)
        self._arriving[action] = arriving
        if self._transport.is_blocking:
            yield from until_done(arriving)

    def hand_over(self, tag: Action, tensor: torch.Tensor) -> None:
        """Make a tensor ready for its SEND, or for its consumer on this rank.

        The latter gets a copy, as a message is one: its bytes are the consumer's own. So does the
        SEND of what leaves the rank: its storage is freed, perhaps before the message is through;
        and of a part of a larger storage, which the message would keep.
        """
        require(tag not in self._ready, f"{tag} is ready twice")
        stays = self._plan.rank_of(tag.stage, tag.microbatch) == self._rank
        leaves = (tag.stage - 1, tag.microbatch, tag.slice) in self._moved
        message = tensor.contiguous()
        self._in_hand.append(tensor)
        is_part = message.nbytes < message.untyped_storage().nbytes()
        is_shared = is_part or (message is tensor and (stays or leaves))
        self._ready[tag] = message.clone() if is_shared else message

    def take(self, action: Action, kind: Kind) -> Generator[BlockedAction, None, torch.Tensor]:
        """The message that ``action`` consumes, waiting for it where it comes from another rank."""
        tag = tag_of(action, kind, 0)
        if tag in self._ready:
            self._in_hand.append(self._ready.pop(tag))
            return self._in_hand[-1]
        require(tag in self._arriving, f"{action} needs {tag}, which is not posted")
        arriving = self._arriving.pop(tag)
        waiting = BlockedAction(
            action=action, tag=tag, peer=arriving.peer, transfer=arriving.transfer
        )
        yield from until_done(waiting)
        self._in_hand.append(waiting.transfer.get())
        self._leaving = still_used([*self._leaving, waiting])  # until the device has run it
        return self._in_hand[-1]

    def let_go(self) -> None:
        """The action that ran is done with what it had in hand."""
        self._in_hand.clear()

    def until_sent(self) -> Iterator[BlockedAction]:
        """Wait until all that was sent has left."""
        self._sent.clear()
        for sent in self._leaving:
            yield from until_done(sent)
        self._leaving = still_used(self._leaving)

    def left_over(self) -> list[str]:
        """What was never sent or used, one phrase each."""
        unused = [f"{tag} never used" for tag in self._arriving]
        return [*(f"{tag} never sent or used" for tag in self._ready), *unused]

    def in_hand(self) -> Keys:
        """The storages of what the action that runs takes or gives."""
        return keys_of(self._in_hand)

    def tensors(self, others: Iterable[BlockedAction]) -> Iterator[torch.Tensor]:
        """The messages on their way here or from here, and ``others``; no more what is through."""
        self._leaving = still_used(self._leaving)
        yield from self._ready.values()
        for one in (*self._arriving.values(), *self._leaving, *others):
            yield from one.transfer.buffers()

    def _buffer(self, shape: tuple[int, ...]) -> torch.Tensor:
        """Memory to receive a message into, for which nothing computed before has a use."""
        with self._device.on(DeviceLane.RECEIVES):
            return torch.empty(
                shape, dtype=DTYPES[self._plan.spec.dtype], device=self._device.torch_device
            )


@lru_cache(maxsize=10_000)
def tag_of(action: Action, kind: Kind, step: int) -> Action:
    """The RECV of the stage ``step`` further on that names a message of this microbatch."""
    return Action(
        stage=action.stage + step, kind=kind, microbatch=action.microbatch, slice=action.slice
    )
