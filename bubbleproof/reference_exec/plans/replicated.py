"""Replicated steps: a training step as each replica runs it, with its collectives and their bytes.

A problem with collectives keeps them (``own_collectives``). One without gets those that the
replicas and their ZeRO levels need (``theory.pipelines.replication``), as tasks of 0 ticks, and its
schedule a row for each; the schedule has been verified as it came, and what is run is verified with
them. Where nothing but computation is in the problem, orders alone decide: every computation then
takes one tick, so that it is told apart from its collectives also where it takes none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.data_parallel import DataParallel, in_replicas
from bubbleproof.reference_exec.plans.instants import require_ticks
from bubbleproof.reference_exec.plans.own_collectives import (
    level_of,
    own_collectives,
    require_numbers,
)
from bubbleproof.reference_exec.plans.plan import COLLECTIVE_KINDS
from bubbleproof.reference_exec.plans.prediction import in_one_tick, in_order_alone, runs_beside
from bubbleproof.reference_exec.plans.zero_levels import ZeroLevels
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.replication import (
    Placed,
    placed_collectives,
    schedule_with,
    with_placed,
)
from bubbleproof.theory.pipelines.timing import UntimedProgram


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replicated:
    """A problem with its collectives, the step it poses, and a schedule of it.

    ``parallel`` is None where there is one whole replica, and no collective.
    """

    problem: Problem
    step: Pipeline
    schedule: Schedule
    parallel: DataParallel | None = None

    @property
    def asked(self) -> Problem:
        """The problem that the step poses by itself, with the collectives put into it, if any."""
        is_placed = self.parallel is not None and self.parallel.placed
        return self.problem if is_placed else self.step.problem()


def replicated(
    problem: Problem,
    step: Pipeline,
    schedule: Schedule,
    spec: ModelSpec,
    *,
    replicas: int = 1,
    levels: ZeroLevels | None = None,
) -> Replicated:
    """The step of a problem (``training_step``) on so many replicas.

    Raises ``ValueError`` for no replica, for levels that the problem's collectives are too few for,
    and for levels of stages that a host updates.
    """
    if step.choices.sharding is not None:
        sized, parallel = in_replicas(step, spec, replicas, levels)
        return Replicated(problem=problem, step=sized, schedule=schedule, parallel=parallel)
    if problem.actions.is_kind(*COLLECTIVE_KINDS).any():
        own = own_collectives(problem, schedule)
        if step.is_bidirectional or spec.tied:
            require_numbers(own)
        found = Replicated(problem=problem, step=step, schedule=schedule)
        return replace(found, parallel=_served(own, problem, step, replicas, levels))
    if replicas == 1 and levels is None:
        return Replicated(problem=problem, step=step, schedule=schedule)
    _require_levels_on_ranks(step, levels)
    timed, schedule = _timed(problem, step, schedule)
    placed = placed_collectives(timed, schedule, 0 if levels is None else levels.highest)
    parallel = DataParallel.serving(placed, replicas, levels)
    return Replicated(
        problem=with_placed(timed, placed),
        step=step,
        schedule=schedule_with(timed, schedule, placed),
        parallel=replace(parallel, placed=tuple(placed)),
    )


def _served(
    placed: list[Placed],
    problem: Problem,
    step: Pipeline,
    replicas: int,
    levels: ZeroLevels | None,
) -> DataParallel:
    """A problem's own collectives at the levels that they are enough for."""
    level = level_of(placed)
    if levels is None and level:
        levels = ZeroLevels(default=level)
    if levels is not None and levels.highest > level:
        raise ValueError(
            f"ZeRO level {levels.highest} needs more collectives than the schedule has; they are "
            f"enough for {f'level {level}' if level else 'whole replicas'}"
        )
    _require_levels_on_ranks(step, levels)
    require_ticks(problem)
    return replace(DataParallel.serving(placed, replicas, levels), placed=tuple(placed))


def _require_levels_on_ranks(step: Pipeline, levels: ZeroLevels | None) -> None:
    offload = step.choices.state_offload
    if levels is not None and offload is not None:
        raise ValueError(
            f"the host updates stages {offload.stages} with whole gradients, which no shards "
            f"hold; got ZeRO levels {levels}; replicas without levels give each host the sum"
        )


def _timed(problem: Problem, step: Pipeline, schedule: Schedule) -> tuple[Problem, Schedule]:
    """The problem and its schedule in times in which no two computations share an instant."""
    if not runs_beside(problem):
        alone = in_one_tick(step).problem()
        try:
            return alone, in_order_alone(alone, schedule)
        except UntimedProgram:  # not verified, and run all the same
            return problem, schedule
    require_ticks(problem)
    return problem, schedule
