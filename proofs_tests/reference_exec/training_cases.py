"""Trainings to replay: families with the STEPs of a training in their programs."""

from __future__ import annotations

from dataclasses import replace

from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.plans.stepping import with_steps
from bubbleproof.reference_exec.plans.training import Training
from proofs_tests.reference_exec.cases import TINY, Case, replay_with


def trained(
    case: Case, training: Training, spec: ModelSpec = TINY, **options: object
) -> ReplayReport:
    """The replay of a training."""
    return replay_with(case.pipeline, case.schedule, spec, training=training, **options)


def training_plan(case: Case, training: Training, spec: ModelSpec = TINY) -> ReplayPlan:
    """The plan of a training, with its STEPs and exchanges."""
    return with_steps(replace(case.plan(spec.on(case.pipeline.num_stages)), training=training))


def training_orders(case: Case, training: Training, spec: ModelSpec = TINY) -> list[list[str]]:
    """The actions of each rank's program in a training."""
    plan = training_plan(case, training, spec)
    return [[str(action) for action in plan.order(rank)] for rank in range(plan.num_ranks)]
