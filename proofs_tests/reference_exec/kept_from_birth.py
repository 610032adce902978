"""Ways to hold more than the model from the start, or at a moment that no peak shows.

One patch each, as in ``hoarding``: of what ranks are made of, of what was there before them, of
single passes of a training, of their hosts, and of what stands for less than its storage has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest
import torch
from torch import nn

from bubbleproof.reference_exec.models import layers, linear, reference
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.runtime import (
    compute,
    host,
    optimizers,
    peer_transfers,
    rank_messages,
    stage_shards,
    updates,
)
from bubbleproof.theory.model.actions import Action
from proofs_tests.reference_exec.patching import after, after_forward, before

Kept = list[object]
T = TypeVar("T")
POOL_BYTES = 4 << 20
SPARE_BYTES = 64


def _pool(kept: Kept) -> torch.Tensor:
    kept.append("made")
    return torch.empty(POOL_BYTES, dtype=torch.uint8)


# From the constructor on.


def pool_in_a_constructor(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """4 MB are taken as a rank is made, for whatever may come."""
    after(
        patch, peer_transfers.EvictLoad, "__init__", lambda it, *_: setattr(it, "pool", _pool(kept))
    )


def pool_of_a_stage(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """The same, as an attribute of each stage, which is nobody's parameter."""
    after(patch, reference.Stage, "__init__", lambda it, *_: setattr(it, "pool", [_pool(kept)]))


def whole_weights_of_a_member(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """A member of ZeRO keeps the whole weights beside its shards."""

    def make(*given: object) -> None:
        (module,) = (it for it in given if isinstance(it, nn.Module))
        kept.append([parameter.detach().clone() for parameter in module.parameters()])

    before(patch, stage_shards.StageShards, "__init__", make)


def _refilled(parameters: list[torch.Tensor], kept: Kept) -> None:
    for parameter in parameters:
        parameter.untyped_storage().resize_(parameter.nbytes)
        kept.append("filled")


def weights_not_emptied(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """The parameters of a member are not hollow."""
    after(
        patch,
        stage_shards.StageShards,
        "__init__",
        lambda it, *_: _refilled([*it._hollow.values()], kept),
    )


def off_loaded_weights_stay(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """The weights of a stage that its host updates stay on the rank from the start."""

    def fill(it: host.Host, *_: object) -> None:
        for stage in it._stages.values():
            _refilled([*stage.parameters()], kept)

    after(patch, host.Host, "__init__", fill)


def master_weights_twice(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """A host has its master weights twice, and the ledger of the host knows it."""

    def copy(it: host.Host, *_: object) -> None:
        kept.extend(it._copies(held) for held in it._master.values())

    after(patch, host.Host, "__init__", copy)


def data_twice(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """A rank has its data twice."""

    def copy(it: compute.Batch, *_: object) -> None:
        kept.extend(given.clone() for given in it.tensors())

    after(patch, compute.Batch, "__init__", copy)


def inputs_of_the_whole_batch(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """Each input is a part of a larger tensor."""
    right = reference.microbatch_input

    def given(spec: ModelSpec, *part: int, step: int = 0) -> torch.Tensor:
        own = right(spec, *part, step=step)
        kept.append("larger")
        return torch.cat([own, own])[: len(own)]

    patch.setattr(compute, "microbatch_input", given)


def masks_twice(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """Each layer has its mask twice."""

    def copy(it: layers.TransformerLayer, *_: object) -> None:
        it.spare = it.mask.clone()
        kept.append("copied")

    after(patch, layers.TransformerLayer, "__init__", copy)


# In single passes.


def _spare_in(step: int) -> Callable[[pytest.MonkeyPatch, Kept], None]:
    """Some bytes from the first F of a pass to the next one, far below the peak."""

    def spare(patch: pytest.MonkeyPatch, kept: Kept) -> None:

        def run(self: compute.Compute, *given: object) -> None:
            self.__dict__.pop("spare", None)
            if self.batch.step == step and given[1] == (0, 0, 0):
                self.spare = torch.empty(SPARE_BYTES, dtype=torch.uint8)  # type: ignore[attr-defined]  # ours
                kept.append("kept")

        before(patch, compute.Compute, "_run", run)

    return spare


def bytes_in_the_first_pass(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """Some bytes beyond the model's in the first pass of a training only, and below its peak."""
    _spare_in(0)(patch, kept)


def bytes_in_the_middle_pass(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """The same in the second of three."""
    _spare_in(1)(patch, kept)


def loss_of_the_first_pass(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """One loss of the first pass is a little off."""
    right = compute.Compute._keep_loss

    def keep(self: compute.Compute, sample: int, slice_: int, output: torch.Tensor) -> None:
        if self.batch.step == 0 and sample == 1:
            kept.append(sample)
            output = output * (1 + 1e-9)
        right(self, sample, slice_, output)

    patch.setattr(compute.Compute, "_keep_loss", keep)


def gradients_between_passes(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """Gradients are set to 0 where they are to be let go."""
    right = updates.Updates.begin_pass

    def begin(self: updates.Updates, number: int) -> None:
        old = [(p, p.grad) for stage in self._stages.values() for p in stage.parameters()]
        right(self, number)
        for parameter, gradient in old:
            if gradient is not None:
                parameter.grad = gradient.zero_()
                kept.append("zeroed")

    patch.setattr(updates.Updates, "begin_pass", begin)


def optimizer_state_twice(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """What an optimizer keeps after its step is copied, too."""

    def update(self: updates.Updates, stage: int) -> None:
        own = optimizers.kept_by([self.optimizers[stage]])
        kept.append([state.clone() for state in own])

    after(patch, updates.Updates, "_update", update)


# On hosts.


def host_copy_freed_early(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """A host lets go of the copy that comes up as its RELOAD begins, not as it ends."""
    right_begin, right_end = host.Host._begin_reload, host.Host._end_reload

    def begin(self: host.Host, stage: int) -> None:
        right_begin(self, stage)
        self._upload[stage] = {}
        kept.append(stage)

    patch.setattr(host.Host, "_begin_reload", begin)
    patch.setattr(host.Host, "_end_reload", right_end)


def host_copy_freed_late(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """It lets go of it as the stage's OFFLOAD begins."""
    right_end, right_begin = host.Host._end_reload, host.Host._begin_offload
    late: dict[tuple[int, int], object] = {}

    def end(self: host.Host, stage: int) -> None:
        late[id(self), stage] = self._upload[stage]
        kept.append(stage)
        right_end(self, stage)

    def begin(self: host.Host, stage: int) -> None:
        del late[id(self), stage]
        right_begin(self, stage)

    patch.setattr(host.Host, "_end_reload", end)
    patch.setattr(host.Host, "_begin_offload", begin)


# In what was there before.


def _with_outputs(
    patch: pytest.MonkeyPatch, kept: Kept, take: Callable[[torch.Tensor], object]
) -> None:
    def taken(_: reference.Stage, output: torch.Tensor) -> None:
        take(output)
        kept.append("taken")

    after_forward(patch, taken)


def dictionary_of_a_module(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """A dictionary that everybody sees gets a copy of each output."""
    found: dict[int, torch.Tensor] = {}
    _with_outputs(patch, kept, lambda y: found.update({len(found): y.detach().clone()}))


# What shows less than it has.


def loss_of_a_larger_tensor(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """Each loss that is kept is a part of a larger tensor."""

    def keep(self: compute.Compute, sample: int, slice_: int, output: torch.Tensor) -> None:
        larger = torch.cat([output.reshape(1), output.new_zeros(SPARE_BYTES)])
        self.losses[self.batch.step, sample, slice_] = loss = larger[0]
        self.ledger.set_apart(loss)
        kept.append("larger")

    patch.setattr(compute.Compute, "_keep_loss", keep)


def message_of_a_larger_tensor(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """Each message that is to leave is a part of a larger tensor."""

    def hand_over(self: rank_messages.RankMessages, tag: Action, *_: object) -> None:
        ready = self._ready[tag]
        self._ready[tag] = torch.cat([ready, ready])[: len(ready)]
        kept.append(tag)

    after(patch, rank_messages.RankMessages, "hand_over", hand_over)


def gradient_of_a_larger_tensor(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """Each gradient that W has made lies in a larger tensor."""
    right = linear.WeightGradStore.run

    def run(self: linear.WeightGradStore, weights: object = None) -> None:
        own = [weight for weight, *_ in self._left]
        right(self, weights)  # type: ignore[arg-type]  # passed on
        for weight in own:
            gradient = weight.grad
            assert gradient is not None
            weight.grad = torch.cat([gradient, gradient])[: len(gradient)]
            kept.append("larger")

    patch.setattr(linear.WeightGradStore, "run", run)


FAULTS = (
    (pool_in_a_constructor, "1f1b"),
    (pool_of_a_stage, "1f1b"),
    (whole_weights_of_a_member, "zero"),
    (weights_not_emptied, "zero"),
    (off_loaded_weights_stay, "toffload"),
    (master_weights_twice, "toffload"),
    (data_twice, "1f1b"),
    (inputs_of_the_whole_batch, "1f1b"),
    (masks_twice, "svpp"),
    (bytes_in_the_first_pass, "three steps"),
    (bytes_in_the_middle_pass, "three steps"),
    (loss_of_the_first_pass, "three steps"),
    (gradients_between_passes, "three steps"),
    (optimizer_state_twice, "training"),
    (host_copy_freed_early, "toffload"),
    (host_copy_freed_late, "toffload"),
    (dictionary_of_a_module, "1f1b"),
    (loss_of_a_larger_tensor, "1f1b"),
    (message_of_a_larger_tensor, "1f1b"),
    (gradient_of_a_larger_tensor, "zb-h1"),
)
