"""Replicated pipelines: a pipeline as each replica runs it, with its collectives and their bytes.

A pipeline that is sharded keeps its collectives. Another gets those that the replicas and their
ZeRO levels need (``theory.pipelines.replication``), as tasks of 0 ticks, and its schedule a row for
each; the schedule has been verified as it came, and what is run is verified with them. Where
nothing but computation is in the problem, orders alone decide: every computation then takes one
tick, so that it is told apart from its collectives also where it takes none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.data_parallel import DataParallel, in_replicas, layouts_of
from bubbleproof.reference_exec.plans.prediction import (
    in_one_tick,
    in_order_alone,
    problem_in_bytes,
    runs_beside,
)
from bubbleproof.reference_exec.plans.transfer_rows import require_ticks
from bubbleproof.reference_exec.plans.zero_levels import ZeroLevels
from bubbleproof.theory.model.memory import memory_profile
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.extension import with_changes
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.messages_in_programs import (
    schedule_without_messages,
    without_messages,
)
from bubbleproof.theory.pipelines.replication import (
    placed_collectives,
    schedule_with,
    with_placed,
)
from bubbleproof.theory.pipelines.timing import UntimedProgram


@dataclass(frozen=True, kw_only=True, eq=False)
class ReplicatedSchedule:
    """A pipeline, its problem and a schedule of it, with the collectives of its replicas.

    ``spec`` is the model that they train.

    Messages are left out of both: they are the lowered program's.
    ``parallel`` is None where there is one whole replica, and no collective.
    """

    spec: ModelSpec
    problem: Problem
    pipeline: Pipeline
    schedule: Schedule
    parallel: DataParallel | None = None

    @cached_property
    def sized(self) -> Problem:
        """The problem with its memory in bytes, that of the replicas' collectives included."""
        sized = problem_in_bytes(self.pipeline, self.spec)
        task = self.problem.locate(sized.actions)[sized.events.task]
        events = replace(sized.events, task=task)
        problem = replace(self.problem, stores=sized.stores, events=events)
        if self.parallel is None:
            return problem
        return with_changes(problem, self.parallel.changes(problem))

    def peak_bytes(self) -> tuple[int, ...]:
        """The peak of live bytes of each rank, then of each host, by the model of ``theory``.

        Without transfers a peak follows from each rank's order alone, so every action takes one
        tick here (two actions of no duration would share an instant). Transfers, collectives and
        the host's tasks run beside computations, and when they do is told by the schedule's own
        times on its own problem. Hosts are there where something is off-loaded. What comes and goes
        again within one instant (two transfers of no duration) the model does not see
        (``transfer_rows``).
        """
        timed, schedule = self.sized, self.schedule
        if not runs_beside(self.problem):
            timed = problem_in_bytes(in_one_tick(self.pipeline), self.spec)
            schedule = in_order_alone(timed, schedule)
        profile = memory_profile(timed, timed.locate(schedule.program.actions), schedule.start)
        return tuple(profile.peaks(timed).tolist())


def replicated(
    pipeline: Pipeline,
    schedule: Schedule,
    spec: ModelSpec,
    *,
    replicas: int = 1,
    levels: ZeroLevels | None = None,
) -> ReplicatedSchedule:
    """The pipeline on so many replicas.

    Raises ``ValueError`` for no replica, for levels that its collectives are too few for, and for
    levels of stages that a host updates.
    """
    problem = pipeline.problem()
    schedule = schedule_without_messages(problem, schedule)
    problem = without_messages(problem)
    if pipeline.choices.sharding is not None:
        pipeline, parallel = in_replicas(pipeline, spec, replicas, levels)
        return ReplicatedSchedule(
            spec=spec, problem=problem, pipeline=pipeline, schedule=schedule, parallel=parallel
        )
    if replicas == 1 and levels is None:
        return ReplicatedSchedule(spec=spec, problem=problem, pipeline=pipeline, schedule=schedule)
    _require_levels_on_ranks(pipeline, levels)
    timed, schedule = _timed(problem, pipeline, schedule)
    placed = placed_collectives(timed, schedule, 0 if levels is None else levels.highest)
    parallel = DataParallel.serving(placed, replicas, levels)
    layouts = layouts_of(spec, pipeline.num_stages, levels, replicas)
    return ReplicatedSchedule(
        spec=spec,
        problem=with_placed(timed, placed),
        pipeline=pipeline,
        schedule=schedule_with(timed, schedule, placed),
        parallel=replace(parallel, placed=tuple(placed), layouts=layouts),
    )


def _require_levels_on_ranks(pipeline: Pipeline, levels: ZeroLevels | None) -> None:
    offload = pipeline.choices.state_offload
    if levels is not None and offload is not None:
        raise ValueError(
            f"the host updates stages {offload.stages} with whole gradients, which no shards "
            f"hold; got ZeRO levels {levels}; replicas without levels give each host the sum"
        )


def _timed(problem: Problem, pipeline: Pipeline, schedule: Schedule) -> tuple[Problem, Schedule]:
    """The problem and its schedule in times in which no two computations share an instant."""
    if not runs_beside(problem):
        alone = in_one_tick(pipeline).problem()
        try:
            return alone, in_order_alone(alone, schedule)
        except UntimedProgram:  # not verified, and run all the same
            return problem, schedule
    require_ticks(problem)
    return problem, schedule
