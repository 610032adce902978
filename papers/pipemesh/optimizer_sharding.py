"""What ZeRO-1's collectives add to any order: the costs of PipeMesh beyond a problem file's.

Each stage's parameters are gathered before its first forward and its gradients reduced after its
last backward (W included), on a NIC of its rank (``theory.pipelines.sharding``), one at a time, in
the order in which they fall due.
"""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.model.actions import Ints, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.extension import tasks_of_stage
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.lowering import with_rows
from bubbleproof.theory.pipelines.programs.step_time import step_ticks
from bubbleproof.theory.pipelines.sharding import ADDERS, FORWARDS, Sharding
from bubbleproof.theory.pipelines.timing import left_shift


def with_optimizer_sharding(pipeline: Pipeline, schedule: Schedule, ticks: int) -> int | None:
    """The ticks of one step of a schedule with these collectives.

    A rank's gathers and reductions take ``ticks`` each way, a chunk its share, rounded up. None
    where stages stand on two ranks, or where other collectives or hosts are at work.
    """
    choices = pipeline.choices
    if pipeline.is_bidirectional or choices.overlaps or choices.sharding or choices.state_offload:
        return None
    sharded, whole = with_sharded_state(pipeline, schedule, -(-ticks // pipeline.num_chunks))
    return step_ticks(sharded.problem(), whole)


def with_sharded_state(
    pipeline: Pipeline, schedule: Schedule, each: int
) -> tuple[Pipeline, Schedule]:
    """The pipeline with collectives of ``each`` ticks, and its schedule.

    Precondition: no stage is on two ranks, and no F and B are one task.
    """
    sharded = pipeline.with_changes(sharding=Sharding(zero=1, gather=each, reduce=each))
    problem = sharded.problem()
    beside = _in_order(problem, _due(pipeline.problem(), schedule))
    return sharded, left_shift(problem, with_rows(schedule.program, beside))


def _due(problem: Problem, schedule: Schedule) -> dict[Kind, Ints]:
    """When each stage's collectives fall due: its first forward starts, its last backward ends."""
    start = np.zeros(problem.num_tasks, dtype=np.int64)
    start[problem.locate(schedule.program.actions)] = schedule.start
    end, stages = start + problem.duration, range(len(problem.stage_to_rank))
    first = [start[tasks_of_stage(problem, stage, *FORWARDS)].min() for stage in stages]
    last = [end[tasks_of_stage(problem, stage, *ADDERS)].max() for stage in stages]
    return {Kind.UNSHARD: np.array(first), Kind.REDUCE_GRAD: np.array(last)}


def _in_order(sharded: Problem, due: dict[Kind, Ints]) -> Program:
    """Each NIC's collectives as they fall due; of equals gathers first, then by stage."""
    stages = range(len(sharded.stage_to_rank))
    tasks = [tasks_of_stage(sharded, stage, kind) for kind in due for stage in stages]
    task = np.concatenate(tasks)
    task = task[np.argsort(np.concatenate([*due.values()]), kind="stable")]
    homes = sharded.occupancy
    nic = dict(zip(homes.task.tolist(), homes.resource.tolist(), strict=True))
    return Program.grouped(
        actions=sharded.actions.take(task), resource=np.array([nic[one] for one in task.tolist()])
    )
