"""A rank's share of the batch, on its device before the first action: no step waits for data."""

from __future__ import annotations

import torch

from bubbleproof.reference_exec.device import Device
from bubbleproof.reference_exec.models import microbatch_input, microbatch_target
from bubbleproof.reference_exec.plan import Key, Plan, key_of
from bubbleproof.theory.actions import Kind


class Batch:
    """What the forwards of one rank take from outside: inputs on stage 0, targets on the last."""

    def __init__(self, plan: Plan, rank: int, device: Device, replica: int = 0) -> None:
        forwards = [a for a in plan.order(rank) if a.kind in (Kind.F, Kind.OVERLAP_F_B)]
        self._inputs: dict[Key, torch.Tensor] = {}
        self._targets: dict[Key, torch.Tensor] = {}
        for key in {key_of(action) for action in forwards}:
            part = (plan.sample(replica, key[1]), key[2], plan.num_slices)
            if key[0] == 0:
                self._inputs[key] = device.put(microbatch_input(plan.spec, *part))
            if key[0] == plan.num_stages - 1:
                self._targets[key] = device.put(microbatch_target(plan.spec, *part))

    def input(self, key: Key) -> torch.Tensor:
        """The input of a forward on stage 0."""
        return self._inputs[key]

    def target(self, key: Key) -> torch.Tensor:
        """What a forward on the last stage should put out."""
        return self._targets[key]
