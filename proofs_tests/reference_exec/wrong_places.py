"""Work in actions that have none, and before, between and after them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bubbleproof.reference_exec.runtime import (
    compute,
    host,
    rank,
    rank_messages,
    replica_collectives,
    updates,
)
from proofs_tests.reference_exec.patching import before, multiply

Marks = list[object]
Key = tuple[int, int, int]


def _generating(patch: pytest.MonkeyPatch, owner: type, method: str, marks: Marks) -> None:
    right = getattr(owner, method)

    def run(self: object, *given: object) -> Iterator[object]:
        marks.append(multiply())
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
    before(patch, host.Host, "keep", lambda *_: marks.append(multiply()))


def work_in_evict(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """An EVICT multiplies matrices."""
    before(patch, compute.Compute, "send_away", lambda *_: marks.append(multiply()))


def work_before_the_first_action(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Each pass begins with a product of matrices."""
    before(patch, updates.Updates, "begin_pass", lambda *_: marks.append(multiply()))


def work_in_a_later_pass(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """The second pass of a training begins with a forward."""

    def begin(self: updates.Updates) -> None:
        calls.append(self)
        if calls.count(self) == 2:
            marks.append(multiply())

    calls: Marks = []
    before(patch, updates.Updates, "begin_pass", begin)


def work_after_the_last_action(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A rank that has done its program goes on computing."""
    before(patch, rank.Rank, "_assert_nothing_left", lambda *_: marks.append(multiply()))


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
