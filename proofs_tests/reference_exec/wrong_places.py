"""Work in actions that have none, and before, between and after them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from bubbleproof.reference_exec.runtime import (
    compute,
    host,
    rank,
    rank_messages,
    replica_collectives,
    updates,
)

Marks = list[object]
Key = tuple[int, int, int]


def _multiply() -> torch.Size:
    """The shape of a product of matrices that nobody needs."""
    return (torch.ones(3, 4) @ torch.ones(4, 5)).shape


def _generating(patch: pytest.MonkeyPatch, owner: type, method: str, marks: Marks) -> None:
    right = getattr(owner, method)

    def run(self: object, *given: object) -> Iterator[object]:
        marks.append(_multiply())
        yield from right(self, *given)

    patch.setattr(owner, method, run)


def work_in_send(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A SEND multiplies matrices."""
    _generating(patch, rank_messages.RankMessages, "send", marks)


def work_in_receive(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A RECV multiplies matrices."""
    _generating(patch, rank_messages.RankMessages, "receive", marks)


def work_in_step(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A STEP multiplies matrices."""
    _generating(patch, updates.Updates, "_step", marks)


def work_in_exchange(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """The exchange of two ranks of a stage multiplies matrices."""
    _generating(patch, updates.Updates, "_add_replicas", marks)


def work_in_collective(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """UNSHARD, RESHARD and REDUCE_GRAD multiply matrices."""
    _generating(patch, replica_collectives.Collectives, "run", marks)


def work_on_the_way_to_the_host(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """What goes to the host is multiplied by something first."""
    right = host.Host.keep

    def keep(self: host.Host, key: Key, content: torch.Tensor) -> None:
        marks.append(_multiply())
        right(self, key, content)

    patch.setattr(host.Host, "keep", keep)


def work_in_evict(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """An EVICT multiplies matrices."""
    right = compute.Compute.send_away

    def send(self: compute.Compute, *given: object) -> object:
        marks.append(_multiply())
        return right(self, *given)  # type: ignore[arg-type]  # passed on

    patch.setattr(compute.Compute, "send_away", send)


def work_before_the_first_action(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Each pass begins with a product of matrices."""
    right = updates.Updates.begin_pass

    def begin(self: updates.Updates) -> None:
        marks.append(_multiply())
        right(self)

    patch.setattr(updates.Updates, "begin_pass", begin)


def work_in_a_later_pass(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """The second pass of a training begins with a forward."""
    right = updates.Updates.begin_pass

    def begin(self: updates.Updates) -> None:
        calls.append(self)
        if calls.count(self) == 2:
            marks.append(_multiply())
        right(self)

    calls: Marks = []
    patch.setattr(updates.Updates, "begin_pass", begin)


def work_after_the_last_action(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A rank that has done its program goes on computing."""
    right = rank.Rank._assert_nothing_left

    def left(self: rank.Rank) -> None:
        marks.append(_multiply())
        right(self)

    patch.setattr(rank.Rank, "_assert_nothing_left", left)


FAULTS = (
    (work_in_send, "1f1b"),
    (work_in_receive, "1f1b"),
    (work_in_step, "training"),
    (work_in_exchange, "chimera"),
    (work_in_collective, "zero"),
    (work_on_the_way_to_the_host, "off-loaded"),
    (work_in_evict, "bpipe"),
    (work_before_the_first_action, "1f1b"),
    (work_in_a_later_pass, "training"),
    (work_after_the_last_action, "1f1b"),
)
