"""Profiles: how long F, I, W and B of each stage take on a device, and what they hold.

Each stage runs alone, by the same ``Compute`` as in a replay: what is timed is what a replay does,
its memory accounting included. On a GPU times are taken by events on the computation's stream, so
they are the kernels' and not those of queueing them; on the cpu by the clock. The first ``warmup``
rounds are not counted: they allocate, and pick kernels. Messages are not measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch

from bubbleproof.reference_exec.evidence.oracle import single_threaded
from bubbleproof.reference_exec.models.footprint import facts_of, typed, weight_bytes
from bubbleproof.reference_exec.models.layers import DTYPES
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.reference import message_shape
from bubbleproof.reference_exec.plans.replay_plan import Key, ReplayPlan
from bubbleproof.reference_exec.runtime.compute import Compute
from bubbleproof.reference_exec.runtime.device import CPU, Device
from bubbleproof.reference_exec.runtime.rank import account
from bubbleproof.theory.model.schedule import Program

FINISH_SECONDS = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """The seconds of one kind of action, one per counted round."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.seconds)

    @property
    def spread(self) -> tuple[float, float]:
        """The shortest and the longest."""
        return min(self.seconds), max(self.seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageProfile:
    """One stage, measured.

    ``activation_bytes`` are held from F to B or I, ``kept_for_weight_bytes`` from I to W;
    ``static_bytes`` are the weights and their gradients.
    """

    stage: int
    forward: Times
    input_backward: Times
    weight_backward: Times
    backward: Times
    activation_bytes: int
    kept_for_weight_bytes: int
    static_bytes: int


def profile_stages(
    spec: ModelSpec,
    num_stages: int,
    *,
    device: Device = CPU,
    warmup: int = 3,
    repeats: int = 10,
    progress: Callable[[str], None] | None = None,
) -> tuple[StageProfile, ...]:
    """Measure every stage of a model, one after the other.

    Raises ``ValueError`` for a number of rounds that is too small, or a model without so many
    stages.
    """
    for name, value, least in (("warmup", warmup, 1), ("repeats", repeats, 1)):
        if value < least:
            raise ValueError(f"profile {name} must be {least} or more, got {value}")
    plan = _one_microbatch(typed(spec.on(num_stages)), num_stages)
    found = []
    with single_threaded():
        for stage in range(num_stages):
            found.append(_measured(plan, stage, device, warmup=warmup, repeats=repeats))
            if progress is not None:
                progress(f"stage {stage} of {num_stages} is measured")
    return tuple(found)


def _one_microbatch(spec: ModelSpec, num_stages: int) -> ReplayPlan:
    """A rank for each stage and one microbatch: enough to build what a rank computes with."""
    orders = [[f"{g}F0", f"{g}I0", f"{g}W0"] for g in range(num_stages)]
    return ReplayPlan(
        spec=spec,
        program=Program.from_orders(orders),
        stage_ranks=tuple(range(num_stages)),
        num_microbatches=1,
    )


def _measured(
    plan: ReplayPlan, stage: int, device: Device, *, warmup: int, repeats: int
) -> StageProfile:
    with account(plan):
        rounds = _Rounds(plan, stage, device)
        split = [rounds.run(is_split=True) for _ in range(warmup + repeats)][warmup:]
        whole = [rounds.run(is_split=False) for _ in range(warmup + repeats)][warmup:]
    if not device.finish(FINISH_SECONDS):
        raise RuntimeError(f"stage {stage} has not ended after {FINISH_SECONDS:g} s")

    def times(rounds: list[list[object]], number: int) -> Times:
        spans = (marks[number : number + 2] for marks in rounds)
        return Times(seconds=tuple(device.seconds(begin, end) for begin, end in spans))

    return StageProfile(
        stage=stage,
        forward=times(split, 0),
        input_backward=times(split, 1),
        weight_backward=times(split, 2),
        backward=times(whole, 1),
        activation_bytes=rounds.activation_bytes,
        kept_for_weight_bytes=rounds.kept_for_weight_bytes,
        static_bytes=2 * weight_bytes(plan.spec, stage),
    )


class _Rounds:
    """One stage, run again and again with the same data."""

    def __init__(self, plan: ReplayPlan, stage: int, device: Device) -> None:
        self._compute = Compute(plan, stage, device)
        self._device = device
        self._key: Key = (stage, 0, 0)
        shapes = [message_shape(plan.spec, entered) for entered in range(1, plan.num_stages)]
        arriving, leaving = [None, *shapes][stage], [*shapes, None][stage]
        self._activation = None if arriving is None else self._values(plan, arriving)
        if arriving is not None and plan.spec.kind == "own":  # several things may be in it
            self._activation = device.put(facts_of(plan.spec)[stage].sample)
        self._gradient = None if leaving is None else self._values(plan, leaving)
        self.activation_bytes = 0
        self.kept_for_weight_bytes = 0

    def run(self, *, is_split: bool) -> list[object]:
        """F, I and W, or F and B: the moments before, between and after them."""
        compute = self._compute
        if self._activation is None:  # stage 0 takes data
            x = compute.batch.input(self._key).clone()
        else:
            x = self._activation.clone().requires_grad_()
        gradient = None if self._gradient is None else self._gradient.clone()
        marks = [self._device.mark()]
        compute.forward(self._key, x)
        marks.append(self._device.mark())
        self.activation_bytes = compute.ledger.needed_bytes  # not what this loop itself holds
        compute.backward(self._key, gradient, is_split=is_split)
        marks.append(self._device.mark())
        if is_split:
            self.kept_for_weight_bytes = compute.ledger.needed_bytes
            compute.weight(self._key)
            marks.append(self._device.mark())
        return marks

    def _values(self, plan: ReplayPlan, shape: tuple[int, ...]) -> torch.Tensor:
        """Values of the size of activations."""
        generator = torch.Generator().manual_seed(plan.spec.seed)
        values = torch.randn(shape, generator=generator, dtype=DTYPES[plan.spec.dtype])
        return self._device.put(values)
