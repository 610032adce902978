"""Oracles: what the gradients of a replay must be.

- *Order-matched*: the contribution of each microbatch alone, by torch's ordinary unpipelined
  backward, then summed in the program's own order (``accumulation``). Where samples are sliced,
  each slice has a copy of the weights of its own, so that one backward of the whole sample, through
  the keys and values that slices share, gives the contribution of each. Where a stage is on two
  ranks, each sums its own and the sum of the higher rank is added to that of the lower. Where
  replicas reduce their gradients, each sums on one rank what one REDUCE_GRAD takes, the replicas'
  sums are added in the order of replicas, and those of several REDUCE_GRADs of a rank in the order
  in which they end. Where gradients are accumulated, sums go on from pass to pass. Sums depend on
  their order and on nothing else here, so a replay must equal
  this bit for bit (``bits``).
- *Ordinary*: one backward of the whole batch in float64, with no schedule in it at all. A replay
  must agree up to rounding, ``TOLERANCES``: some 4500 units in the last place of its type, where a
  wrong schedule is off by a good part of the gradient (of 16 bits, see ``rounding``). Errors are
  relative to the largest gradient of the stage, since single parameters may have gradients that
  cancel to rounding noise.

Neither uses the weight-gradient store, the split backward or a rank.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce

import torch

from bubbleproof.reference_exec.models.draws import drawing
from bubbleproof.reference_exec.models.footprint import ties_of
from bubbleproof.reference_exec.models.layers import as_message
from bubbleproof.reference_exec.models.own import own_given
from bubbleproof.reference_exec.models.parcels import with_type
from bubbleproof.reference_exec.models.reference import (
    Stage,
    gradients_of,
    microbatch_input,
    microbatch_loss,
    microbatch_target,
    run_backward,
    trained,
    whole_model,
)
from bubbleproof.reference_exec.plans.accumulation import (
    accumulation_orders,
    begins_at_zero,
    part_of_weights,
    summed_together,
)
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.runtime.compute import Gradients
from bubbleproof.reference_exec.runtime.device import CPU, Device
from bubbleproof.reference_exec.runtime.optimizers import LEARNING_RATE
from bubbleproof.theory.model.actions import NONE

TOLERANCES = {"float64": 1e-12, "float32": 5e-4}
TensorPair = tuple[torch.Tensor, torch.Tensor]


@contextmanager
def single_threaded() -> Iterator[None]:
    """Run torch on one thread, as the ranks do: its sums may depend on the number of threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class _AttachedPrefix:
    """An ``attention.Prefix`` whose keys and values stay in one graph."""

    def __init__(self) -> None:
        self._blocks: list[TensorPair] = []

    @property
    def num_tokens(self) -> int:
        return sum(key.shape[1] for key, _ in self._blocks)

    def extend(self, key: torch.Tensor, value: torch.Tensor) -> list[TensorPair]:
        self._blocks.append((key, value))
        return list(self._blocks)


def order_matched(
    plan: ReplayPlan,
    weights: Gradients | None = None,
    device: Device = CPU,
    *,
    step: int = 0,
    scale: float | None = None,
) -> tuple[Gradients, dict[tuple[int, int], torch.Tensor]]:
    """The gradients, and the losses by (number in the step's batch, slice), that must come out.

    ``weights`` by (stage, name) stand in the place of the initial ones; the data are those of
    optimizer step ``step``; gradients are ``scale`` times theirs. All is computed on ``device``,
    since kernels of different devices differ in their last bits, and returned on the host.
    """
    alone, losses = contributions(plan, weights, device, step=step, scale=scale)
    modules = whole_model(plan.spec, plan.num_stages)
    parts = range(max(plan.weight_parts.values(), default=0))
    gemm = {part: accumulation_orders(plan, part)[0] for part in (NONE, *parts)}
    _, other = accumulation_orders(plan)
    total: Gradients = {}
    for stage, rank in sorted(other):
        part_of = part_of_weights(plan, stage, modules[stage].gemms())
        for name in trained(modules[stage]):
            orders = gemm[part_of[name]] if name in part_of else other
            reductions = summed_together(
                plan, stage, rank, name, orders[stage, rank], part_of.get(name)
            )
            each = {part: gradients[stage, name] for part, gradients in alone.items()}
            begins = [torch.zeros_like(each[0, 0])] if begins_at_zero(plan, stage) else []
            replica = _reduced(plan, reductions, each, begins)
            total[stage, name] = total[stage, name] + replica if (stage, name) in total else replica
    return {key: value.cpu() for key, value in total.items()}, losses


def contributions(
    plan: ReplayPlan,
    weights: Gradients | None = None,
    device: Device = CPU,
    *,
    step: int = 0,
    scale: float | None = None,
) -> tuple[dict[tuple[int, int], Gradients], dict[tuple[int, int], torch.Tensor]]:
    """The gradients of each (microbatch, slice) alone, and its loss; as in ``order_matched``."""
    slices = range(plan.num_slices)
    copies = [stages_with(plan, weights, device.torch_device) for _ in slices]
    alone: dict[tuple[int, int], Gradients] = {}
    losses = {}
    for microbatch in range(plan.batch_samples):
        own = _sample_losses(plan, copies, (step, microbatch), device)
        run_backward(plan.spec, own, scale)
        for k in slices:
            losses[microbatch, k] = own[k].detach().cpu()
            alone[microbatch, k] = _gradients(copies[k])
    return alone, losses


def stages_with(
    plan: ReplayPlan, weights: Gradients | None, where: torch.device | torch.dtype
) -> list[Stage]:
    """All stages in a type or on a device, with the weights where they are given."""
    stages = whole_model(plan.spec, plan.num_stages)
    for module in stages:
        module.to(where)
    set_weights(stages, weights or {})
    return stages


@torch.no_grad()
def set_weights(stages: list[Stage], weights: Gradients) -> None:
    """Give stages the weights that are there for them."""
    for (stage, name), value in weights.items():
        stages[stage].get_parameter(name).copy_(value)


def _reduced(
    plan: ReplayPlan,
    reductions: list[list[tuple[int, int]]],
    own: dict[tuple[int, int], torch.Tensor],
    begins: Sequence[torch.Tensor],
) -> torch.Tensor:
    """One parameter's gradient on one rank: all replicas', one reduction after another.

    ``begins`` is what a sum begins with where it does not with its first contribution.
    """
    sums = []
    for parts in reductions:
        of_replicas = []
        for replica in range(plan.num_replicas):
            first = range(0, plan.batch_samples, plan.num_samples)  # of the passes of a step
            added = [own[n + plan.sample(replica, j), k] for n in first for j, k in parts]
            of_replicas.append(_sum([*begins, *added]))
        sums.append(_sum(of_replicas))
    return _sum(sums)


def _sample_losses(
    plan: ReplayPlan, copies: list[list[Stage]], sample: tuple[int, int], device: Device
) -> list[torch.Tensor]:
    """The loss of each slice of one (step, number in its batch), slice k on ``copies[k]``."""
    spec, slices = plan.spec, plan.num_slices
    step, microbatch = plan.drawn(*sample)
    prefixes = None
    if slices > 1:
        layers = [spec.layers_of(stage) for stage in range(plan.num_stages)]
        prefixes = [[_AttachedPrefix() for _ in range(count)] for count in layers]
    losses = []
    for k, stages in enumerate(copies):
        y = device.put(microbatch_input(spec, microbatch, k, slices, step=step))
        for stage, module in enumerate(stages):
            module.zero_grad(set_to_none=True)
            given = as_message(y) if stage else y
            with drawing(spec, stage, step, microbatch, k):
                y = module(given, None, None if prefixes is None else prefixes[stage])
        target = device.put(microbatch_target(spec, microbatch, k, slices, step=step))
        with drawing(spec, plan.num_stages, step, microbatch, k):
            losses.append(microbatch_loss(spec, y, target, plan.divisor(microbatch)))
    return losses


def stepped(plan: ReplayPlan, gradients: Gradients) -> Gradients:
    """The weights that the host or shards update, after torch's own SGD with the gradients."""
    found: Gradients = {}
    sharded = range(plan.num_stages) if plan.is_sharded else ()
    for stage in sorted({*plan.hosted, *sharded}):
        module = Stage(plan.spec, stage)
        for name, parameter in module.named_parameters():
            parameter.grad = gradients[stage, name]
        torch.optim.SGD(module.parameters(), lr=LEARNING_RATE).step()
        found |= {(stage, name): p.detach() for name, p in module.named_parameters()}
    return found


def ordinary(
    plan: ReplayPlan, weights: Gradients | None = None, *, step: int = 0
) -> tuple[Gradients, float]:
    """The gradients and the loss of a step's whole batch in float64, ``weights`` where given."""
    spec = plan.spec
    stages = stages_with(plan, weights, torch.float64)
    if spec.kind == "own":
        return _ordinary_of_own(plan, stages, step)
    drawn = [plan.drawn(step, number) for number in range(plan.batch_samples)]
    y = torch.cat([microbatch_input(spec, j, step=of) for of, j in drawn])
    target = torch.cat([microbatch_target(spec, j, step=of) for of, j in drawn])
    embedding, head = stages[0].embedding, stages[-1].head
    if spec.tied and embedding is not None and head is not None:
        head.linear.weight = embedding.weight
    y = y if spec.vocabulary else y.double()
    for module in stages:
        y = module(y, None)
    if spec.vocabulary:
        loss = torch.nn.functional.cross_entropy(y.flatten(0, 1), target.flatten())
    else:
        loss = (y - target.double()).square().mean() / 2
    torch.autograd.backward(loss)
    return _gradients(stages), loss.item()


def _ordinary_of_own(plan: ReplayPlan, stages: list[Stage], step: int) -> tuple[Gradients, float]:
    """One backward of the summed losses: a user's loss need not be a mean over the batch."""
    total = torch.zeros((), dtype=torch.float64)
    for microbatch in range(plan.batch_samples):
        total = total + whole_loss(plan, stages, microbatch, step=step)
    run_backward(plan.spec, total)
    return with_ties(plan, _gradients(stages)), total.item()


def whole_loss(
    plan: ReplayPlan,
    stages: Sequence[Stage],
    microbatch: int,
    *,
    step: int,
    dtype: torch.dtype = torch.float64,
) -> torch.Tensor:
    """The loss of one whole microbatch of stages of a type, one after the other in one graph.

    ``microbatch`` is its number in the whole batch of the step.
    """
    spec = plan.spec
    step, microbatch = plan.drawn(step, microbatch)
    x = microbatch_input(spec, microbatch, step=step)
    target = with_type(microbatch_target(spec, microbatch, step=step), dtype)
    y = own_given(spec, x, dtype) if spec.kind == "own" else with_type(x, dtype)
    for stage, module in enumerate(stages):
        with drawing(spec, stage, step, microbatch):
            y = module.plain(y)
    with drawing(spec, plan.num_stages, step, microbatch):
        return microbatch_loss(spec, y, target, plan.divisor(microbatch))


def max_relative_error(found: Gradients, expected: Gradients) -> float:
    """The largest over stages of max |found - expected| / max |expected|, over its parameters.

    Infinite where anything is missing, of another shape or not finite; absolute where all that is
    expected is 0.
    """
    error: dict[int, float] = {}
    scale: dict[int, float] = {}
    for (stage, name), value in expected.items():
        own = found.get((stage, name))
        if own is None or own.shape != value.shape:
            return math.inf
        off = (own.double() - value).abs().max().item()
        if not math.isfinite(off):
            return math.inf
        error[stage] = max(error.get(stage, 0.0), off)
        scale[stage] = max(scale.get(stage, 0.0), value.abs().max().item())
    return max((error[stage] / (scale[stage] or 1.0) for stage in error), default=0.0)


def with_ties(plan: ReplayPlan, gradients: Gradients) -> Gradients:
    """The gradients, those of what stages share replaced by their sum, the last stage's first."""
    found = dict(gradients)
    for ends in ties_of(plan.spec, plan.num_stages):
        if {*ends} <= gradients.keys():
            found |= dict.fromkeys(ends, _sum([gradients[end] for end in reversed(ends)]))
    return found


def _gradients(stages: list[Stage]) -> Gradients:
    return gradients_of(dict(enumerate(stages)))


def _sum(contributions: list[torch.Tensor]) -> torch.Tensor:
    return reduce(torch.add, contributions)
