"""Messages: which dependencies carry a tensor from one rank to another.

A dependency of a forward on the forward of the stage before, or of a backward (B, I) on the
backward of the stage after, is a *message* when the two tasks run on different ranks. F(j,k,g-1)
sends with ``SEND_F`` of stage g-1, which pairs with ``RECV_F`` of stage g on the other rank;
B/I(j,k,g+1) sends with ``SEND_B`` of stage g+1, paired with ``RECV_B`` of stage g.
"""

from __future__ import annotations

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
    actions, rank = problem.actions, problem.rank_of_task
    before, after = problem.edges.before, problem.edges.after
    crosses = (rank[before] != rank[after]) & (rank[before] != NONE) & (rank[after] != NONE)
    # Two tasks may wait by several edges (overlaps do for their F and their B) and count once.
    pairs = dict.fromkeys(zip(before[crosses].tolist(), after[crosses].tolist(), strict=True))
    found = []
    for producer, consumer in pairs:
        ends = {"source": int(rank[producer]), "target": int(rank[consumer])}
        found += [
            Message(producer=producer, consumer=consumer, **ends, send=send, recv=recv)
            for send, recv in _message_actions(actions[producer], actions[consumer])
        ]
    return found


def _message_actions(producer: Action, consumer: Action) -> list[tuple[Action, Action]]:
    pairs = []
    for kinds, step, send, recv in (
        (FORWARD_KINDS, 1, Kind.SEND_F, Kind.RECV_F),
        (BACKWARD_KINDS, -1, Kind.SEND_B, Kind.RECV_B),
    ):
        source, target = _role(producer, kinds), _role(consumer, kinds)
        if source is None or target is None or target.stage != source.stage + step:
            continue
        if (target.microbatch, target.slice) == (source.microbatch, source.slice):
            pairs.append((as_kind(source, send), as_kind(target, recv)))
    return pairs


def _role(action: Action, kinds: tuple[Kind, ...]) -> Action | None:
    """The forward or backward part of an action, or None when it has no such part."""
    return next((part for part in parts_of(action) if part.kind in kinds), None)


def parts_of(action: Action) -> tuple[Action, ...]:
    """The action itself, or the forward and the backward of an overlapped pair."""
    return (action,) if action.partner is None else (as_kind(action, Kind.F), action.partner)


def as_kind(action: Action, kind: Kind) -> Action:
    """The action of another kind on the same stage, microbatch and slice."""
    return Action(stage=action.stage, kind=kind, microbatch=action.microbatch, slice=action.slice)
