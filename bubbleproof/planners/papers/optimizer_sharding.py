"""What ZeRO-1's collectives add to any order: the costs of PipeMesh beyond a problem file's.

Each stage's parameters are gathered before its first forward and its gradients reduced after its
last backward (W included), on a NIC of its rank, one at a time, in the order in which they fall
due. Gradients lie there whole, so no computation waits for a reduction (of the shards of ZeRO-2,
``theory.pipelines.sharding``, some do).
"""

from __future__ import annotations

import numpy as np

from bubbleproof.planners.papers.paper_choice import step_ticks
from bubbleproof.theory.model.actions import NONE, ActionTable, Ints, Kind
from bubbleproof.theory.model.problem import Problem, Resource
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.extension import extended, tasks_of_stage
from bubbleproof.theory.pipelines.lowering import with_rows
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift

COMPUTED = (Kind.B, Kind.I, Kind.W)


def with_optimizer_sharding(pipeline: Pipeline, schedule: Schedule, ticks: int) -> int | None:
    """The ticks of one step of a schedule with these collectives.

    A rank's gathers and reductions take ``ticks`` each way, a chunk its share, rounded up. None
    where stages stand on two ranks, or where other collectives or hosts are at work.
    """
    choices = pipeline.choices
    if pipeline.is_bidirectional or choices.overlaps or choices.sharding or choices.state_offload:
        return None
    problem, each = pipeline.problem(), -(-ticks // pipeline.num_chunks)
    sharded = _with_nics(problem, pipeline.stage_ranks, each)
    due = _due(problem, schedule, pipeline.num_stages)
    beside = _in_order(problem, pipeline.stage_ranks, due)
    return step_ticks(sharded, left_shift(sharded, with_rows(schedule.program, beside)))


def _actions(num_stages: int) -> ActionTable:
    """The gathers of all stages, then their reductions."""
    stage = np.arange(num_stages)
    kinds = np.repeat([int(Kind.UNSHARD), int(Kind.REDUCE_GRAD)], num_stages)
    return ActionTable.of(kinds, np.tile(stage, 2), NONE)


def _with_nics(problem: Problem, ranks: tuple[int, ...], each: int) -> Problem:
    """The problem with the collectives; nothing but its own tasks waits for them."""
    stages = len(ranks)
    task = problem.num_tasks + np.arange(2 * stages)
    waits = []
    for stage in range(stages):
        forward = tasks_of_stage(problem, stage, Kind.F)
        backward = tasks_of_stage(problem, stage, *COMPUTED)
        waits.append((np.full_like(forward, task[stage]), forward))
        waits.append((backward, np.full_like(backward, task[stages + stage])))
    return extended(
        problem,
        actions=_actions(stages),
        duration=np.full(2 * stages, each),
        homes=[(task, len(problem.resources) + np.tile(ranks, 2))],
        waits=waits,
        resources=[Resource(name=f"NIC of rank {rank}") for rank in range(problem.num_ranks)],
    )


def _due(problem: Problem, schedule: Schedule, stages: int) -> Ints:
    """When each collective falls due: a stage's first forward starts, its last backward ends."""
    start = np.zeros(problem.num_tasks, dtype=np.int64)
    start[problem.locate(schedule.program.actions)] = schedule.start
    end = start + problem.duration
    first = [start[tasks_of_stage(problem, stage, Kind.F)].min() for stage in range(stages)]
    last = [end[tasks_of_stage(problem, stage, *COMPUTED)].max() for stage in range(stages)]
    return np.array([*first, *last], dtype=np.int64)


def _in_order(problem: Problem, ranks: tuple[int, ...], due: Ints) -> Program:
    """Each NIC's collectives as they fall due; of equals gathers first, then by stage."""
    order = np.argsort(due, kind="stable")
    home = len(problem.resources) + np.tile(ranks, 2)
    return Program.grouped(actions=_actions(len(ranks)).take(order), resource=home[order])
