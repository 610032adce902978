"""Predicted bytes: the memory model of ``theory`` in the reference model's own bytes.

The rules are theory's (acquired at F, released at B or W, dropped and made again around R, counted
on both ends of an EVICT or LOAD); only the sizes come from here, from shapes alone
(``footprint``). Slices of one sample differ in size, so events are taken slice by slice. Where W is
cut, theory lets go of everything after its last part; here each part releases its own GEMMs'
operands at its end, so what is predicted never exceeds theory's model in bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bubbleproof.reference_exec.models.footprint import (
    Footprint,
    footprint,
    input_bytes,
    of_size,
    require_stages,
    weight_bytes,
)
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.replay_plan import (
    COLLECTIVE_KINDS,
    HOST_KINDS,
    TRANSFER_KINDS,
)
from bubbleproof.theory.families.forward import forwards_alone
from bubbleproof.theory.model.actions import NONE, Bools, Ints, Kind
from bubbleproof.theory.model.problem import MemoryEvents, Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.extension import with_changes
from bubbleproof.theory.pipelines.overlaps import fuse
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift


def in_one_tick(pipeline: Pipeline) -> Pipeline:
    """The pipeline with one tick for every computation, each part of a W included."""
    recompute = pipeline.choices.recompute
    return pipeline.with_changes(
        forward=1,
        backward=1,
        input_backward=1,
        weight_backward=tuple(pipeline.num_parts.tolist()),
        weight_parts=tuple((1,) * len(row) for row in pipeline.part_ticks),
        recompute=None if recompute is None else replace(recompute, duration=None),
        bandwidth=None,
        links=(),
    )


def in_bytes(pipeline: Pipeline, spec: ModelSpec, slice_index: int = 0) -> Pipeline:
    """The pipeline with the bytes of one slice on each stage as its memory, from shapes alone.

    Capacities and the workspace of GEMMs are dropped: they were in other units, and replays do not
    count what an action holds for itself, as a forward does where nothing is trained. What stays of
    a recomputed activation counts as nothing here (``_of_slice``).
    """
    stages, slices = range(pipeline.num_stages), pipeline.num_slices
    require_stages(spec, pipeline.num_stages)
    held = [
        footprint(spec, stage, pipeline.num_stages, slice_index=slice_index, num_slices=slices)
        for stage in stages
    ]
    keeps = not forwards_alone(pipeline)
    recompute, offload = pipeline.choices.recompute, pipeline.choices.state_offload
    if recompute is not None:
        recompute = replace(recompute, kept=0)
    if offload is not None:
        weight = _common_weight_bytes(spec, offload.stages)
        offload = replace(offload, weight=weight, gradient=weight, state=weight)
    return pipeline.with_changes(
        activation=tuple(keeps * f.activation_bytes for f in held),
        released_at_input=tuple(keeps * f.released_at_input_bytes for f in held),
        weight_workspace=(),
        static=0,
        capacity=None,
        memory_unit="byte",
        recompute=recompute,
        state_offload=offload,
    )


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
    """The problem of the pipeline with every memory event in bytes.

    Microbatches of a user's model may differ in size, as slices do.
    """
    sizes = [of_size(spec, sample) for sample in range(pipeline.num_microbatches)]
    others = [*dict.fromkeys(sizes)]
    problems = [_of_slice(pipeline, each, k) for each in others for k in range(pipeline.num_slices)]
    first = problems[0]
    if len(problems) == 1:
        return first
    is_numbered = first.actions.is_kind(*COLLECTIVE_KINDS)  # these have no slice, but a number
    part = np.where(is_numbered, 0, first.actions.slice)
    if others[1:]:
        part = np.array([others.index(size) for size in sizes])[first.actions.microbatch]
    own = [part[p.events.task] == k for k, p in enumerate(problems)]
    columns = {
        name: np.concatenate(
            [getattr(p.events, name)[mask] for p, mask in zip(problems, own, strict=True)]
        )
        for name in ("task", "at_end", "store", "delta")
    }
    return replace(first, events=MemoryEvents(**columns))


def _of_slice(pipeline: Pipeline, spec: ModelSpec, slice_index: int) -> Problem:
    """The problem with the bytes of one slice in its events."""
    problem = in_bytes(pipeline, spec, slice_index).with_changes(overlaps=()).problem()
    slices = {"slice_index": slice_index, "num_slices": pipeline.num_slices}
    stages = range(pipeline.num_stages)
    held = [footprint(spec, stage, len(stages), **slices) for stage in stages]
    prefix = np.array([f.prefix_bytes for f in held])
    problem = _less(problem, _moves(pipeline, problem), prefix)
    if pipeline.choices.recompute is not None:
        inputs = np.array([input_bytes(spec, stage, **slices) for stage in stages])
        problem = _less(problem, _drops(problem), prefix + inputs)
    if pipeline.part_ticks:
        problem = _in_parts(pipeline, problem, held)
    return fuse(problem, pipeline.overlaps) if pipeline.overlaps else problem


def _moves(pipeline: Pipeline, problem: Problem) -> Bools:
    """The events by which activations leave their rank and come back."""
    offload = pipeline.choices.state_offload
    hosted = () if offload is None else offload.stages
    moving = problem.actions.is_kind(*TRANSFER_KINDS)
    beside = problem.actions.is_kind(Kind.OFFLOAD, Kind.RELOAD)
    moving |= beside & ~np.isin(problem.actions.stage, hosted)
    found: Bools = moving[problem.events.task]
    return found


def _drops(problem: Problem) -> Bools:
    """The events by which activations are dropped, at the end of an F, and made again by an R."""
    actions, events = problem.actions, problem.events
    ends = actions.is_kind(Kind.F)[events.task] & events.at_end
    found: Bools = ends | actions.is_kind(Kind.R)[events.task]
    return found


def _less(problem: Problem, rows: Bools, stays: Ints) -> Problem:
    """The problem with so many bytes of a stage fewer in some events."""
    events = problem.events
    fewer = np.sign(events.delta) * stays[problem.actions.stage[events.task]]
    delta = np.where(rows, events.delta - fewer, events.delta)
    return replace(problem, events=replace(events, delta=delta))


def _in_parts(pipeline: Pipeline, problem: Problem, held: Sequence[Footprint]) -> Problem:
    """The problem in which each part of a W lets go of its own operands."""
    actions, events = problem.actions, problem.events
    freed = np.zeros(problem.num_tasks, dtype=np.int64)
    for stage, row in enumerate(pipeline.part_ticks):
        for part, size in enumerate(held[stage].part_bytes(len(row)) if row else ()):
            freed[(actions.stage == stage) & (actions.part == part)] = size
    kept, task = actions.part[events.task] == NONE, np.flatnonzero(freed)
    rest = replace(problem, events=replace(events, delta=np.where(kept, events.delta, 0)))
    return with_changes(rest, [(task, True, problem.rank_of_task[task], -freed[task])])


def runs_beside(problem: Problem) -> bool:
    """Whether the problem has tasks beside computation: transfers, the host's, collectives."""
    return bool(problem.actions.is_kind(*TRANSFER_KINDS, *HOST_KINDS, *COLLECTIVE_KINDS).any())


def in_order_alone(timed: Problem, schedule: Schedule) -> Schedule:
    """The schedule's computations left-shifted on another problem of the same tasks.

    Raises ``UntimedProgram`` for a schedule that lacks tasks or waits for itself.
    """
    return left_shift(timed, schedule.program.take(schedule.program.resource < timed.num_ranks))
