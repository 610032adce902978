"""Sharded model state: what one member of a data-parallel group holds of its rank's stages.

A member keeps its shards of the parameters and of the reduced gradients, and updates the former
with the latter when the program has ended. A stage's own parameters are hollow: their storages are
empty, and each F, R, B and I binds them, for as long as it runs, to the buffers that collectives
have filled; W, which reads none, finds their gradients alone. What autograd saves of a parameter
is therefore not the tensor but where in its buffer it lies; the backward finds it in the copy that
its own UNSHARD has brought. See ``shard_layout`` for what lies where, and for how long it counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch

from bubbleproof.reference_exec.broken import BrokenProgram, require
from bubbleproof.reference_exec.ledger import Hold, Ledger, storage_key
from bubbleproof.reference_exec.models.reference import Named, Stage
from bubbleproof.reference_exec.plans.data_parallel import DataParallel
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.reference_exec.runtime.optimizers import optimizer_of, step_with


@dataclass(slots=True, kw_only=True, eq=False)
class Buffer:
    """A flat buffer; one with a ``hold`` counts in a ledger until ``free`` empties its storage."""

    flat: torch.Tensor
    hold: Hold | None = None
    is_filled: bool = False

    def free(self) -> None:
        self.hold = None
        self.flat.untyped_storage().resize_(0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SavedView:
    """Where a tensor that autograd saved lies in the buffer of its stage and level."""

    shards: StageShards
    level: int
    size: torch.Size
    stride: tuple[int, ...]
    offset: int

    @property
    def tensor(self) -> torch.Tensor:
        flat = self.shards.bound(self.level)
        return flat.as_strided(self.size, self.stride, self.offset)


class StageShards:
    """One stage's shards on one member, and the whole buffers that are there now.

    ``first`` is the number of the stage's first UNSHARD here, which brings all levels, ``last``
    that of its last REDUCE_GRAD, which takes all. The ledger counts what comes and goes. An
    optimizer's moments lie in shards too.
    """

    def __init__(
        self,
        parallel: DataParallel,
        training: Training | None,
        seat: tuple[int, int],
        stage: int,
        module: Stage,
        ledger: Ledger,
    ) -> None:
        """The module's parameters are hollow from now on; ``seat`` is the replica and the rank."""
        member, rank = seat
        self.stage, self.layout, self.member = stage, parallel.layouts[stage], member
        self.first = parallel.first.get((stage, rank), 0)
        self.last = parallel.last.get((stage, rank), 0)
        self._ledger = ledger
        self._parameters = dict(module.named_parameters())
        self.shard: dict[int, Buffer] = {}
        self.reduced: dict[int, Buffer] = {}
        self.whole: dict[int, Buffer] = {}  # parameters of levels 1 and 2
        self.copies: dict[int, Buffer] = {}  # parameters of level 3, by number of UNSHARD
        self.gradients: dict[tuple[int, int], Buffer] = {}  # by (level, number of REDUCE_GRAD)
        self._resident: Buffer | None = None  # the gradient of level 1
        self._bound: dict[int, torch.Tensor] = {}
        for level, segment in self.layout.segments.items():
            values = [self._parameters[name].detach().reshape(-1) for name in segment.shapes]
            begin, end = segment.bounds(member)
            own = torch.cat(values)[begin:end].clone()
            self.shard[level] = Buffer(flat=own)
            self.reduced[level] = Buffer(flat=torch.zeros_like(own))
            if level < 3:
                unset = own.new_full((segment.size,), torch.nan)
                self.whole[level] = Buffer(flat=unset)
            if level == 1:
                zeros = own.new_zeros(segment.size)
                self.gradients[level, self.last] = self._resident = Buffer(flat=zeros)
        self.optimizer = optimizer_of(training, (shard.flat for shard in self.shard.values()))
        self._hollow = {name: p.data for name, p in self._parameters.items()}
        for data in self._hollow.values():
            data.untyped_storage().resize_(0)

    def bind(self, number: int) -> None:
        """Let the parameters be the gathered ones, level 3 those of copy ``number``.

        Raises ``BrokenProgram`` where their UNSHARD has not ended.
        """
        for level, segment in self.layout.segments.items():
            buffer = self.whole[level] if level < 3 else self.copies.get(number)
            if buffer is None or not buffer.is_filled:
                raise BrokenProgram(
                    f"the ZeRO-{level} parameters of stage {self.stage} are not here; "
                    f"UNSHARD {number if level == 3 else self.first} has not brought them"
                )
            self._bound[level] = buffer.flat
            for name, view in segment.views(buffer.flat).items():
                self._parameters[name].data = view

    def accumulate(self, number: int) -> bool:
        """Let gradients add up for REDUCE_GRAD ``number``, level 1 for the last; whether new."""
        is_new = False
        for level, segment in self.layout.segments.items():
            key = (level, self.last if level == 1 else number)
            if key not in self.gradients:
                is_new = True
                zeros = self.shard[level].flat.new_zeros(segment.size)
                self.gradients[key] = Buffer(flat=zeros, hold=Hold(self._ledger, zeros))
            for name, view in segment.views(self.gradients[key].flat).items():
                self._parameters[name].grad = view
        return is_new

    def unbind(self) -> None:
        """Let the parameters be hollow again."""
        self._bound.clear()
        for name, parameter in self._parameters.items():
            parameter.data, parameter.grad = self._hollow[name], None

    def bound(self, level: int) -> torch.Tensor:
        """The buffer to which a level's parameters are bound now."""
        if level not in self._bound:
            raise BrokenProgram(f"the parameters of stage {self.stage} are used and not bound")
        return self._bound[level]

    def lent(self, tensor: torch.Tensor) -> SavedView | None:
        """Where a tensor lies in a buffer bound now; None for one that is no parameter."""
        key = storage_key(tensor)
        for level, flat in self._bound.items():
            if storage_key(flat) == key:
                size, stride, offset = tensor.size(), tensor.stride(), int(tensor.storage_offset())
                return SavedView(shards=self, level=level, size=size, stride=stride, offset=offset)
        return None

    def begin_copy(self, number: int) -> Buffer:
        """Make room for copy ``number`` of the parameters of level 3."""
        require(number not in self.copies, f"copy {number} of stage {self.stage} is here already")
        room = self.shard[3].flat.new_full((self.layout.size(3),), torch.nan)
        self.copies[number] = Buffer(flat=room, hold=Hold(self._ledger, room))
        return self.copies[number]

    def fill(self, number: int, levels: Iterable[int]) -> None:
        """The parameters of these levels have come, level 3 as copy ``number``."""
        for level in levels:
            buffer = self.whole[level] if level < 3 else self.copies[number]
            buffer.is_filled = True

    def free_copy(self, number: int) -> None:
        """Free copy ``number``."""
        if number not in self.copies or not self.copies[number].is_filled:
            raise BrokenProgram(f"copy {number} of stage {self.stage} is not here to be freed")
        self.copies.pop(number).free()

    def take_gradient(self, level: int, number: int) -> Buffer:
        """The gradient that REDUCE_GRAD ``number`` takes; no B adds to it any more."""
        if (level, number) not in self.gradients:
            raise BrokenProgram(
                f"stage {self.stage} has no ZeRO-{level} gradient for REDUCE_GRAD {number}"
            )
        return self.gradients.pop((level, number))

    def add_reduced(self, level: int, gradient: Buffer, total: torch.Tensor) -> None:
        """Add the sum over all members to this one's shard; the gradient is done with."""
        self.reduced[level].flat += total
        if gradient is not self._resident:
            gradient.free()

    def by_level(self) -> dict[int, torch.Tensor]:
        """This member's rows of the reduced gradients."""
        return {level: reduced.flat for level, reduced in self.reduced.items()}

    def step(self, totals: Mapping[int, torch.Tensor]) -> None:
        """Take the optimizer's step on the shards with the gradients of each level."""
        pairs = ((shard.flat, totals[level]) for level, shard in self.shard.items())
        step_with(self.optimizer, pairs)

    def weights(self) -> list[torch.Tensor]:
        """The buffers of parameters that are there."""
        return [b.flat for b in (*self.shard.values(), *self.whole.values(), *self.copies.values())]

    def sums(self) -> list[torch.Tensor]:
        """The buffers of gradients that are there."""
        resident = [] if self._resident is None else [self._resident]
        return [b.flat for b in (*self.reduced.values(), *self.gradients.values(), *resident)]

    def begin_pass(self) -> None:
        """Forget the gradients of the pass before, and what it gathered."""
        for buffer in self.reduced.values():
            buffer.flat.zero_()
        for buffer in self.whole.values():
            buffer.is_filled = False
        if self._resident is not None:
            self._resident.flat.zero_()
            self.gradients[1, self.last] = self._resident

    def pieces(self, buffers: Mapping[int, Buffer]) -> Named:
        """This member's row of each parameter, by (stage, name), from its shards."""
        return {
            (self.stage, name): row
            for level, segment in self.layout.segments.items()
            for name, row in segment.pieces(buffers[level].flat, self.member).items()
        }
