"""Messages between real processes, over ``torch.distributed`` process groups.

Messages carry no tags, as on NCCL: what arrives is what the order says. EVICT and LOAD have groups
of their own, so that a message never stands in the way of a transfer. A receive is posted at its
RECV and waited for where it is used; a send's buffer is kept, and waited for, until the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

import torch
import torch.distributed

from bubbleproof.reference_exec.plan import TRANSFER_KINDS, Plan
from bubbleproof.theory.actions import Action

Group = torch.distributed.ProcessGroup | None


class Work(Protocol):
    """The part of ``torch.distributed.Work`` used here."""

    def is_completed(self) -> bool: ...

    def wait(self, timeout: timedelta) -> bool: ...


@dataclass(slots=True, kw_only=True, eq=False)
class GroupTransfer:
    """A posted send or receive, with the buffer that must live until it ends."""

    work: Work
    tensor: torch.Tensor = field(repr=False)
    waited: bool = False

    def is_done(self) -> bool:
        return self.waited

    def get(self) -> torch.Tensor:
        return self.tensor

    def wait(self, seconds: float) -> None:
        """Block until the transfer ends. Raises torch's ``RuntimeError`` where it does not."""
        self.work.wait(timedelta(seconds=max(seconds, 0.001)))
        self.waited = True


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTransport:
    """One rank's transport: all messages in the group ``messages``, all transfers in ``links``."""

    is_blocking = False
    messages: Group
    links: Group

    @classmethod
    def opened(cls, plan: Plan, messages: Group = None) -> GroupTransport:
        """The transport for a plan, messages in the given group (the default one).

        Every process calls it: it opens a group where the plan evicts.
        """
        return cls(
            messages=messages, links=torch.distributed.new_group() if plan.acceptors else None
        )

    def isend(self, tag: Action, tensor: torch.Tensor, *, destination: int) -> GroupTransfer:
        message = tensor.contiguous()
        work = torch.distributed.isend(message, destination, group=self._group(tag))
        assert work is not None, f"{tag}: no process group to send in"
        return GroupTransfer(work=work, tensor=message)

    def irecv(self, tag: Action, buffer: torch.Tensor, *, source: int) -> GroupTransfer:
        work = torch.distributed.irecv(buffer, source, group=self._group(tag))
        assert work is not None, f"{tag}: no process group to receive in"
        return GroupTransfer(work=work, tensor=buffer)

    def _group(self, tag: Action) -> Group:
        return self.links if tag.kind in TRANSFER_KINDS else self.messages
