"""PipeMesh with its collectives: a schedule to replay, its plan, and its replay."""

from __future__ import annotations

from dataclasses import replace

from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.prepared import lowered_program, replay_plan
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.plans.replicated import replicated
from bubbleproof.reference_exec.plans.zero_levels import ZeroLevels
from bubbleproof.theory.families.parameters import make_parameters
from bubbleproof.theory.families.pipemesh import PipeMesh
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.sharding import Sharding
from proofs_tests.reference_exec.cases import TINY, replay_with

Made = tuple[Pipeline, Schedule]


def sharded(
    zero: int,
    *,
    p: int = 2,
    v: int = 2,
    m: int = 4,
    e: tuple[int, ...] | None = None,
    d: tuple[int, ...] | None = None,
    ticks: Sharding | None = None,
    **changes: int,
) -> tuple[PipeMesh, Pipeline]:
    """PipeMesh with the collectives of a ZeRO level, of 1 tick each unless ``ticks`` says more."""
    family = PipeMesh(e, d)
    pipeline = family.pipeline(make_parameters({"p": p, "m": m, "v": v})).with_changes(**changes)
    sharding = Sharding(zero=zero, gather=1, reduce=1) if ticks is None else ticks
    return family, family.sharded(pipeline, replace(sharding, zero=zero))


def mesh(zero: int, **options: object) -> Made:
    """The pipeline and the schedule of ``sharded``."""
    family, pipeline = sharded(zero, **options)  # type: ignore[arg-type]  # handed on
    return pipeline, family.schedule(pipeline)


def run(made: Made, spec: ModelSpec = TINY, **options: object) -> ReplayReport:
    return replay_with(*made, spec, **options)


def plan_of(made: Made, spec: ModelSpec = TINY, *, replicas: int, levels: str | None) -> ReplayPlan:
    pipeline, schedule = made
    given = None if levels is None else ZeroLevels.parse(levels)
    whole = replicated(pipeline, schedule, spec, replicas=replicas, levels=given)
    return replay_plan(whole, lowered_program(whole))
