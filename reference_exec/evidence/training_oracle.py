"""Oracles of a training: what gradients, losses and weights must be after k steps.

Both oracles of ``oracle`` are carried on from step to step, on the data of the step:

- *order-matched*: the order-matched gradients, then torch's own optimizer on each stage alone; a
  replay's weights must equal these bit for bit;
- *ordinary*: one backward of the whole batch in float64 and one torch optimizer over all
  parameters, as a training loop without a pipeline has it; a replay must agree up to rounding.

Rounding grows from step to step as the training itself makes it grow, which may be by any factor.
So each step of the ordinary one begins at the weights to which the order-matched one has come, and
both must agree after every step (``drift``); the optimizer keeps its own state in float64.

Neither uses a rank, its exchange of gradients, or its moment of stepping.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch

from bubbleproof.reference_exec.evidence.oracle import (
    max_relative_error,
    order_matched,
    ordinary,
    set_weights,
    stepped,
    with_ties,
)
from bubbleproof.reference_exec.models.reference import Stage, trained, weights_of, whole_model
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.runtime.clipping import again
from bubbleproof.reference_exec.runtime.compute import Gradients, Losses
from bubbleproof.reference_exec.runtime.device import CPU, Device
from bubbleproof.reference_exec.runtime.optimizers import Optimizer, optimizer_of, step_with


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpectedTraining:
    """What a replay must equal: gradients of its last pass, losses of all, and weights at its end.

    ``losses`` go by (pass, number in the whole batch, slice). ``weights`` has the stages that are
    stepped: all of them in a training, otherwise those that the host updates. ``course`` has all
    weights before each step of a training, and at its end. ``skipped`` are the steps whose
    gradients are not all finite, ``scale`` is what the loss of the last step was multiplied by.
    """

    gradients: Gradients
    losses: Losses
    weights: Gradients
    course: tuple[Gradients, ...] = ()
    skipped: tuple[int, ...] = ()
    scale: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OrdinaryTraining:
    """What a replay must come close to, in float64; ``weights`` is empty without a training.

    ``drift`` is the largest relative error of the order-matched weights after any step.
    """

    gradients: Gradients
    loss: float
    weights: Gradients
    drift: float = 0.0


def matched_training(plan: ReplayPlan, device: Device = CPU) -> ExpectedTraining:
    """The order-matched oracle, carried on for the steps of the plan's training."""
    training = plan.training
    if training is None:
        gradients, alone = order_matched(plan, device=device)
        gradients = with_ties(plan, gradients) if plan.trains else {}
        losses = _of_step(plan, 0, alone)
        return ExpectedTraining(
            gradients=gradients, losses=losses, weights=stepped(plan, gradients)
        )
    built = enumerate(whole_model(plan.spec, plan.num_stages))
    stages = [module.to(stepped_on(plan, stage, device)) for stage, module in built]
    optimizers = [optimizer_of(training, trained(stage).values()) for stage in stages]
    course, losses = [_weights(stages)], Losses()
    scale, skipped, value = training.loss_scale, list[int](), None
    for step in range(training.steps):
        value = None if scale is None else scale.value
        gradients, alone = order_matched(plan, course[-1], device, step=step, scale=value)
        losses |= _of_step(plan, step, alone)
        gradients = with_ties(plan, gradients)
        is_finite = scale is None or all(each.isfinite().all() for each in gradients.values())
        if is_finite:
            _step(stages, optimizers, clipped(plan, _unscaled(gradients, value)))
        else:
            skipped.append(step)
        scale = None if scale is None else scale.after(is_finite=is_finite)
        course.append(_weights(stages))
    return ExpectedTraining(
        gradients=gradients,
        losses=losses,
        weights=course[-1],
        course=tuple(course),
        skipped=tuple(skipped),
        scale=value,
    )


def _of_step(plan: ReplayPlan, step: int, losses: dict[tuple[int, int], torch.Tensor]) -> Losses:
    return {(*plan.drawn(step, number), k): loss for (number, k), loss in losses.items()}


def stepped_on(plan: ReplayPlan, stage: int, device: Device) -> torch.device:
    """Where a stage's weights take their steps: on the host where that updates the stage.

    The square roots and divisions of Adam differ in their last bits between a GPU and a cpu.
    """
    return CPU.torch_device if stage in plan.hosted else device.torch_device


def ordinary_training(
    plan: ReplayPlan, course: Sequence[Gradients], skipped: Collection[int] = ()
) -> OrdinaryTraining:
    """The ordinary oracle for the steps of the plan's training, along the weights of ``course``.

    Those that are ``skipped`` it skips too.
    """
    training = plan.training
    if training is None:
        gradients, loss = ordinary(plan)
        return OrdinaryTraining(gradients=gradients if plan.trains else {}, loss=loss, weights={})
    stages = [stage.double() for stage in whole_model(plan.spec, plan.num_stages)]
    optimizer = optimizer_of(training, (p for stage in stages for p in trained(stage).values()))
    drift = 0.0
    for step, (before, after) in enumerate(pairwise(course)):
        gradients, loss = ordinary(plan, before, step=step)
        set_weights(stages, before)
        if step not in skipped:
            _set_gradients(stages, clipped(plan, gradients))
            optimizer.step()
        drift = max(drift, max_relative_error(after, _weights(stages)))
    return OrdinaryTraining(gradients=gradients, loss=loss, weights=_weights(stages), drift=drift)


def clipped(plan: ReplayPlan, gradients: Gradients) -> Gradients:
    """The gradients as torch clips them by their global norm, where the training says so.

    They come in the order of stages and parameters; what several stages share counts once.
    """
    most = None if plan.training is None else plan.training.clip
    if most is None:
        return gradients
    copies = {key: gradient.clone() for key, gradient in sorted(gradients.items(), key=_stage)}
    norm = torch.nn.utils.get_total_norm([g for key, g in copies.items() if key not in again(plan)])
    shells = [torch.nn.Parameter(torch.empty_like(each)) for each in copies.values()]
    for shell, gradient in zip(shells, copies.values(), strict=True):
        shell.grad = gradient
    torch.nn.utils.clip_grads_with_norm_(shells, most, norm)
    return copies


def _stage(item: tuple[tuple[int, str], torch.Tensor]) -> int:
    return item[0][0]


def _weights(stages: list[Stage]) -> Gradients:
    """Copies of all weights by (stage, name)."""
    return {key: weight.clone() for key, weight in weights_of(dict(enumerate(stages))).items()}


def _unscaled(gradients: Gradients, scale: float | None) -> Gradients:
    """Gradients of the unscaled loss, those of float16 in float32, in which masters are stepped."""
    found = {}
    for key, gradient in gradients.items():
        wide = gradient.to(torch.float32) if gradient.dtype is torch.float16 else gradient
        found[key] = wide if scale is None else wide * (1 / scale)
    return found


def _step(stages: list[Stage], optimizers: list[Optimizer], gradients: Gradients) -> None:
    for number, (stage, optimizer) in enumerate(zip(stages, optimizers, strict=True)):
        pairs = [(p, gradients[number, n].to(p.device)) for n, p in trained(stage).items()]
        step_with(optimizer, pairs)


def _set_gradients(stages: list[Stage], gradients: Gradients) -> None:
    for number, stage in enumerate(stages):
        for name, parameter in trained(stage).items():
            parameter.grad = gradients[number, name].to(parameter.device)
