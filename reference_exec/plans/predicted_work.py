"""Predicted work: what each action of a program computes, and how many gradients it adds to.

It follows from the model (``stage_flops``) and from what the schedule says the action is, not from
anything that ran:

    F, R           the forward                                     no gradient
    I              the gradients of the stage's input and of all   each parameter's without a GEMM
                   between
    W, or a part   its GEMMs                                       those of their weights
    B              what both do (of somebody's own model: what it  all of the stage
                   does without being split)

An overlapped pair does both. All else computes nothing: messages, moves, collectives and STEPs have
no products of matrices. Two of them put a stage's gradients in place, all at once: the beginning of
a RELOAD of weights makes room for them, and the end of a REDUCE_GRAD of whole replicas puts their
sum there. (Of sharded stages the gradients that an action adds to are parts of flat buffers; a
REDUCE_GRAD takes these away.)

What a rank does after an action belongs to the next one; after the last comes nothing.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from bubbleproof.reference_exec.models.footprint import (
    StageFlops,
    of_size,
    parameter_tensors,
    shares,
    stage_flops,
)
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.theory.model.actions import NONE, Action, Kind


class ActionWork(NamedTuple):
    """Floating-point operations, and how many gradients were added to."""

    flops: int = 0
    gradients: int = 0

    def __add__(self, other: object) -> ActionWork:
        """Both."""
        if not isinstance(other, ActionWork):
            return NotImplemented
        return ActionWork(self.flops + other.flops, self.gradients + other.gradients)


def predicted_work(plan: ReplayPlan) -> tuple[tuple[ActionWork, ...], ...]:
    """The work of each action of each rank, and at its end that after the last action.

    Precondition: the plan can run to its end.
    """

    @cache
    def flops(stage: int, slice_: int, spec: ModelSpec) -> StageFlops:
        return stage_flops(spec, stage, slice_index=slice_, num_slices=plan.num_slices)

    def flops_of(action: Action) -> StageFlops:
        spec = of_size(plan.spec, action.microbatch)
        return flops(action.stage, _slice(plan, action), spec)

    found = []
    for rank in range(plan.num_ranks):
        begun: set[Action] = set()
        rows = []
        for action in plan.order(rank):
            rows.append(_of(plan, action, flops_of(action), begun))
            if action.partner is not None:
                pair = action.partner
                rows[-1] += _computed(plan, pair, flops_of(pair))
            begun.add(action)
        found.append((*rows, ActionWork()))
    return tuple(found)


def _slice(plan: ReplayPlan, action: Action) -> int:
    """The slice of a computation; collectives have another number there."""
    return action.slice if action.slice < plan.num_slices else 0


def _of(plan: ReplayPlan, action: Action, flops: StageFlops, begun: set[Action]) -> ActionWork:
    is_second, parallel = action in begun, plan.parallel
    everything = ActionWork(0, parameter_tensors(plan.spec, action.stage))
    if action.kind is Kind.RELOAD and action.stage in plan.hosted:
        return ActionWork() if is_second else everything
    if action.kind is Kind.REDUCE_GRAD and parallel is not None and action in parallel.homes:
        return everything if is_second and not plan.is_sharded else ActionWork()
    return _computed(plan, action, flops)


def _computed(plan: ReplayPlan, action: Action, flops: StageFlops) -> ActionWork:
    """The work of a computation, none of anything else."""
    weights = len(flops.gemms)
    others = parameter_tensors(plan.spec, action.stage) - weights
    if action.kind in (Kind.F, Kind.R, Kind.OVERLAP_F_B):
        return ActionWork(flops.forward)
    if action.kind is Kind.I:
        return ActionWork(flops.input_backward, others)
    if action.kind is Kind.B:
        return ActionWork(flops.backward, weights + others)
    if action.kind is not Kind.W:
        return ActionWork()
    if action.part == NONE:
        return ActionWork(sum(flops.gemms), weights)
    num_parts = plan.weight_parts[action.stage]
    share = shares(weights, num_parts)[action.part]
    return ActionWork(sum(flops.gemms[k] for k in share), len(share))
