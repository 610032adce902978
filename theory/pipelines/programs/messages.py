"""Messages: which dependencies carry a tensor from one rank to another.

A dependency of a forward on the forward of the stage before, or of a backward (B, I) on the
backward of the stage after, is a *message* when the two tasks run on different ranks. F(j,k,g-1)
sends with ``SEND_F`` of stage g-1, which pairs with ``RECV_F`` of stage g on the other rank;
B/I(j,k,g+1) sends with ``SEND_B`` of stage g+1, paired with ``RECV_B`` of stage g.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bubbleproof.theory.model.actions import (
    BACKWARD_KINDS,
    FORWARD_KINDS,
    NONE,
    Action,
    ActionTable,
    Bools,
    Ints,
    Kind,
)
from bubbleproof.theory.model.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A tensor that task ``producer`` makes on rank ``source`` for ``consumer`` on ``target``."""

    producer: int
    consumer: int
    source: int
    target: int
    send: Action
    recv: Action


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MessageTable:
    """Messages as columns of one length, each as in ``Message``."""

    producer: Ints
    consumer: Ints
    source: Ints
    target: Ints
    send: ActionTable
    recv: ActionTable

    def __len__(self) -> int:
        return len(self.producer)

    def __getitem__(self, row: int) -> Message:
        return Message(
            producer=self.producer.item(row),
            consumer=self.consumer.item(row),
            source=self.source.item(row),
            target=self.target.item(row),
            send=self.send[row],
            recv=self.recv[row],
        )


def messages(problem: Problem) -> list[Message]:
    """The messages of a problem, one for each data dependency between ranks.

    Other precedences between ranks order tasks without data and give no message.
    """
    table = message_table(problem)
    return [table[row] for row in range(len(table))]


def message_table(problem: Problem) -> MessageTable:
    """The same as columns, in the order of the precedences that they go along."""
    rank, actions = problem.rank_of_task, problem.actions
    before, after = problem.edges.before, problem.edges.after
    crosses = (rank[before] != rank[after]) & (rank[before] != NONE) & (rank[after] != NONE)
    before, after = before[crosses], after[crosses]
    # Two tasks may wait by several edges (overlaps do for their F and their B) and count once.
    first = np.sort(np.unique(before * len(rank) + after, return_index=True)[1])
    before, after = before[first], after[first]
    alike = actions.slice[before] == actions.slice[after]
    is_part, stage, microbatch = map(np.stack, zip(*_parts(actions), strict=True))
    carries = alike & is_part[:, before] & is_part[:, after]
    carries &= stage[:, after] == stage[:, before] + _STEPS
    carries &= microbatch[:, after] == microbatch[:, before]
    edge, way = np.nonzero(carries.T)
    producer, consumer = before[edge], after[edge]
    of_sample = microbatch[way, producer], actions.slice[producer]
    return MessageTable(
        producer=producer,
        consumer=consumer,
        source=rank[producer],
        target=rank[consumer],
        send=ActionTable.of(np.where(way, *_SENDS), stage[way, producer], *of_sample),
        recv=ActionTable.of(np.where(way, *_RECVS), stage[way, consumer], *of_sample),
    )


def _parts(actions: ActionTable) -> Iterator[tuple[Bools, Ints, Ints]]:
    """The forward, then the backward part of each action: whether it has one, stage, microbatch."""
    is_pair = actions.partner_stage != NONE
    yield is_pair | actions.is_kind(*FORWARD_KINDS), actions.stage, actions.microbatch
    yield (
        is_pair | actions.is_kind(*BACKWARD_KINDS),
        np.where(is_pair, actions.partner_stage, actions.stage),
        np.where(is_pair, actions.partner_microbatch, actions.microbatch),
    )


_STEPS = np.array([[1], [-1]])  # of a forward's and of a backward's message, in stages
_SENDS, _RECVS = (Kind.SEND_B, Kind.SEND_F), (Kind.RECV_B, Kind.RECV_F)


def parts_of(action: Action) -> tuple[Action, ...]:
    """The action itself, or the forward and the backward of an overlapped pair."""
    return (action,) if action.partner is None else (as_kind(action, Kind.F), action.partner)


def as_kind(action: Action, kind: Kind) -> Action:
    """The action of another kind on the same stage, microbatch and slice."""
    return Action(stage=action.stage, kind=kind, microbatch=action.microbatch, slice=action.slice)
