"""Executor faults that compute from the wrong thing: data, weights, activations, types."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bubbleproof.reference_exec import saved
from bubbleproof.reference_exec.models import linear, reference
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.runtime import compute, host, sliced, stage_shards
from bubbleproof.reference_exec.saved import SavedTensors
from proofs_tests.reference_exec.patching import Key, Marks, after, before, data_of


def anothers_input(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Microbatch 1 is given the input of microbatch 0."""
    data_of(patch, marks, "input", {1: 0})


def anothers_target(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Microbatch 1 is scored by the target of microbatch 0."""
    data_of(patch, marks, "target", {1: 0})


def data_of_another_seed(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Inputs are drawn with the next seed."""
    right = reference.microbatch_input

    def drawn(spec: ModelSpec, *part: int, step: int = 0) -> torch.Tensor:
        marks.append(part)
        return right(replace(spec, seed=spec.seed + 1), *part, step=step)

    patch.setattr(compute, "microbatch_input", drawn)


def weights_of_another_seed(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """One rank's weights are drawn with the next seed."""
    right = reference.Stage

    def built(spec: ModelSpec, stage: int) -> reference.Stage:
        marks.append(stage)
        return right(replace(spec, seed=spec.seed + (stage == 1)), stage)

    patch.setattr(compute, "Stage", built)


def loss_over_one_more(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """The mean is taken over one microbatch too many."""
    right = reference.microbatch_loss

    def scored(spec: ModelSpec, y: torch.Tensor, target: torch.Tensor, count: int) -> torch.Tensor:
        marks.append(count)
        return right(spec, y, target, count + 1)

    patch.setattr(compute, "microbatch_loss", scored)


def scaled_gradient(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """The gradient that one backward sends back is a little too large."""
    right = compute.Compute.backward

    def backward(self: compute.Compute, key: Key, *given: object, **how: bool) -> object:
        gradient = right(self, key, *given, **how)  # type: ignore[arg-type]  # passed on
        if gradient is not None and key[:2] == (1, 1):
            marks.append(key)
            gradient.mul_(1 + 1e-9)
        return gradient

    patch.setattr(compute.Compute, "backward", backward)


def freed_early(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """The memory of a saved activation is written over before its backward."""

    def reuse(self: compute.Compute, key: Key, *_: object) -> None:
        saved = self._forwarded[key].saved
        if key == (0, 1, 0) and isinstance(saved, SavedTensors):
            marks.append(key)
            saved.tensors()[-1].numpy()[...] = 0  # as an allocator would, behind autograd's back

    after(patch, compute.Compute, "forward", reuse)


def stale_weights(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """In the second pass a stage's weights are those from before the step."""
    first: dict[int, list[torch.Tensor]] = {}

    def revert(self: compute.Compute, key: Key, *_: object) -> None:
        if key[0] != 0:
            return
        parameters = list(self.stages[0].parameters())
        if not first:
            first[0] = [p.detach().clone() for p in parameters]
        elif self.batch.step == 1:
            marks.append(key)
            with torch.no_grad():
                for parameter, old in zip(parameters, first[0], strict=True):
                    parameter.copy_(old)

    before(patch, compute.Compute, "forward", revert)


def stale_operands(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """W multiplies with the inputs of the microbatch before."""
    right, last = linear.WeightGradStore.put, dict[int, torch.Tensor]()

    def put(
        self: linear.WeightGradStore, weight: torch.nn.Parameter, dy: torch.Tensor, x: torch.Tensor
    ) -> None:
        stale = last.get(id(weight), x)
        last[id(weight)] = x.detach().clone()
        marks.append(weight)
        right(self, weight, dy, stale)

    patch.setattr(linear.WeightGradStore, "put", put)


def recomputed_from_another_input(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """R starts from an input that was changed meanwhile."""

    def recompute(self: compute.Compute, key: Key) -> None:
        marks.append(key)
        self._checkpoints[key].tensor.mul_(2)

    before(patch, compute.Compute, "recompute", recompute)


def recomputation_skipped(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """The first forward is kept and used, and R does nothing."""
    right = compute.Compute.recompute

    def drop(self: compute.Compute, key: Key) -> None:
        if key in self._recomputed:
            self.sample()

    def recompute(self: compute.Compute, key: Key) -> None:
        marks.append(right)
        if key in self._forwarded:
            self.sample()

    patch.setattr(compute.Compute, "drop_recomputed", drop)
    patch.setattr(compute.Compute, "recompute", recompute)


def transfer_not_filled(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """What comes back is memory that was never written."""

    def fill(self: saved.SampleStorages, buffer: torch.Tensor) -> None:
        marks.append(buffer)
        for tensor in self._tensors:
            saved._bytes_of(tensor).zero_()

    patch.setattr(saved.SampleStorages, "fill", fill)


def flipped_on_the_host(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A bit of each mantissa changes on the host."""
    right = host.Host.kept

    def flipped(self: host.Host, key: Key) -> torch.Tensor:
        marks.append(key)
        content = right(self, key)
        content[5::8] ^= 1
        return content

    patch.setattr(host.Host, "kept", flipped)


def gathered_rows_swapped(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """The gathered parameters lie one element off."""

    def fill(self: stage_shards.StageShards, number: int, levels: tuple[int, ...]) -> None:
        for level in levels:
            flat = (self.whole[level] if level < 3 else self.copies[number]).flat
            flat.copy_(flat.roll(1))
            marks.append(level)

    after(patch, stage_shards.StageShards, "fill", fill)


def earlier_slices_not_attended(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A slice attends to its own tokens only."""
    right = sliced.LayerPrefix.extend

    def extend(self: sliced.LayerPrefix, *pair: torch.Tensor) -> object:
        marks.append(right(self, *pair))
        return [pair]

    patch.setattr(sliced.LayerPrefix, "extend", extend)


FAULTS = (
    (anothers_input, "1f1b"),
    (anothers_target, "1f1b"),
    (data_of_another_seed, "zb-h1"),
    (weights_of_another_seed, "1f1b"),
    (loss_over_one_more, "1f1b"),
    (scaled_gradient, "1f1b"),
    (freed_early, "1f1b"),
    (stale_weights, "training"),
    (stale_operands, "zb-h1"),
    (recomputed_from_another_input, "trecomp"),
    (recomputation_skipped, "trecomp"),
    (transfer_not_filled, "bpipe"),
    (transfer_not_filled, "off-loaded"),
    (flipped_on_the_host, "off-loaded"),
    (gathered_rows_swapped, "zero"),
    (earlier_slices_not_attended, "svpp"),
)
