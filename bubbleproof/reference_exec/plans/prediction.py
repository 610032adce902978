"""Predicted bytes: the memory model of ``theory`` in the reference model's own bytes.

The rules are theory's (acquired at F, released at B or W, dropped and made again around R, counted
on both ends of an EVICT or LOAD); only the sizes come from here, from shapes alone
(``footprint``). Slices of one sample differ in size, so events are taken slice by slice. Where W is
cut, theory lets go of everything after its last part; here each part releases its own GEMMs'
operands at its end, so what is predicted never exceeds theory's model in bytes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bubbleproof.reference_exec.models.footprint import (
    footprint,
    input_bytes,
    require_stages,
    weight_bytes,
)
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.plan import COLLECTIVE_KINDS, HOST_KINDS, TRANSFER_KINDS
from bubbleproof.theory.model.actions import NONE
from bubbleproof.theory.model.memory import memory_profile
from bubbleproof.theory.model.problem import MemoryEvents, Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.extension import with_changes
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.timing import left_shift

if TYPE_CHECKING:
    from bubbleproof.reference_exec.plans.data_parallel import DataParallel  # loads torch


def in_one_tick(pipeline: Pipeline) -> Pipeline:
    """The pipeline with one tick for every action, each part of a W included."""
    return pipeline.with_changes(
        forward=1,
        backward=1,
        input_backward=1,
        weight_backward=tuple(pipeline.num_parts.tolist()),
        weight_parts=tuple((1,) * len(row) for row in pipeline.weight_parts),
    )


def in_bytes(pipeline: Pipeline, spec: ModelSpec, slice_index: int = 0) -> Pipeline:
    """The pipeline with the bytes of one slice on each stage as its memory, from shapes alone.

    Capacities and the workspace of GEMMs are dropped: they were in other units, and replays do not
    count what an action holds for itself.
    """
    stages, slices = range(pipeline.num_stages), pipeline.num_slices
    require_stages(spec, pipeline.num_stages)
    held = [
        footprint(spec, stage, pipeline.num_stages, slice_index=slice_index, num_slices=slices)
        for stage in stages
    ]
    sized = pipeline.with_changes(
        activation=tuple(f.activation_bytes for f in held),
        released_at_input=tuple(f.released_at_input_bytes for f in held),
        weight_workspace=(),
        static=0,
        capacity=None,
        memory_unit="byte",
    )
    if (recompute := sized.choices.recompute) is not None:
        kept = _common_input_bytes(spec, recompute)
        sized = sized.with_changes(recompute=replace(recompute, kept=kept))
    if (offload := sized.choices.state_offload) is not None:
        weight = _common_weight_bytes(spec, offload.stages)
        offload = replace(offload, weight=weight, gradient=weight, state=weight)
        sized = sized.with_changes(state_offload=offload)
    return sized


def _common_input_bytes(spec: ModelSpec, recompute: Recompute) -> int:
    """The bytes of the input of each recomputed stage."""
    stages = sorted({*recompute.stages, *(stage for stage, _ in recompute.samples)})
    sizes = [input_bytes(spec, stage) for stage in stages]
    if len(set(sizes)) > 1:
        raise ValueError(
            "replay recomputes stages with inputs of one size; inputs of stages "
            f"{tuple(stages)} are {sizes} bytes"
        )
    return sizes[0] if sizes else 0


def _common_weight_bytes(spec: ModelSpec, stages: tuple[int, ...]) -> int:
    """The bytes of the weights of each of the stages; their master weights are as many."""
    sizes = {weight_bytes(spec, stage) for stage in stages}
    if len(sizes) > 1:
        raise ValueError(
            f"replay off-loads stages of one size; layers of stages {stages} are "
            f"{[spec.layers_of(stage) for stage in stages]}, their weights {sorted(sizes)} bytes"
        )
    return sizes.pop()


def problem_in_bytes(pipeline: Pipeline, spec: ModelSpec) -> Problem:
    """The problem of the pipeline with every memory event in bytes."""
    problems = [_of_slice(pipeline, spec, k) for k in range(pipeline.num_slices)]
    first = problems[0]
    if len(problems) == 1:
        return first
    own = [p.actions.slice[p.events.task] == k for k, p in enumerate(problems)]
    columns = {
        name: np.concatenate(
            [getattr(p.events, name)[mask] for p, mask in zip(problems, own, strict=True)]
        )
        for name in ("task", "at_end", "store", "delta")
    }
    return replace(first, events=MemoryEvents(**columns))


def _of_slice(pipeline: Pipeline, spec: ModelSpec, slice_index: int) -> Problem:
    """The problem with the bytes of one slice in its events, those of parts of W part by part."""
    problem = in_bytes(pipeline, spec, slice_index).problem()
    if not pipeline.weight_parts:
        return problem
    actions, events = problem.actions, problem.events
    freed = np.zeros(problem.num_tasks, dtype=np.int64)
    for stage, row in enumerate(pipeline.weight_parts):
        held = footprint(
            spec,
            stage,
            pipeline.num_stages,
            slice_index=slice_index,
            num_slices=pipeline.num_slices,
        )
        for part, size in enumerate(held.part_bytes(len(row)) if row else ()):
            freed[(actions.stage == stage) & (actions.part == part)] = size
    kept, task = actions.part[events.task] == NONE, np.flatnonzero(freed)
    return replace(
        problem,
        events=MemoryEvents(
            task=np.concatenate([events.task[kept], task]),
            at_end=np.concatenate([events.at_end[kept], np.ones(len(task), dtype=bool)]),
            store=np.concatenate([events.store[kept], problem.rank_of_task[task]]),
            delta=np.concatenate([events.delta[kept], -freed[task]]),
        ),
    )


def runs_beside(problem: Problem) -> bool:
    """Whether the problem has tasks beside computation: transfers, the host's, collectives."""
    return bool(problem.actions.is_kind(*TRANSFER_KINDS, *HOST_KINDS, *COLLECTIVE_KINDS).any())


def with_bytes(
    problem: Problem,
    pipeline: Pipeline,
    spec: ModelSpec,
    parallel: DataParallel | None = None,
) -> Problem:
    """The problem, its own durations kept, with the memory of its pipeline in bytes.

    ``parallel`` has the bytes of collectives that are none of the pipeline's own.
    """
    sized = problem_in_bytes(pipeline, spec)
    task = problem.locate(sized.actions)[sized.events.task]
    problem = replace(problem, stores=sized.stores, events=replace(sized.events, task=task))
    if parallel is None:
        return problem
    return with_changes(problem, parallel.changes(problem, spec, pipeline.num_stages))


def in_order_alone(timed: Problem, schedule: Schedule) -> Schedule:
    """The schedule's computations left-shifted on another problem of the same tasks.

    Raises ``UntimedProgram`` for a schedule that lacks tasks or waits for itself.
    """
    on_ranks = schedule.program.resource < timed.num_ranks
    compute = Program(
        actions=schedule.program.actions.take(on_ranks),
        resource=schedule.program.resource[on_ranks],
    )
    return left_shift(timed, compute)


def predicted_peak_bytes(
    pipeline: Pipeline,
    problem: Problem,
    schedule: Schedule,
    spec: ModelSpec,
    parallel: DataParallel | None = None,
) -> tuple[int, ...]:
    """The peak of live bytes of each rank, then of each rank's host, by the model of ``theory``.

    Without transfers a peak follows from each rank's order alone, so every action takes one tick
    here (two actions of no duration would share an instant). Transfers, collectives and the host's
    tasks run beside computations, and when they do is told by the schedule's own times on its own
    problem. Hosts are there where something is off-loaded. What comes and goes again within one
    instant (two transfers of no duration) the model does not see (``instants``).
    """
    if runs_beside(problem):
        timed = with_bytes(problem, pipeline, spec, parallel)
    else:
        timed = problem_in_bytes(in_one_tick(pipeline), spec)
        schedule = in_order_alone(timed, schedule)
    profile = memory_profile(timed, timed.locate(schedule.program.actions), schedule.start)
    return tuple(profile.peaks(timed).tolist())
