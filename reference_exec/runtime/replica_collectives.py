"""Collectives run: UNSHARD, RESHARD and REDUCE_GRAD among the replicas of one rank.

Each collective but RESHARD stands twice in a program: the first begins it, the second ends it. Its
messages go from every member to every other, so the order of each sum is known:

    UNSHARD       begins: buffers are made, each member sends its shards
                  ends:   the other members' shards have come
    REDUCE_GRAD   begins: each member sends the others their part of its gradient
                  ends:   (g_0 + g_1) + g_2 + ... of the members, in their order, is added to what
                          earlier REDUCE_GRADs left in this member's shard; the gradient is freed
    RESHARD       frees a copy of the parameters of level 3

Where a stage is on two ranks each reduces its own gradient among its own members, and they exchange
what they have before they step (``updates``).

Replicas that are whole only sum (plain data parallelism): a REDUCE_GRAD sends all others the whole
gradient, and the sum takes its place. Nothing is sharded then: every member has the same sum and
steps with it, on its rank or its host. What else a stage has, and where, is as in one replica; the
copies on their way are not counted.

Messages of collectives carry no tags. A header goes before each one's data, and members whose
headers differ end the run: data are received only when it is known what they are.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from functools import reduce

import torch
from torch import nn

from bubbleproof.reference_exec.broken import BrokenProgram
from bubbleproof.reference_exec.ledger import Keys, keys_of
from bubbleproof.reference_exec.models.reference import Named, gradients_of, trained
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.runtime.compute import Compute
from bubbleproof.reference_exec.runtime.device import handed_over
from bubbleproof.reference_exec.runtime.stage_shards import Buffer, StageShards
from bubbleproof.reference_exec.runtime.transport import (
    BlockedAction,
    Transport,
    posted,
    still_used,
    until_done,
)
from bubbleproof.theory.model.actions import Action, Kind


@dataclass(slots=True, kw_only=True, eq=False)
class _Piece:
    """One buffer of a collective, by member: what each is sent, and what comes of each.

    Of the two this member's own is what it keeps, and is there.
    """

    parts: list[torch.Tensor]
    rooms: list[torch.Tensor]


@dataclass(slots=True, kw_only=True, eq=False)
class _UnderWay:
    """A collective that has begun: its pieces by level, what was sent, and the headers to come."""

    pieces: dict[int, _Piece]
    gradients: dict[int, Buffer] = field(default_factory=dict)
    sent: list[BlockedAction] = field(default_factory=list)
    headers: dict[int, BlockedAction] = field(default_factory=dict)


class Collectives:
    """The collectives of one process. ``group`` reaches the replicas of its rank by number.

    Stages without shards are whole.
    """

    def __init__(self, plan: ReplayPlan, compute: Compute, group: Transport | None) -> None:
        self._shards, self._group, self._member = compute.shards, group, compute.replica
        self._device, members = compute.device, plan.num_replicas
        stages, shards = compute.stages, compute.shards
        self._whole = {g: m for g, m in stages.items() if g not in shards and members > 1}
        self._members = range(members)
        self._others = [other for other in range(members) if other != self._member]
        self._under_way: dict[Action, _UnderWay] = {}
        self._ended: set[Action] = set()
        self._sent: list[BlockedAction] = []

    def run(self, action: Action) -> Iterator[BlockedAction]:
        """Begin an UNSHARD or REDUCE_GRAD, or end the one begun; run a RESHARD."""
        shards = self._shards.get(action.stage)
        if shards is None and action.kind is not Kind.REDUCE_GRAD:
            raise BrokenProgram(f"{action} of a stage that is whole")
        if shards is not None and action.kind is Kind.RESHARD:
            if 3 in shards.layout.segments:
                shards.free_copy(action.slice)
        elif action in self._ended:
            raise BrokenProgram(f"{action} runs twice")
        elif action not in self._under_way:
            self._under_way[action] = self._begun(action, shards)
        else:
            now = self._under_way[action]
            yield from self._received(action, now)
            self._end(action, shards, now)
            del self._under_way[action]
            self._ended.add(action)

    def begin_pass(self) -> None:
        """Begin a run of the program."""
        self._ended.clear()
        for shards in self._shards.values():
            shards.begin_pass()

    def weights(self) -> Named:
        """This member's row of each parameter, by (stage, name)."""
        found: Named = {}
        for shards in self._shards.values():
            found |= {key: row.cpu() for key, row in shards.pieces(shards.shard).items()}
        return found

    def keys(self) -> Keys:
        """The storages of what is on its way among the members: parts of what a stage has whole."""
        self._sent = still_used(self._sent)
        sent = [buffer for one in self._sent for buffer in one.transfer.buffers()]
        under_way = self._under_way.values()
        rooms = [room for now in under_way for piece in now.pieces.values() for room in piece.rooms]
        headers = [coming for now in under_way for coming in now.headers.values()]
        coming = [buffer for one in headers for buffer in one.transfer.buffers()]
        return keys_of([*sent, *rooms, *coming])

    def left_over(self) -> list[str]:
        """What was begun and not ended, or is still here or not reduced; one phrase each."""
        found = [f"{action} not waited for" for action in self._under_way]
        unsummed = self._whole.keys() - {action.stage for action in self._ended}
        found += [f"the gradient of stage {stage} never reduced" for stage in sorted(unsummed)]
        for stage, shards in self._shards.items():
            found += [f"{stage}UNSHARD.{number} never freed" for number in shards.copies]
            found += [
                f"the ZeRO-{level} gradient of stage {stage} for REDUCE_GRAD {number} never reduced"
                for level, number in shards.gradients
            ]
        return found

    def _begun(self, action: Action, shards: StageShards | None) -> _UnderWay:
        """A collective of which all that this member gives is on its way, behind a header."""
        if shards is None:
            gradients = gradients_of({action.stage: self._whole[action.stage]})
            flat = torch.cat([gradient.reshape(-1) for gradient in gradients.values()])
            now = _UnderWay(pieces={0: self._to_sum([flat] * len(self._members))})
        elif action.kind is Kind.UNSHARD:
            now = _UnderWay(pieces=self._to_gather(action.slice, shards))
        else:
            now = self._to_reduce(action.slice, shards)
        for member in self._others:
            header = handed_over(_header(action), self._device)
            self._send(action, now, header, member)
            now.headers[member] = self._posted(
                action, torch.zeros_like(header), member, is_send=False
            )
        for piece in now.pieces.values():
            for member in self._others:
                self._send(action, now, piece.parts[member], member)
        return now

    def _to_sum(self, parts: list[torch.Tensor]) -> _Piece:
        own = parts[self._member]
        rooms = [
            own if member == self._member else torch.empty_like(own) for member in range(len(parts))
        ]
        return _Piece(parts=parts, rooms=rooms)

    def _to_gather(self, number: int, shards: StageShards) -> dict[int, _Piece]:
        """This member's shards; the first UNSHARD brings all levels, others level 3."""
        pieces = {}
        for level, segment in shards.layout.segments.items():
            if level == 3 or number == shards.first:
                buffer = shards.begin_copy(number) if level == 3 else shards.whole[level]
                own, rooms = shards.shard[level].flat, segment.parts(buffer.flat)
                rooms[self._member].copy_(own)
                pieces[level] = _Piece(parts=[own] * len(rooms), rooms=rooms)
        return pieces

    def _to_reduce(self, number: int, shards: StageShards) -> _UnderWay:
        """Parts of the gradients; the last REDUCE_GRAD takes all levels, others 2 and 3."""
        now = _UnderWay(pieces={})
        for level, segment in shards.layout.segments.items():
            if level > 1 or number == shards.last:
                now.gradients[level] = gradient = shards.take_gradient(level, number)
                now.pieces[level] = self._to_sum(segment.parts(gradient.flat))
        return now

    def _end(self, action: Action, shards: StageShards | None, now: _UnderWay) -> None:
        if shards is None:
            put_gradient(self._whole[action.stage], self._total(now.pieces[0]))
        elif action.kind is Kind.UNSHARD:
            shards.fill(action.slice, now.pieces)
        else:
            for level, gradient in now.gradients.items():
                shards.add_reduced(level, gradient, self._total(now.pieces[level]))

    def _total(self, piece: _Piece) -> torch.Tensor:
        return _sum([piece.rooms[member] for member in self._members])

    def _received(self, action: Action, now: _UnderWay) -> Generator[BlockedAction, None, None]:
        """Wait until all data have come and gone."""
        waiting = list(now.sent)
        for member, coming in now.headers.items():
            yield from until_done(coming)
            kind, stage, number = found = coming.transfer.get().tolist()
            if found != _header(action).tolist():
                other = Action(kind=Kind(kind), stage=stage, slice=number)
                raise BrokenProgram(
                    f"{action} met {other} of replica {member}; the replicas of a rank must issue "
                    "their collectives in one order"
                )
            rooms = [piece.rooms[member] for piece in now.pieces.values()]
            waiting += [
                self._posted(action, room, member, is_send=False) for room in rooms if len(room)
            ]
        for end in waiting:
            yield from until_done(end)

    def _send(self, action: Action, now: _UnderWay, tensor: torch.Tensor, member: int) -> None:
        if len(tensor):
            now.sent.append(self._posted(action, tensor, member, is_send=True))
            self._sent.append(now.sent[-1])

    def _posted(
        self, action: Action, end: torch.Tensor, member: int, *, is_send: bool
    ) -> BlockedAction:
        if self._group is None:
            raise BrokenProgram(f"{action} of a replica that reaches no other")
        waiting = posted(self._group, action, end, member, is_send=is_send)
        return replace(waiting, is_of_group=True)


def _sum(parts: list[torch.Tensor]) -> torch.Tensor:
    """The sum of the members' parts in their order."""
    return reduce(torch.add, parts)


def put_gradient(module: nn.Module, total: torch.Tensor) -> None:
    """Let a sum, all parameters in a row, take the place of a stage's gradient."""
    parameters = list(trained(module).values())
    parts = torch.split(total, [parameter.numel() for parameter in parameters])
    for parameter, part in zip(parameters, parts, strict=True):
        if parameter.grad is None:
            raise BrokenProgram("a REDUCE_GRAD of a stage that has no gradient")
        parameter.grad.copy_(part.view_as(parameter.grad))


def _header(action: Action) -> torch.Tensor:
    """What a collective is: kind, stage, number."""
    return torch.tensor([int(action.kind), action.stage, action.slice])
