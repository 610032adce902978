"""A rank's share of the data, on its device before the first action: no step waits for data.

Each optimizer step of a training has microbatches of its own, which follow from the model's seed,
the step and the number in the whole batch (``models``).
"""

from __future__ import annotations

import torch

from bubbleproof.reference_exec.models.reference import microbatch_input, microbatch_target
from bubbleproof.reference_exec.plans.replay_plan import Key, ReplayPlan, key_of
from bubbleproof.reference_exec.runtime.device import Device
from bubbleproof.theory.model.actions import Kind


class Batch:
    """What the forwards of one rank take from outside: inputs on stage 0, targets on the last."""

    def __init__(self, plan: ReplayPlan, rank: int, device: Device, replica: int = 0) -> None:
        forwards = [a for a in plan.order(rank) if a.kind in (Kind.F, Kind.OVERLAP_F_B)]
        self._inputs: dict[tuple[int, Key], torch.Tensor] = {}
        self._targets: dict[tuple[int, Key], torch.Tensor] = {}
        self.step = 0
        drawn = sorted({key_of(action) for action in forwards})
        for step, key in ((step, key) for step in range(plan.num_passes) for key in drawn):
            part = (plan.sample(replica, key[1]), key[2], plan.num_slices)
            if key[0] == 0:
                given = microbatch_input(plan.spec, *part, step=step)
                self._inputs[step, key] = device.put(given)
            if key[0] == plan.num_stages - 1:
                wanted = microbatch_target(plan.spec, *part, step=step)
                self._targets[step, key] = device.put(wanted)

    def tensors(self) -> list[torch.Tensor]:
        """The data of all steps."""
        return [*self._inputs.values(), *self._targets.values()]

    def begin_pass(self, step: int) -> None:
        """From now on the data are those of an optimizer step, counted from 0."""
        self.step = step

    def input(self, key: Key) -> torch.Tensor:
        """The input of a forward on stage 0."""
        return self._inputs[self.step, key]

    def target(self, key: Key) -> torch.Tensor:
        """What a forward on the last stage should put out."""
        return self._targets[self.step, key]
