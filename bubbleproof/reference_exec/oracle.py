"""Oracles: what the gradients of a replay must be.

- *Order-matched*: the contribution of each microbatch alone, by torch's ordinary unpipelined
  backward, then summed in the program's own order (for GEMM weights the order of B and W on their
  stage, for other parameters that of B and I). Floating-point sums depend on their order and on
  nothing else here, so a replay must equal this bit for bit (``torch.equal``).
- *Ordinary*: one backward of the whole batch in float64, with no schedule in it at all. A replay
  must agree up to rounding, ``TOLERANCES``: some 4500 units in the last place of its type, where a
  wrong schedule is off by a good part of the gradient. Errors are relative to the largest gradient
  of the stage, since single parameters may have gradients that cancel to rounding noise.

Neither uses the weight-gradient store, the split backward or a rank.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from bubbleproof.reference_exec.models import (
    Stage,
    microbatch_input,
    microbatch_loss,
    microbatch_target,
)
from bubbleproof.reference_exec.plan import Plan
from bubbleproof.reference_exec.rank import Gradients
from bubbleproof.theory.actions import Action, Kind

TOLERANCES = {"float64": 1e-12, "float32": 5e-4}
Orders = dict[int, list[int]]


@contextmanager
def single_threaded() -> Iterator[None]:
    """Run torch on one thread, as the ranks do: its sums may depend on the number of threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def accumulation_orders(plan: Plan) -> tuple[Orders, Orders]:
    """The microbatches of each stage as its GEMM weights (B, W) and its others (B, I) add them."""
    gemm: Orders = {stage: [] for stage in range(plan.num_stages)}
    other: Orders = {stage: [] for stage in range(plan.num_stages)}
    for action in plan.program.actions:
        done: Action = action.partner or action
        if done.kind in (Kind.B, Kind.W):
            gemm[done.stage].append(done.microbatch)
        if done.kind in (Kind.B, Kind.I):
            other[done.stage].append(done.microbatch)
    return gemm, other


def order_matched(plan: Plan) -> tuple[Gradients, dict[int, torch.Tensor]]:
    """The gradients and the losses by microbatch that the replay must equal bit for bit."""
    spec = plan.spec
    stages = [Stage(spec, stage) for stage in range(plan.num_stages)]
    alone: list[Gradients] = []
    losses = {}
    for microbatch in range(plan.num_microbatches):
        y = microbatch_input(spec, microbatch)
        for module in stages:
            module.zero_grad(set_to_none=True)
            y = module(y, None)
        target = microbatch_target(spec, microbatch)
        loss = microbatch_loss(spec, y, target, plan.num_microbatches)
        torch.autograd.backward(loss)
        losses[microbatch] = loss.detach()
        alone.append(_gradients(stages))
    gemm, other = accumulation_orders(plan)
    total: Gradients = {}
    for stage, module in enumerate(stages):
        weights = module.gemm_weights()
        for name, _ in module.named_parameters():
            order = (gemm if name in weights else other)[stage]
            total[stage, name] = _sum([alone[j][stage, name] for j in order])
    return total, losses


def ordinary(plan: Plan) -> tuple[Gradients, float]:
    """The gradients and the loss of the whole batch, in float64."""
    spec, microbatches = plan.spec, range(plan.num_microbatches)
    stages = [Stage(spec, stage).double() for stage in range(plan.num_stages)]
    y = torch.cat([microbatch_input(spec, j) for j in microbatches]).double()
    target = torch.cat([microbatch_target(spec, j) for j in microbatches]).double()
    for module in stages:
        y = module(y, None)
    loss = (y - target).square().mean() / 2
    torch.autograd.backward(loss)
    return _gradients(stages), loss.item()


def are_equal(found: Gradients, expected: Gradients) -> bool:
    """Whether both hold the same parameters with the same gradients, bit for bit."""
    return found.keys() == expected.keys() and all(
        torch.equal(found[key], expected[key]) for key in expected
    )


def max_relative_error(found: Gradients, expected: Gradients) -> float:
    """The largest over stages of max |found - expected| / max |expected|, over its parameters.

    Infinite where anything is not finite; absolute where all that is expected is 0.
    """
    error: dict[int, float] = {}
    scale: dict[int, float] = {}
    for (stage, name), value in expected.items():
        off = (found[stage, name].double() - value).abs().max().item()
        if not math.isfinite(off):
            return math.inf
        error[stage] = max(error.get(stage, 0.0), off)
        scale[stage] = max(scale.get(stage, 0.0), value.abs().max().item())
    return max(error[stage] / (scale[stage] or 1.0) for stage in error)


def _gradients(stages: list[Stage]) -> Gradients:
    result: Gradients = {}
    for stage, module in enumerate(stages):
        for name, parameter in module.named_parameters():
            assert parameter.grad is not None, f"stage {stage} {name} has no gradient"
            result[stage, name] = parameter.grad
    return result


def _sum(contributions: list[torch.Tensor]) -> torch.Tensor:
    total = contributions[0].clone()
    for contribution in contributions[1:]:
        total += contribution
    return total
