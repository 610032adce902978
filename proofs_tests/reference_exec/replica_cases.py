"""Schedules without collectives of their own, on replicas."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.prepared import lowered_program, replay_plan
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.plans.replicated import ReplicatedSchedule, replicated
from bubbleproof.reference_exec.plans.zero_levels import ZeroLevels
from bubbleproof.theory.families import families
from bubbleproof.theory.model.actions import Kind
from proofs_tests.reference_exec.cases import TINY, Case, family_case, replay_with
from proofs_tests.reference_exec.test_every_family import ORDINARY, SHAPES

SPEC = replace(TINY, sequence=2)
LEVELS = (None, "1", "2", "3", "3,norm=1,up=2")
TURN = {name: LEVELS[1:][n % 4] for n, name in enumerate(sorted(families()))}
COLLECTIVES = (Kind.UNSHARD, Kind.RESHARD, Kind.REDUCE_GRAD)


@cache
def of_family(name: str) -> Case:
    return family_case(name, **SHAPES.get(name, ORDINARY))


def run(case: Case, levels: str | None, **options: object) -> ReplayReport:
    zero = None if levels is None else ZeroLevels.parse(levels)
    given: dict[str, object] = {"data_parallel": 2, "spec": SPEC, **options}
    spec = given.pop("spec")
    assert isinstance(spec, ModelSpec)
    return replay_with(case.pipeline, case.schedule, spec, zero=zero, **given)


def placed(
    case: Case, levels: str | None, spec: ModelSpec = SPEC
) -> tuple[ReplicatedSchedule, ReplayPlan]:
    """The replicated step of a case on two replicas, and its plan."""
    zero = None if levels is None else ZeroLevels.parse(levels)
    whole = replicated(case.pipeline, case.schedule, spec, replicas=2, levels=zero)
    return whole, replay_plan(whole, lowered_program(whole))
