"""What a rank needs of whatever carries its messages.

A message is named by the action that receives it (its *tag*): SEND_F of stage g and RECV_F of stage
g+1 carry the tag ``<g+1>RECV_F<microbatch>``. Both calls return at once; a transfer is done when
the message is in the receiver's hands (there) or its buffer may be used again (at the sender).
"""

from __future__ import annotations

from typing import Protocol

import torch

from bubbleproof.theory.actions import Action


class Transfer(Protocol):
    """One posted send or receive."""

    def is_done(self) -> bool:
        """Whether the transfer has ended."""
        ...

    def get(self) -> torch.Tensor:
        """The tensor. Precondition: ``is_done()`` at a receiver."""
        ...


class Transport(Protocol):
    """One rank's access to the others; if ``is_blocking``, SEND and RECV wait for the transfer."""

    @property
    def is_blocking(self) -> bool: ...

    def isend(self, tag: Action, tensor: torch.Tensor, *, destination: int) -> Transfer:
        """Post a send."""
        ...

    def irecv(self, tag: Action, *, source: int) -> Transfer:
        """Post a receive of one boundary activation or gradient."""
        ...
