"""What a rank needs of whatever carries its messages.

A message is named by the action that receives it (its *tag*): SEND_F of stage g and RECV_F of stage
g+1 carry the tag ``<g+1>RECV_F<microbatch>``; what an EVICT or a LOAD moves is named by itself and
has a communicator of its own, one in-order stream per pair of ranks. The call returns at once; a
transfer is done when the message is in the receiver's buffer (there) or the sender's may be used
again (here).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import torch

from bubbleproof.theory.model.actions import Action


class PostedTransfer(Protocol):
    """One posted send or receive."""

    def is_done(self) -> bool:
        """Whether the transfer has ended."""

    def buffers(self) -> tuple[torch.Tensor, ...]:
        """The memory that it uses, for as long as it does."""

    def get(self) -> torch.Tensor:
        """The tensor. Precondition: ``is_done()`` at a receiver."""


class Transport(Protocol):
    """One rank's access to the others; if ``is_blocking``, SEND and RECV wait for the transfer."""

    @property
    def is_blocking(self) -> bool: ...

    def post(self, tag: Action, end: torch.Tensor, peer: int, *, is_send: bool) -> PostedTransfer:
        """Post a send, or a receive into memory of the shape and the type of the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedAction:
    """A rank cannot go on with ``action`` before ``transfer``, the message ``tag``, ends.

    ``peer`` is a rank of the same replica or, where it ``is_of_group``, a replica of the same rank.
    """

    action: Action
    tag: Action
    peer: int
    transfer: PostedTransfer
    is_of_group: bool = False

    def __str__(self) -> str:
        noun = "replica" if self.is_of_group else "rank"
        return f"{self.action} waits for {self.tag} with {noun} {self.peer}"


def posted(
    transport: Transport, tag: Action, tensor: torch.Tensor, peer: int, *, is_send: bool
) -> BlockedAction:
    """Post one end of a message, for the action that names it to wait for."""
    transfer = transport.post(tag, tensor, peer, is_send=is_send)
    return BlockedAction(action=tag, tag=tag, peer=peer, transfer=transfer)


def still_used(posted: Iterable[BlockedAction]) -> list[BlockedAction]:
    """Those whose transfers use memory still."""
    return [one for one in posted if one.transfer.buffers()]


def until_done(blocked: BlockedAction) -> Iterator[BlockedAction]:
    """Yield until the transfer has ended."""
    while not blocked.transfer.is_done():
        yield blocked
