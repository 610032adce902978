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
what they have before they step (``updates``). Replicas that are whole only sum (``whole_sums``).

Messages of collectives carry no tags. A header goes before each one's data, and members whose
headers differ end the run: data are received only when it is known what they are.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field

import torch
from torch import nn

from bubbleproof.reference_exec.broken import BrokenProgram
from bubbleproof.reference_exec.ledger import keys_of
from bubbleproof.reference_exec.runtime.device import CPU, Device, handed_over
from bubbleproof.reference_exec.runtime.host import Named
from bubbleproof.reference_exec.runtime.stage_shards import Buffer, StageShards
from bubbleproof.reference_exec.runtime.transport import (
    Blocked,
    Transfer,
    Transport,
    still_used,
    until_done,
)
from bubbleproof.reference_exec.runtime.whole_sums import WholeSums
from bubbleproof.theory.model.actions import Action, Kind


@dataclass(slots=True, kw_only=True, eq=False)
class _UnderWay:
    """A collective that has begun: what was sent, the headers to come, and where data are to go."""

    sent: list[Blocked] = field(default_factory=list)
    headers: dict[int, Blocked] = field(default_factory=dict)
    rooms: dict[int, list[torch.Tensor]] = field(default_factory=dict)
    levels: tuple[int, ...] = ()
    gradients: dict[int, Buffer] = field(default_factory=dict)
    own: torch.Tensor = field(default_factory=lambda: torch.empty(0), repr=False)


class Collectives:
    """The collectives of one process. ``group`` reaches the replicas of its rank by number.

    ``stages`` are the process's own; those without ``shards`` are whole.
    """

    def __init__(
        self,
        stages: Mapping[int, nn.Module],
        shards: dict[int, StageShards],
        *,
        members: int,
        member: int,
        group: Transport | None,
        device: Device = CPU,
    ) -> None:
        self._shards, self._group, self._member = shards, group, member
        self._device = device
        whole = {g: module for g, module in stages.items() if g not in shards and members > 1}
        self._whole = WholeSums(whole)
        self._members = range(members)
        self._others = [other for other in range(members) if other != member]
        self._under_way: dict[Action, _UnderWay] = {}
        self._ended: set[Action] = set()
        self._sent: list[Blocked] = []

    def run(self, action: Action) -> Iterator[Blocked]:
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
        self._whole.begin_pass()
        for shards in self._shards.values():
            shards.begin_pass()

    def weights(self) -> Named:
        """This member's row of each parameter, by (stage, name)."""
        found: Named = {}
        for shards in self._shards.values():
            found |= {key: row.cpu() for key, row in shards.pieces(shards.shard).items()}
        return found

    def keys(self) -> Iterator[int]:
        """The storages of what is on its way among the members."""
        self._sent = still_used(self._sent)
        for sent in self._sent:
            yield from keys_of(sent.transfer.buffers())
        for now in self._under_way.values():
            yield from keys_of([now.own, *(room for rooms in now.rooms.values() for room in rooms)])
            for coming in now.headers.values():
                yield from keys_of(coming.transfer.buffers())

    def left_over(self) -> list[str]:
        """What was begun and not ended, or is still here or not reduced; one phrase each."""
        found = [f"{action} not waited for" for action in self._under_way]
        found += self._whole.left_over()
        for stage, shards in self._shards.items():
            found += [f"{stage}UNSHARD.{number} never freed" for number in shards.copies]
            found += [
                f"the ZeRO-{level} gradient of stage {stage} for REDUCE_GRAD {number} never reduced"
                for level, number in shards.gradients
            ]
        return found

    def _begun(self, action: Action, shards: StageShards | None) -> _UnderWay:
        if shards is None:
            return self._begin_sum(action)
        begin = self._begin_unshard if action.kind is Kind.UNSHARD else self._begin_reduce
        return begin(action, shards)

    def _end(self, action: Action, shards: StageShards | None, now: _UnderWay) -> None:
        if shards is None:
            parts = [
                now.own if member == self._member else now.rooms[member][0]
                for member in self._members
            ]
            self._whole.put(action.stage, _sum(parts))
        elif action.kind is Kind.UNSHARD:
            shards.fill(action.slice, now.levels)
        else:
            self._end_reduce(shards, now)

    def _begin_sum(self, action: Action) -> _UnderWay:
        """Send the others a whole gradient."""
        now = self._opened(action)
        now.own = self._whole.gathered(action.stage)
        for member in self._others:
            now.rooms[member].append(torch.empty_like(now.own))
            self._send(action, now, now.own, member)
        return now

    def _begin_unshard(self, action: Action, shards: StageShards) -> _UnderWay:
        """Send this member's shards; the first UNSHARD brings all levels, others level 3."""
        segments = shards.layout.segments
        now = self._opened(action)
        now.levels = tuple(
            level for level in segments if level == 3 or action.slice == shards.first
        )
        for level in now.levels:
            buffer = shards.begin_copy(action.slice) if level == 3 else shards.whole[level]
            own = shards.shard[level].flat
            for member in self._members:
                begin, end = segments[level].bounds(member)
                room = buffer.flat[begin:end]
                if member == self._member:
                    room.copy_(own)
                else:
                    now.rooms[member].append(room)
                    self._send(action, now, own, member)
        return now

    def _begin_reduce(self, action: Action, shards: StageShards) -> _UnderWay:
        """Send the others their parts; the last REDUCE_GRAD takes all levels, others 2 and 3."""
        segments = shards.layout.segments
        now = self._opened(action)
        now.levels = tuple(level for level in segments if level > 1 or action.slice == shards.last)
        for level in now.levels:
            now.gradients[level] = shards.take_gradient(level, action.slice)
            flat = now.gradients[level].flat
            for member in self._others:
                begin, end = segments[level].bounds(member)
                now.rooms[member].append(torch.empty_like(shards.shard[level].flat))
                self._send(action, now, flat[begin:end], member)
        return now

    def _end_reduce(self, shards: StageShards, now: _UnderWay) -> None:
        for position, level in enumerate(now.levels):
            gradient = now.gradients[level]
            begin, end = shards.layout.segments[level].bounds(self._member)
            parts = [
                gradient.flat[begin:end] if member == self._member else now.rooms[member][position]
                for member in self._members
            ]
            total = _sum(parts)
            del parts
            shards.add_reduced(level, gradient, total)

    def _opened(self, action: Action) -> _UnderWay:
        """A collective whose header is on its way to all others."""
        now = _UnderWay(rooms={member: [] for member in self._others})
        for member in self._others:
            header = handed_over(_header(action), self._device)
            self._send(action, now, header, member)
            room = torch.zeros_like(header)
            now.headers[member] = self._receive(action, room, member)
        return now

    def _received(self, action: Action, now: _UnderWay) -> Generator[Blocked, None, None]:
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
            waiting += [
                self._receive(action, room, member) for room in now.rooms[member] if len(room)
            ]
        for end in waiting:
            yield from until_done(end)

    def _send(self, action: Action, now: _UnderWay, tensor: torch.Tensor, member: int) -> None:
        assert self._group is not None
        if len(tensor):
            transfer = self._group.isend(action, tensor, destination=member)
            now.sent.append(_waiting(action, member, transfer))
            self._sent.append(now.sent[-1])

    def _receive(self, action: Action, room: torch.Tensor, member: int) -> Blocked:
        assert self._group is not None
        transfer = self._group.irecv(action, room, source=member)
        return _waiting(action, member, transfer)


def _sum(parts: list[torch.Tensor]) -> torch.Tensor:
    """The sum of the members' parts in their order."""
    total = parts[0].clone()
    for part in parts[1:]:
        total += part
    return total


def _waiting(action: Action, member: int, transfer: Transfer) -> Blocked:
    return Blocked(action=action, tag=action, peer=member, transfer=transfer, is_of_group=True)


def _header(action: Action) -> torch.Tensor:
    """What a collective is: kind, stage, number."""
    return torch.tensor([int(action.kind), action.stage, action.slice])
