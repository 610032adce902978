"""Training steps read back out of problems, so that a schedule from a file can be replayed too.

Tasks, their ranks and, for what is evicted, the memory that an EVICT adds to are read; never
durations or latencies. What is read back is the ``Pipeline`` whose tasks are those of the problem:
its split backwards, parts of W, overlaps, slices, recomputations, evictions and off-loaded stages
included.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from bubbleproof.reference_exec.plans.plan import COLLECTIVE_KINDS, COMPUTE_KINDS, require_runnable
from bubbleproof.reference_exec.plans.sharded_step import sharded
from bubbleproof.theory.model.actions import NONE, Action, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.activation_offload import ActivationOffload
from bubbleproof.theory.pipelines.links import without_messages
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.placement import BIDIRECTIONAL
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.state_offload import StateOffload
from bubbleproof.theory.pipelines.transfers import Eviction


def training_step(problem: Problem) -> Pipeline:
    """The training step whose tasks are those of ``problem``, in the problem's durations or not.

    Raises ``ValueError`` for a problem that is no training step a rank can run, naming the action
    or stage at fault.
    """
    problem = without_messages(problem)
    actions = problem.actions
    if not problem.num_tasks:
        raise ValueError("replay needs a whole training step; the problem has no tasks")
    require_runnable(actions)
    num_stages = 1 + int(max(actions.stage.max(), actions.partner_stage.max()))
    placement = _placement(problem, num_stages)
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
    num_parts = np.zeros(num_stages, dtype=np.int64)
    np.maximum.at(num_parts, actions.stage, actions.part + 1)
    step = Pipeline(
        num_ranks=problem.num_ranks,
        num_microbatches=num_microbatches,
        num_chunks=num_stages // problem.num_ranks,
        num_slices=1 + int(actions.slice[~actions.is_kind(*COLLECTIVE_KINDS)].max(initial=0)),
        placement=placement,
        split_backward=tuple(tuple(row) for row in split.tolist()),
        weight_backward=tuple(np.maximum(num_parts, 1).tolist()),
        weight_parts=tuple((1,) * count for count in num_parts.tolist()),
        overlaps=tuple(_overlap(actions[row]) for row in fused),
    )
    step = sharded(problem, _with_choices(problem, step))
    _require_same_tasks(problem, step)
    return step


def _placement(problem: Problem, num_stages: int) -> str | tuple[int, ...]:
    """The rank of each stage, or ``bidirectional`` where every stage runs on two ranks.

    Of an odd number of ranks the middle one holds its stage for both directions.
    """
    if num_stages % problem.num_ranks:
        raise ValueError(
            f"replay needs a multiple of {problem.num_ranks} stages (the ranks), got {num_stages}"
        )
    holders = problem.stage_to_rank
    homeless = [stage for stage in range(num_stages) if stage not in holders]
    if not homeless:
        return tuple(holders[stage] for stage in range(num_stages))
    middle = {num_stages // 2} if num_stages % 2 else set()
    if num_stages == problem.num_ranks > 1 and {*range(num_stages)} - {*homeless} == middle:
        return BIDIRECTIONAL
    raise ValueError(
        "replay needs each stage on one rank, or each on two in opposite directions; "
        f"stage {homeless[0]} is on neither"
    )


def _overlap(action: Action) -> tuple[tuple[int, int], tuple[int, int]]:
    assert action.partner is not None
    backward = action.partner
    return (action.stage, action.microbatch), (backward.stage, backward.microbatch)


def _with_choices(problem: Problem, step: Pipeline) -> Pipeline:
    """The step with the recomputations, evictions and off-loads of the problem.

    It is the step itself where there are none. A stage whose every microbatch is recomputed is
    named as a stage.
    """
    actions = problem.actions
    again = actions.is_kind(Kind.R)
    samples = list(
        zip(actions.stage[again].tolist(), actions.microbatch[again].tolist(), strict=True)
    )
    count = Counter(stage for stage, _ in samples)
    whole = sorted(stage for stage in count if count[stage] == step.num_microbatches)
    evictions = tuple(
        _eviction(problem, int(task)) for task in np.flatnonzero(actions.is_kind(Kind.EVICT))
    )
    updated = tuple(sorted(actions.stage[actions.is_kind(Kind.STEP)].tolist()))
    offloads = tuple(
        _offload(problem, int(task))
        for task in np.flatnonzero(actions.is_kind(Kind.OFFLOAD))
        if int(actions.stage[task]) not in updated
    )
    if not samples and not evictions and not updated and not offloads:
        return step
    rest = tuple(sample for sample in samples if sample[0] not in whole)
    recompute = Recompute(stages=tuple(whole), samples=rest) if samples else None
    if updated and (evictions or offloads):
        raise ValueError(
            "replay runs stages that hosts update or activations that move; the problem has both"
        )
    if updated:
        return step.with_changes(recompute=recompute, state_offload=StateOffload(stages=updated))
    return step.with_changes(recompute=recompute, evictions=evictions, offloads=offloads)


def _offload(problem: Problem, task: int) -> ActivationOffload:
    """The off-load of one activation; its ticks both ways are those of its OFFLOAD."""
    ticks = int(problem.duration[task])
    return ActivationOffload(
        stage=int(problem.actions.stage[task]),
        microbatch=int(problem.actions.microbatch[task]),
        offload=ticks,
        reload=ticks,
    )


def _eviction(problem: Problem, task: int) -> Eviction:
    """The eviction of one EVICT: from its stage's rank to the rank whose memory it adds to."""
    actions, events = problem.actions, problem.events
    stage, microbatch = int(actions.stage[task]), int(actions.microbatch[task])
    arrives = (events.task == task) & ~events.at_end & (events.delta > 0)
    targets = np.unique(events.store[arrives])
    if len(targets) != 1 or targets[0] >= problem.num_ranks:
        raise ValueError(
            f"replay needs an EVICT to add to the memory of one rank; {problem.label(task)} adds "
            f"to {len(targets)}"
        )
    source = problem.stage_to_rank.get(stage, NONE)
    return Eviction(
        stage=stage,
        microbatch=microbatch,
        source=source,
        target=int(targets[0]),
        duration=int(problem.duration[task]),
    )


def _require_same_tasks(problem: Problem, pipeline: Pipeline) -> None:
    step = pipeline.problem()
    missing = problem.locate(step.actions) == NONE
    located = step.locate(problem.actions)
    if pipeline.choices.sharding is None:  # collectives then belong to no step
        located[problem.actions.is_kind(*COLLECTIVE_KINDS)] = 0
    if missing.any():
        raise ValueError(
            "replay needs a whole training step; "
            f"task {step.label(int(missing.argmax()))} is missing"
        )
    if (located == NONE).any():
        label = problem.label(int((located == NONE).argmax()))
        raise ValueError(f"replay runs training steps; task {label} belongs to none")
    computes = problem.actions.is_kind(*COMPUTE_KINDS)
    elsewhere = computes & (problem.rank_of_task != step.rank_of_task[located])
    if elsewhere.any():
        task = int(elsewhere.argmax())
        raise ValueError(
            f"replay needs {problem.label(task)} on rank {step.rank_of_task[located[task]]}, "
            f"where its direction runs; it is on rank {problem.rank_of_task[task]}"
        )
