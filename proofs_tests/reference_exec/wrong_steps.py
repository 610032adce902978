"""Faults in optimizers, and in the state that shards and replicas keep between actions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.runtime import compute, replica_collectives, stage_shards, updates
from bubbleproof.reference_exec.runtime.device import Device
from proofs_tests.reference_exec.patching import Marks, after, optimizer, summed


def _option(patch: pytest.MonkeyPatch, marks: Marks, name: str, value: object) -> None:
    optimizer(patch, marks, lambda one: one.param_groups[0].update({name: value}))


def weight_decay(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Weights decay a little in each step."""
    _option(patch, marks, "weight_decay", 1e-9)


def nesterov(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Momentum looks ahead, as Nesterov's."""
    _option(patch, marks, "nesterov", True)


def dampened(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A gradient goes into the momentum a little smaller."""
    _option(patch, marks, "dampening", 1e-9)


def uphill(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Steps go where the loss grows."""
    _option(patch, marks, "maximize", True)


def less_momentum(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """The momentum is a little smaller than was asked for."""
    _option(patch, marks, "momentum", 0.9 - 1e-9)


def a_parameter_left_out(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """An optimizer was not told of its last parameter."""
    optimizer(patch, marks, lambda one: one.param_groups[0]["params"].pop())


def moments_in_half(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Momentum is kept in float32."""

    def begin(self: updates.Updates, _: int) -> None:
        for one in self.optimizers.values():
            for state in one.state.values():
                buffer = state.get("momentum_buffer")
                if isinstance(buffer, torch.Tensor):
                    marks.append(buffer.copy_(buffer.float()))

    after(patch, updates.Updates, "begin_pass", begin)


def _updating(
    patch: pytest.MonkeyPatch, act: Callable[[Callable[[], None], updates.Updates, int], None]
) -> None:
    right = updates.Updates._update

    def update(self: updates.Updates, stage: int) -> None:
        act(lambda: right(self, stage), self, stage)

    patch.setattr(updates.Updates, "_update", update)


def stepped_twice(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """One stage takes each step twice."""

    def twice(step: Callable[[], None], _: updates.Updates, stage: int) -> None:
        step()
        if stage == 1:
            marks.append(stage)
            step()

    _updating(patch, twice)


def last_step_skipped(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """One stage takes its first step and not its second."""

    def once(step: Callable[[], None], _: updates.Updates, stage: int) -> None:
        if stage == 1:
            marks.append(stage)
        if marks.count(1) != 2:
            step()

    _updating(patch, once)


def clipped(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Gradients are clipped before a step."""

    def clip(step: Callable[[], None], self: updates.Updates, stage: int) -> None:
        for parameter in self._stages[stage].parameters():
            assert parameter.grad is not None
            marks.append(parameter.grad.clamp_(-1e-3, 1e-3))
        step()

    _updating(patch, clip)


def total_of_the_pass_before(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """The tied matrix steps with the sum of the first pass, in the second too."""
    first: dict[object, torch.Tensor] = {}

    def stale(step: Callable[[], None], self: updates.Updates, stage: int) -> None:
        del stage
        for key in self._totals:
            place = id(self), key
            if place in first:
                marks.append(key)
                self._totals[key] = first[place]
            else:
                first[place] = self._totals[key].clone()
        step()

    _updating(patch, stale)


def averaged(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Replicas average their gradients where they should add them."""
    summed(patch, marks, lambda right, parts: right(parts) / len(parts))


def collective_in_another_order(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Four replicas add their gradients from the last to the first."""
    summed(patch, marks, lambda right, parts: right(parts[::-1]))


def collective_in_single_precision(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Gradients are summed among replicas in float32."""
    summed(patch, marks, lambda right, parts: right([each.float() for each in parts]).double())


def replicas_on_one_batch(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """All replicas take the microbatches of the first."""

    right = compute.Batch.__init__

    def made(
        self: compute.Batch, plan: ReplayPlan, rank: int, device: Device, replica: int = 0
    ) -> None:
        marks.append(replica)
        right(self, plan, rank, device, 0)

    patch.setattr(compute.Batch, "__init__", made)


def gradients_of_shards_kept(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Shards add the second pass's gradients to the first's."""
    right = stage_shards.StageShards.begin_pass

    def begin(self: stage_shards.StageShards) -> None:
        kept = {level: buffer.flat.clone() for level, buffer in self.reduced.items()}
        right(self)
        for level, flat in kept.items():
            marks.append(self.reduced[level].flat.copy_(flat))

    patch.setattr(stage_shards.StageShards, "begin_pass", begin)


def shards_of_the_pass_before(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A member gives the others the rows that it had before its step."""
    right = replica_collectives.Collectives._to_gather
    first: dict[tuple[int, int], torch.Tensor] = {}

    def gather(
        self: replica_collectives.Collectives, number: int, shards: stage_shards.StageShards
    ) -> object:
        pieces = right(self, number, shards)
        for level, piece in pieces.items():
            place = id(shards), level
            own = first.setdefault(place, piece.parts[0].clone())
            marks.append(level)
            piece.parts[:] = [own] * len(piece.parts)
        return pieces

    patch.setattr(replica_collectives.Collectives, "_to_gather", gather)


def members_swapped(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A member steps its rows with the other member's."""
    right = stage_shards.StageShards.add_reduced

    def add(
        self: stage_shards.StageShards,
        level: int,
        gradient: stage_shards.Buffer,
        total: torch.Tensor,
    ) -> None:
        marks.append(level)
        right(self, level, gradient, total.roll(len(total) // 2))

    patch.setattr(stage_shards.StageShards, "add_reduced", add)


def unsharded_too_late(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A forward computes with weights of which the last have not come."""

    def fill(self: stage_shards.StageShards, number: int, *_: object) -> None:
        for copy in self.copies.values():
            copy.flat[-1:] = 0.0
            marks.append(number)

    after(patch, stage_shards.StageShards, "fill", fill)


FAULTS = (
    (weight_decay, "training"),
    (nesterov, "training"),
    (dampened, "training"),
    (uphill, "training"),
    (less_momentum, "training"),
    (a_parameter_left_out, "training"),
    (moments_in_half, "training"),
    (stepped_twice, "training"),
    (last_step_skipped, "training"),
    (clipped, "training"),
    (total_of_the_pass_before, "tied"),
    (averaged, "replicas"),
    (averaged, "zero"),
    (collective_in_another_order, "four replicas"),
    (collective_in_single_precision, "replicas"),
    (replicas_on_one_batch, "replicas"),
    (gradients_of_shards_kept, "sharded training"),
    (shards_of_the_pass_before, "sharded training"),
    (members_swapped, "zero"),
    (unsharded_too_late, "zero"),
)
