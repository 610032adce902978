"""Replay plans: everything a rank has to know, checked before the first rank starts.

``training_step`` reads the shape of the training step back out of a problem, so a schedule from a
file can be replayed too. It admits what a rank can run and says what it cannot: F, B, I, W and
OVERLAP_F_B of unsliced microbatches, each stage on one rank.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bubbleproof.reference_exec.footprint import footprint
from bubbleproof.reference_exec.spec import ModelSpec
from bubbleproof.theory.actions import (
    COMMUNICATION_KINDS,
    NONE,
    Action,
    ActionTable,
    Kind,
)
from bubbleproof.theory.memory import memory_profile
from bubbleproof.theory.pipeline import Pipeline
from bubbleproof.theory.problem import Problem
from bubbleproof.theory.schedule import Program, Schedule
from bubbleproof.theory.timing import left_shift

COMPUTE_KINDS = (Kind.F, Kind.B, Kind.I, Kind.W, Kind.OVERLAP_F_B)
RUNNABLE_KINDS = (*COMPUTE_KINDS, *COMMUNICATION_KINDS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """A lowered program with the model it trains.

    ``program`` has one order per rank; ``stage_ranks`` is the rank of each stage. Raises
    ``ValueError`` naming the first action that a rank cannot run.
    """

    spec: ModelSpec
    program: Program
    stage_ranks: tuple[int, ...]
    num_microbatches: int

    def __post_init__(self) -> None:
        require_runnable(self.program.actions)
        self.spec.require_stages(self.num_stages)

    @property
    def num_stages(self) -> int:
        return len(self.stage_ranks)

    @property
    def num_ranks(self) -> int:
        return max(self.stage_ranks) + 1

    def order(self, rank: int) -> list[Action]:
        """The actions of one rank, in order."""
        return list(self.program.actions.take(self.program.resource == rank))

    def stages_of(self, rank: int) -> list[int]:
        """The stages that a rank holds, ascending."""
        return [stage for stage, holder in enumerate(self.stage_ranks) if holder == rank]


def require_runnable(actions: ActionTable) -> None:
    """Raise ``ValueError`` naming the first action that no rank can run."""
    unknown = ~actions.is_kind(*RUNNABLE_KINDS)
    if unknown.any():
        row = int(np.argmax(unknown))
        runs = ", ".join(kind.name for kind in RUNNABLE_KINDS)
        raise ValueError(f"replay runs {runs}; got {actions.label(row)}")
    if actions.is_sliced:
        row = int(np.argmax(actions.slice > 0))
        raise ValueError(f"replay runs unsliced microbatches; got {actions.label(row)}")
    if (actions.part != NONE).any():
        row = int(np.argmax(actions.part != NONE))
        raise ValueError(f"replay runs each weight gradient whole; got {actions.label(row)}")


def training_step(problem: Problem) -> Pipeline:
    """The training step whose tasks are those of ``problem``, in the problem's durations or not.

    Only tasks and placement are read, never durations, latencies or memory. Raises ``ValueError``
    for a problem that is no training step a rank can run, naming the action or stage at fault.
    """
    actions = problem.actions
    if not problem.num_tasks:
        raise ValueError("replay needs a whole training step; the problem has no tasks")
    require_runnable(actions)
    num_stages = 1 + int(max(actions.stage.max(), actions.partner_stage.max()))
    holders = problem.stage_to_rank
    homeless = [stage for stage in range(num_stages) if stage not in holders]
    if homeless:
        raise ValueError(f"replay needs each stage on one rank; stage {homeless[0]} is not")
    if num_stages % problem.num_ranks:
        raise ValueError(
            f"replay needs a multiple of {problem.num_ranks} stages (the ranks), got {num_stages}"
        )
    num_microbatches = 1 + int(max(actions.microbatch.max(), actions.partner_microbatch.max()))
    if num_stages * num_microbatches > problem.num_tasks:
        raise ValueError(
            f"replay needs a whole training step; {num_stages} stages x {num_microbatches} "
            f"microbatches are more than {problem.num_tasks} tasks"
        )
    split = np.zeros((num_stages, num_microbatches), dtype=bool)
    inputs = actions.is_kind(Kind.I)
    split[actions.stage[inputs], actions.microbatch[inputs]] = True
    fused = np.flatnonzero(actions.is_kind(Kind.OVERLAP_F_B)).tolist()
    step = Pipeline(
        num_ranks=problem.num_ranks,
        num_microbatches=num_microbatches,
        num_chunks=num_stages // problem.num_ranks,
        placement=tuple(holders[stage] for stage in range(num_stages)),
        split_backward=tuple(tuple(row) for row in split.tolist()),
        overlaps=tuple(_overlap(actions[row]) for row in fused),
    )
    _require_same_tasks(problem, step.problem())
    return step


def _overlap(action: Action) -> tuple[tuple[int, int], tuple[int, int]]:
    assert action.partner is not None
    backward = action.partner
    return (action.stage, action.microbatch), (backward.stage, backward.microbatch)


def _require_same_tasks(problem: Problem, step: Problem) -> None:
    missing = problem.locate(step.actions) == NONE
    foreign = step.locate(problem.actions) == NONE
    if missing.any():
        raise ValueError(
            "replay needs a whole training step; "
            f"task {step.label(int(missing.argmax()))} is missing"
        )
    if foreign.any():
        label = problem.label(int(foreign.argmax()))
        raise ValueError(f"replay runs training steps; task {label} belongs to none")


def in_bytes(pipeline: Pipeline, spec: ModelSpec) -> Pipeline:
    """The pipeline with the reference model's activation bytes as its memory, from shapes alone.

    Capacities are dropped: they were in other units.
    """
    stages = range(pipeline.num_stages)
    spec.require_stages(pipeline.num_stages)
    held = [footprint(spec, stage, pipeline.num_stages) for stage in stages]
    return pipeline.with_changes(
        activation=tuple(f.activation_bytes for f in held),
        released_at_input=tuple(f.released_at_input_bytes for f in held),
        static=0,
        capacity=None,
        memory_unit="byte",
    )


def predicted_peak_bytes(pipeline: Pipeline, compute: Program, spec: ModelSpec) -> tuple[int, ...]:
    """The peak of live activation bytes of each rank, by the memory model of ``theory``.

    ``compute`` is the program without SEND and RECV. A peak follows from each rank's order alone,
    so every action takes one tick here (two actions of no duration would share an instant).
    """
    ticks = {"forward": 1, "backward": 1, "input_backward": 1, "weight_backward": 1}
    problem = in_bytes(pipeline, spec).with_changes(**ticks).problem()
    schedule: Schedule = left_shift(problem, compute)
    profile = memory_profile(problem, problem.locate(compute.actions), schedule.start)
    return tuple(profile.peaks(problem).tolist())
