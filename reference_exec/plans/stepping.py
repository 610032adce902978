"""Steps put into programs: where each rank adds its gradients up and takes its optimizer steps.

The order that a rank runs in each pass of a training gets, for every stage g that it holds,

    gSTEP           after its last B, I or W of stage g, and after the SENDs that follow it there,
                    which others wait for; where there are replicas, after its last REDUCE_GRAD

unless two ranks have to add their gradients. These stages come at the end of the order, ascending,
the lower stage first on every rank:

    gREDUCE_GRAD    on both ranks of a stage that two ranks hold: each gets the other's gradient
    0REDUCE_GRAD.1  on all ranks of the stages that share a parameter, as embedding and head do
                    where they are tied: the gradients of its copies are added, the last's first
    gSTEP           of these stages, after all of it

An exchange stands once and is waited for where it stands. (The REDUCE_GRADs among replicas are the
problem's own, have other numbers, and stand twice.) With a barrier all STEPs come last. The barrier
is no action of its own, since the vocabulary has no word for it: it is how the first STEP of a rank
waits, until every rank that steps has come to its own first STEP of the pass. Stages that a host
updates step there, by the problem's own STEP, barrier or not.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bubbleproof.reference_exec.models.footprint import ties_of
from bubbleproof.reference_exec.plans.replay_plan import TRAINING_KINDS, ReplayPlan
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.model.schedule import Program

TIE = 1  # the number of the REDUCE_GRAD of stage 0 that adds gradients of shared parameters
_CONTRIBUTIONS = (Kind.B, Kind.I, Kind.W)
_SENDS = (Kind.SEND_F, Kind.SEND_B)


def with_steps(plan: ReplayPlan) -> ReplayPlan:
    """The plan with the STEPs and exchanges of its training, if it has one.

    A program that has any is kept.
    """
    training, program = plan.training, plan.program
    if training is None or any(is_of_training(plan, action) for action in program.actions):
        return plan
    orders = enumerate(program.orders(plan.num_ranks))
    stepped = [_stepped(plan, training, rank, order) for rank, order in orders]
    return replace(plan, program=Program.from_orders(stepped))


def without_steps(program: Program) -> Program:
    """A lowered program less its STEPs and REDUCE_GRADs."""
    return program.take(~program.actions.is_kind(*TRAINING_KINDS))


def without_training(plan: ReplayPlan) -> Program:
    """The program of a plan less what is there for its training."""
    kept = [not is_of_training(plan, action) for action in plan.program.actions]
    return plan.program.take(np.array(kept, dtype=np.bool_))


def is_of_training(plan: ReplayPlan, action: Action) -> bool:
    """Whether an action is there for the plan's training, and is no task of its problem."""
    if action.kind is Kind.REDUCE_GRAD:
        return plan.parallel is None or action not in plan.parallel.homes
    return action.kind is Kind.STEP and action.stage not in plan.hosted


def stepping_stages(plan: ReplayPlan, rank: int) -> list[int]:
    """The stages that step on a rank, ascending."""
    return [stage for stage in plan.stages_of(rank) if stage not in plan.hosted]


def stepping_ranks(plan: ReplayPlan) -> list[int]:
    """The ranks on which a stage steps, ascending: those that a barrier waits for."""
    return [rank for rank in range(plan.num_ranks) if stepping_stages(plan, rank)]


def is_shared(plan: ReplayPlan, stage: int) -> bool:
    """Whether a stage's gradient has a part from another rank, or another stage."""
    return stage in tied_stages(plan) or len(plan.ranks_of(stage)) > 1


def tied_stages(plan: ReplayPlan) -> tuple[int, ...]:
    """The stages that have a parameter in common with another, ascending."""
    ends = (stage for ends in ties_of(plan.spec, plan.num_stages) for stage, _ in ends)
    return tuple(sorted({*ends}))


def _stepped(plan: ReplayPlan, training: Training, rank: int, order: list[Action]) -> list[Action]:
    """The order of one rank with its exchanges and STEPs."""
    stages = stepping_stages(plan, rank)
    at_end = [g for g in stages if training.has_barrier or is_shared(plan, g)]
    ends = {g: _end_of_gradient(plan, order, g) for g in stages if g not in at_end}
    found: list[Action] = []
    for position, action in enumerate(order):
        found.append(action)
        found += [_step(stage) for stage, end in ends.items() if end == position]
    return [*found, *_exchanges(plan, stages), *map(_step, at_end)]


def _end_of_gradient(plan: ReplayPlan, order: list[Action], stage: int) -> int:
    """The position after which the gradient of a stage is complete, and sent what waits for it.

    It is the last one where a program that was not verified adds nothing to the gradient.
    """
    kinds = (Kind.REDUCE_GRAD,) if plan.parallel is not None else _CONTRIBUTIONS
    done = [action.partner or action for action in order]
    adds = [i for i, a in enumerate(done) if a.stage == stage and a.kind in kinds]
    last = max(adds, default=len(order) - 1)
    while last + 1 < len(order) and order[last + 1].kind in _SENDS:
        last += 1
    return last


def _exchanges(plan: ReplayPlan, stages: list[int]) -> list[Action]:
    found = [
        Action(stage=stage, kind=Kind.REDUCE_GRAD)
        for stage in stages
        if len(plan.ranks_of(stage)) > 1
    ]
    if {*stages} & {*tied_stages(plan)}:
        found.append(Action(stage=0, kind=Kind.REDUCE_GRAD, slice=TIE))
    return found


def _step(stage: int) -> Action:
    return Action(stage=stage, kind=Kind.STEP)
