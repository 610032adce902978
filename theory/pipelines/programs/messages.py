"""Messages: which dependencies carry a tensor from one rank to another.

A dependency of a forward on the forward of the stage before, or of a backward (B, I) on the
backward of the stage after, is a *message* when the two tasks run on different ranks. F(j,k,g-1)
sends with ``SEND_F`` of stage g-1, which pairs with ``RECV_F`` of stage g on the other rank;
B/I(j,k,g+1) sends with ``SEND_B`` of stage g+1, paired with ``RECV_B`` of stage g.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bubbleproof.theory.model.actions import BACKWARD_KINDS, FORWARD_KINDS, NONE, Action, Kind
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


def messages(problem: Problem) -> list[Message]:
    """The messages of a problem, one for each data dependency between ranks.

    Other precedences between ranks order tasks without data and give no message.
    """
    rank, roles = problem.rank_of_task, [_roles(action) for action in problem.actions]
    before, after = problem.edges.before, problem.edges.after
    crosses = (rank[before] != rank[after]) & (rank[before] != NONE) & (rank[after] != NONE)
    # Two tasks may wait by several edges (overlaps do for their F and their B) and count once.
    pairs = dict.fromkeys(zip(before[crosses].tolist(), after[crosses].tolist(), strict=True))
    found, rank_of = [], rank.tolist()
    for producer, consumer in pairs:
        ends = {"source": rank_of[producer], "target": rank_of[consumer]}
        found += [
            Message(producer=producer, consumer=consumer, **ends, send=send, recv=recv)
            for send, recv in _message_actions(roles[producer], roles[consumer])
        ]
    return found


_Roles = tuple[Action | None, Action | None]  # the forward and the backward part of an action


def _roles(action: Action) -> _Roles:
    if action.partner is not None:
        return as_kind(action, Kind.F), action.partner
    is_forward, is_backward = action.kind in FORWARD_KINDS, action.kind in BACKWARD_KINDS
    return action if is_forward else None, action if is_backward else None


def _message_actions(producer: _Roles, consumer: _Roles) -> Iterator[tuple[Action, Action]]:
    for source, target, (step, send, recv) in zip(producer, consumer, _DIRECTIONS, strict=True):
        if source is None or target is None or target.stage != source.stage + step:
            continue
        if target.microbatch == source.microbatch and target.slice == source.slice:
            yield as_kind(source, send), as_kind(target, recv)


_DIRECTIONS = ((1, Kind.SEND_F, Kind.RECV_F), (-1, Kind.SEND_B, Kind.RECV_B))


def parts_of(action: Action) -> tuple[Action, ...]:
    """The action itself, or the forward and the backward of an overlapped pair."""
    return (action,) if action.partner is None else (as_kind(action, Kind.F), action.partner)


def as_kind(action: Action, kind: Kind) -> Action:
    """The action of another kind on the same stage, microbatch and slice."""
    return Action(stage=action.stage, kind=kind, microbatch=action.microbatch, slice=action.slice)
