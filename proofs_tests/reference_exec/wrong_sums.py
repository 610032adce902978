"""Executor faults in how gradients add up and weights step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

import pytest
import torch

from bubbleproof.reference_exec.runtime import (
    compute,
    host,
    sliced,
    stage_shards,
    updates,
)
from bubbleproof.theory.model.actions import Action
from proofs_tests.reference_exec.patching import Key, Marks, after, optimizer, summed

Grads = list[torch.Tensor]
LONGER = 1 + 1e-9


def _around_weight(patch: pytest.MonkeyPatch, act: Callable[[Key, Grads, Grads], None]) -> None:
    """Call ``act`` after each W with the gradients before it and as they are, to be changed."""
    right = compute.Compute.weight

    def weight(self: compute.Compute, key: Key, *part: int) -> None:
        parameters = list(self.stages[key[0]].parameters())
        before = [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in parameters]
        right(self, key, *part)
        act(key, before, [p.grad for p in parameters if p.grad is not None])

    patch.setattr(compute.Compute, "weight", weight)


def dropped_contribution(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """What one W adds is lost."""

    def drop(key: Key, before: Grads, now: Grads) -> None:
        if key[:2] == (0, 1):
            marks.append([grad.copy_(old) for old, grad in zip(before, now, strict=True)])

    _around_weight(patch, drop)


def doubled_contribution(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """What one W adds is added twice."""

    def double(key: Key, before: Grads, now: Grads) -> None:
        if key[:2] == (0, 1):
            marks.append([g.add_(g - old) for old, g in zip(before, now, strict=True)])

    _around_weight(patch, double)


def swapped_order(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """The contributions of Ws are added from the last to the first."""
    parts: defaultdict[int, list[Grads]] = defaultdict(list)

    def reorder(key: Key, before: Grads, now: Grads) -> None:
        added = parts[key[0]]
        added.append([grad - old for old, grad in zip(before, now, strict=True)])
        if len(added) == 3:
            marks.append(key)
            for grad, first, second, third in zip(now, *added, strict=True):
                grad.copy_(third + second + first)

    _around_weight(patch, reorder)


def downcast_gradients(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Gradients are kept in float32."""

    def round_(key: Key, before: Grads, now: Grads) -> None:
        del key, before
        marks.append([grad.copy_(grad.float()) for grad in now])

    _around_weight(patch, round_)


def lost_key_and_value_gradients(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """What later slices send back of keys and values is not passed on."""
    right = sliced.LayerPrefix.pop

    def pop(self: sliced.LayerPrefix) -> list[sliced.KeysAndValues]:
        marks.append(right(self))
        return []

    patch.setattr(sliced.LayerPrefix, "pop", pop)


def step_before_the_last_gradient(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A stage steps with its gradient as it was before its last W."""
    early: dict[int, Grads] = {}

    def note(key: Key, before: Grads, now: Grads) -> None:
        del now
        early[key[0]] = before

    _around_weight(patch, note)
    right = updates.Updates._update

    def update(self: updates.Updates, stage: int) -> None:
        marks.append(stage)
        parameters = list(self._stages[stage].parameters())
        own = [p.grad for p in parameters]
        for parameter, grad in zip(parameters, early[stage], strict=True):
            parameter.grad = grad
        right(self, stage)
        for parameter, late in zip(parameters, own, strict=True):
            parameter.grad = late

    patch.setattr(updates.Updates, "_update", update)


def step_skipped(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A STEP does nothing."""
    patch.setattr(updates.Updates, "_update", lambda _, stage: marks.append(stage))


def other_learning_rate(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A rank steps a little further than it was told."""
    optimizer(patch, marks, lambda one: one.param_groups[0].update(lr=one.defaults["lr"] * LONGER))


def moments_forgotten(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """The optimizer's state is lost between steps."""

    def begin(self: updates.Updates, _: int) -> None:
        for one in self.optimizers.values():
            assert isinstance(one, torch.optim.Optimizer)
            marks.extend(one.state.keys())
            one.state.clear()

    after(patch, updates.Updates, "begin_pass", begin)


def gradients_not_zeroed(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """The second pass adds to the gradients of the first."""
    right = updates.Updates.begin_pass

    def begin(self: updates.Updates, number: int) -> None:
        stages, self._stages = self._stages, {}
        marks.extend(stages)
        right(self, number)
        self._stages = stages

    patch.setattr(updates.Updates, "begin_pass", begin)


def _own_alone(patch: pytest.MonkeyPatch, marks: Marks, name: str) -> None:
    right = getattr(updates.Updates, name)

    def added(self: updates.Updates, action: Action) -> Iterator[object]:
        yield from right(self, action)
        for key in self._totals:
            marks.append(key)
            self._totals[key] = self._own(key[0])[key].clone()

    patch.setattr(updates.Updates, name, added)


def tied_weights_not_summed(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Each end of a tied matrix steps with its own gradient."""
    _own_alone(patch, marks, "_add_tied")


def two_ranks_of_a_stage_not_summed(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Each of the two ranks of a stage steps with its own gradient."""
    _own_alone(patch, marks, "_add_replicas")


def collective_drops_a_member(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """The last member's part is left out."""
    summed(patch, marks, lambda right, parts: right(parts[:-1]))


def collective_doubles_a_member(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """The first member's part is taken twice."""
    summed(patch, marks, lambda right, parts: right([*parts, parts[0]]))


def collective_a_bit_off(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """One sum of one member is a bit off, so that the members have different ones."""

    def off(right: Callable[..., torch.Tensor], parts: list[torch.Tensor]) -> torch.Tensor:
        return right([parts[0] * (1 + 2**-52 * (not marks[1:])), *parts[1:]])

    summed(patch, marks, off)


def shard_short_of_its_last_row(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Rounding leaves the last element of each shard out of the step."""
    right = stage_shards.StageShards.step

    def step(self: stage_shards.StageShards, totals: dict[int, torch.Tensor]) -> None:
        last = {level: shard.flat[-1:].clone() for level, shard in self.shard.items()}
        right(self, totals)
        for level, shard in self.shard.items():
            marks.append(shard.flat[-1:].copy_(last[level]))

    patch.setattr(stage_shards.StageShards, "step", step)


def host_steps_nothing(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """The host's STEP leaves the weights as they are."""
    patch.setattr(host, "step_with", lambda *_: marks.append("stepped"))


FAULTS = (
    (dropped_contribution, "zb-h1"),
    (doubled_contribution, "zb-h1"),
    (swapped_order, "zb-h1"),
    (downcast_gradients, "zb-h1"),
    (lost_key_and_value_gradients, "svpp"),
    (step_before_the_last_gradient, "training"),
    (step_skipped, "training"),
    (other_learning_rate, "training"),
    (moments_forgotten, "training"),
    (gradients_not_zeroed, "training"),
    (tied_weights_not_summed, "tied"),
    (two_ranks_of_a_stage_not_summed, "chimera"),
    (collective_drops_a_member, "replicas"),
    (collective_drops_a_member, "zero"),
    (collective_doubles_a_member, "zero"),
    (collective_a_bit_off, "replicas"),
    (shard_short_of_its_last_row, "zero"),
    (host_steps_nothing, "toffload"),
)
