"""Executor faults in what is sent, where to and under which name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
import torch

from bubbleproof.reference_exec.drivers.virtual import Endpoint
from bubbleproof.reference_exec.runtime.transport import PostedTransfer
from bubbleproof.theory.model.actions import Action
from proofs_tests.reference_exec.patching import Marks

Send = Callable[..., PostedTransfer]
FIRST = "1RECV_F1"


class _Gone:
    """A send that nobody will receive."""

    def is_done(self) -> bool:
        return True

    def buffers(self) -> tuple[torch.Tensor, ...]:
        return ()

    def get(self) -> torch.Tensor:
        raise AssertionError("nobody receives it")


def _sending(patch: pytest.MonkeyPatch, marks: Marks, other: Callable[..., PostedTransfer]) -> None:
    """``other(right, self, tag, tensor, destination)`` in the place of the first activation's."""
    right = Endpoint.post

    def post(
        self: Endpoint, tag: Action, end: torch.Tensor, peer: int, *, is_send: bool
    ) -> PostedTransfer:
        if str(tag) != FIRST or not is_send:
            return right(self, tag, end, peer, is_send=is_send)
        marks.append(tag)
        return other(partial(right, is_send=True), self, tag, end, peer)

    patch.setattr(Endpoint, "post", post)


def to_the_wrong_rank(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """One activation goes two ranks on."""
    _sending(patch, marks, lambda right, me, tag, x, to: right(me, tag, x, (to + 1) % 4))


def under_a_wrong_tag(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """One activation is called another microbatch's."""
    _sending(
        patch,
        marks,
        lambda right, me, tag, x, to: right(me, replace(tag, microbatch=0), x, to),
    )


def dropped(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """One activation is never sent."""
    _sending(patch, marks, lambda *_: _Gone())


def of_another_shape(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """One activation is sent without its last token."""
    _sending(patch, marks, lambda right, me, tag, x, to: right(me, tag, x[:, :-1], to))


def rounded(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """One activation passes through float32."""
    _sending(
        patch,
        marks,
        lambda right, me, tag, x, to: right(me, tag, x.float().double(), to),
    )


def unwritten(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """One activation is sent before it is there."""
    _sending(
        patch,
        marks,
        lambda right, me, tag, x, to: right(me, tag, torch.zeros_like(x), to),
    )


def sent_twice(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """One activation is sent again."""

    def twice(right: Send, me: Endpoint, tag: Action, x: torch.Tensor, to: int) -> PostedTransfer:
        right(me, tag, x, to)
        return right(me, tag, x, to)

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
