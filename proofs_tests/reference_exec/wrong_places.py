"""Work in actions that have none, and before, between and after them."""

from __future__ import annotations

import pytest

from bubbleproof.reference_exec.runtime import (
    compute,
    host,
    rank,
    rank_messages,
    replica_collectives,
    updates,
)
from proofs_tests.reference_exec.patching import Marks, before, multiply


def _working(patch: pytest.MonkeyPatch, owner: type, method: str, marks: Marks) -> None:
    before(patch, owner, method, lambda *_: marks.append(multiply()))


def work_in_send(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A SEND multiplies matrices."""
    _working(patch, rank_messages.RankMessages, "send", marks)


def work_in_receive(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A RECV multiplies matrices."""
    _working(patch, rank_messages.RankMessages, "receive", marks)


def work_in_step(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A STEP multiplies matrices."""
    _working(patch, updates.Updates, "_step", marks)


def work_in_exchange(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """The exchange of two ranks of a stage multiplies matrices."""
    _working(patch, updates.Updates, "_add_replicas", marks)


def work_in_collective(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """UNSHARD, RESHARD and REDUCE_GRAD multiply matrices."""
    _working(patch, replica_collectives.Collectives, "run", marks)


def work_on_the_way_to_the_host(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """What goes to the host is multiplied by something first."""
    _working(patch, host.Host, "keep", marks)


def work_in_evict(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """An EVICT multiplies matrices."""
    _working(patch, compute.Compute, "send_away", marks)


def work_before_the_first_action(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Each pass begins with a product of matrices."""
    _working(patch, updates.Updates, "begin_pass", marks)


def work_in_a_later_pass(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """The second pass of a training begins with a forward."""

    def begin(self: updates.Updates, _: int) -> None:
        calls.append(self)
        if calls.count(self) == 2:
            marks.append(multiply())

    calls: Marks = []
    before(patch, updates.Updates, "begin_pass", begin)


def work_after_the_last_action(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A rank that has done its program goes on computing."""
    _working(patch, rank.Rank, "_assert_nothing_left", marks)


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
