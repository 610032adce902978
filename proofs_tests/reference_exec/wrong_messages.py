"""Executor faults in what is sent, where to and under which name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from bubbleproof.reference_exec.drivers.virtual import Endpoint
from bubbleproof.reference_exec.runtime.transport import Transfer
from bubbleproof.theory.model.actions import Action

Marks = list[object]
Send = Callable[..., Transfer]
FIRST = "1RECV_F1"


class _Gone:
    """A send that nobody will receive."""

    def is_done(self) -> bool:
        return True

    def buffers(self) -> tuple[torch.Tensor, ...]:
        return ()

    def get(self) -> torch.Tensor:
        raise AssertionError("nobody receives it")


def _sending(patch: pytest.MonkeyPatch, marks: Marks, other: Callable[..., Transfer]) -> None:
    """``other(right, self, tag, tensor, destination)`` in the place of the first activation's."""
    right = Endpoint.isend

    def isend(self: Endpoint, tag: Action, tensor: torch.Tensor, *, destination: int) -> Transfer:
        if str(tag) != FIRST:
            return right(self, tag, tensor, destination=destination)
        marks.append(tag)
        return other(right, self, tag, tensor, destination)

    patch.setattr(Endpoint, "isend", isend)


def to_the_wrong_rank(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """One activation goes two ranks on."""
    _sending(
        patch, marks, lambda right, me, tag, x, to: right(me, tag, x, destination=(to + 1) % 4)
    )


def under_a_wrong_tag(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """One activation is called another microbatch's."""
    _sending(
        patch,
        marks,
        lambda right, me, tag, x, to: right(me, replace(tag, microbatch=0), x, destination=to),
    )


def dropped(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """One activation is never sent."""
    _sending(patch, marks, lambda *_: _Gone())


def of_another_shape(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """One activation is sent without its last token."""
    _sending(patch, marks, lambda right, me, tag, x, to: right(me, tag, x[:, :-1], destination=to))


def rounded(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """One activation passes through float32."""
    _sending(
        patch,
        marks,
        lambda right, me, tag, x, to: right(me, tag, x.float().double(), destination=to),
    )


def unwritten(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """One activation is sent before it is there."""
    _sending(
        patch,
        marks,
        lambda right, me, tag, x, to: right(me, tag, torch.zeros_like(x), destination=to),
    )


def sent_twice(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """One activation is sent again."""

    def twice(right: Send, me: Endpoint, tag: Action, x: torch.Tensor, to: int) -> Transfer:
        right(me, tag, x, destination=to)
        return right(me, tag, x, destination=to)

    _sending(patch, marks, twice)


FAULTS = (
    (to_the_wrong_rank, "1f1b on four"),
    (under_a_wrong_tag, "1f1b"),
    (dropped, "1f1b"),
    (of_another_shape, "1f1b"),
    (rounded, "1f1b"),
    (unwritten, "zb-h1"),
    (sent_twice, "1f1b"),
)
