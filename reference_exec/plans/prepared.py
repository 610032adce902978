"""A schedule made ready to run: verified, lowered to a plan, its bytes predicted.

What violates a rule is refused (``NotVerified``) or, where unsafe, kept and named.

What a replay cannot do with somebody's own model on one schedule or another: refused by name.

Frozen parameters have no gradient and are never stepped. A host that updates a stage moves all of
its weights and gradients together, and shards of a stage are of all its parameters; neither is
told which of them to leave out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bubbleproof.reference_exec.models.footprint import facts_of, of_size, require_stages, typed
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.reference import require_steps
from bubbleproof.reference_exec.plans.predicted_live_bytes import (
    LiveBytes,
    host_stores,
    predicted_host_bytes,
    predicted_live_bytes,
)
from bubbleproof.reference_exec.plans.prediction import runs_beside
from bubbleproof.reference_exec.plans.replay_limits import require_size
from bubbleproof.reference_exec.plans.replay_plan import HOST_KINDS, TRANSFER_KINDS, ReplayPlan
from bubbleproof.reference_exec.plans.replicated import ReplicatedSchedule, replicated
from bubbleproof.reference_exec.plans.run_options import ReplayOptions
from bubbleproof.reference_exec.plans.state_bytes import (
    BirthBytes,
    States,
    predicted_births,
    predicted_states,
)
from bubbleproof.reference_exec.plans.stepping import with_steps, without_steps, without_training
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.reference_exec.plans.transfer_rows import (
    by_moments,
    moments,
    require_stays,
    require_ticks,
    with_transfers,
)
from bubbleproof.reference_exec.plans.verification import (
    first_violations,
    require_ok,
    verify_collectives,
    verify_plan,
    verify_program,
)
from bubbleproof.theory.families.forward import forwards_alone
from bubbleproof.theory.model.actions import Action
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.theory.pipelines.programs.messages_in_programs import without_messages
from bubbleproof.theory.pipelines.timing import UntimedProgram
from bubbleproof.verify.check import check
from bubbleproof.verify.communication.semantics import USUAL, Semantics
from bubbleproof.verify.verdict import Verdict, join


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreparedReplay:
    """A schedule ready to run.

    ``predicted`` has the peak bytes of each rank, ``predicted_hosts`` those of its host, if any
    rank's has a part in the schedule (``ReplicatedSchedule.peak_bytes``);
    ``semantics`` is what the communication was verified under; ``broken`` the rules that
    verification found broken, with the first violation of each, empty unless ``options.unsafe``;
    ``live_bytes`` those of each action, ``host_bytes`` those of its rank's host then
    (``predicted_live_bytes``), ``states`` the model state as passes begin and end
    (``predicted_states``), ``births`` what ranks and hosts begin with (``predicted_births``).
    """

    plan: ReplayPlan
    options: ReplayOptions
    predicted: tuple[int, ...] = ()
    predicted_hosts: tuple[int, ...] = ()
    semantics: Semantics
    broken: Mapping[str, str]
    live_bytes: LiveBytes = ()
    host_bytes: tuple[tuple[int, ...], ...] = ()
    states: tuple[States, ...] = ()
    births: BirthBytes = ((), ())


def prepared(
    pipeline: Pipeline,
    schedule: Schedule,
    spec: ModelSpec,
    options: ReplayOptions,
    *,
    program: Program | None = None,
    semantics: Semantics,
) -> PreparedReplay:
    """Verify a schedule and its program under ``semantics``; the plan, and what it promises.

    Raises ``NotVerified`` unless ``options.unsafe``, and ``ValueError`` for what ranks cannot run.
    """
    require_whole_step(pipeline, options)
    problem, training, unsafe = pipeline.problem(), options.training, options.unsafe
    require_size(problem, options.num_passes, options.data_parallel)
    spec = typed(spec.on(pipeline.num_stages))
    require_stages(spec, pipeline.num_stages)
    spec.require_slices(pipeline.num_slices)
    require_steps(spec, options.num_passes)
    verdicts: list[Verdict] = []
    _judge(verdicts, [check(problem, schedule)], unsafe=unsafe)
    if not unsafe and runs_beside(problem):
        require_ticks(problem)
        require_stays(problem, schedule)
    whole = replicated(
        pipeline, schedule, spec, replicas=options.data_parallel, levels=options.zero
    )
    if whole.parallel is not None and whole.parallel.placed:
        verdicts.append(check(whole.problem, whole.schedule))
    lowered = lowered_program(whole) if program is None else program
    bare = lowered if training is None else without_steps(lowered)
    of_program = verify_program(without_messages(problem), whole, bare, semantics)
    _judge(verdicts, [of_program], unsafe=unsafe)
    plan = replay_plan(whole, lowered, training)
    require_unfrozen(plan)
    require_clippable(plan)
    require_accumulable(plan)
    require_same_sizes(plan)
    plan = replace(plan, counts_bytes=options.count_bytes, counts_work=options.count_work)
    require_uncompiled(plan)
    of_plan = verify_plan(whole.problem, plan, semantics)
    of_collectives = verify_collectives(whole.problem, whole.schedule, without_training(plan))
    _judge(verdicts, [of_plan, of_collectives], unsafe=unsafe)
    ready = PreparedReplay(
        plan=plan,
        options=options,
        semantics=semantics,
        broken=first_violations(join(verdicts)),
        states=predicted_states(plan),
    )
    return _promising_bytes(ready, whole) if options.count_bytes else ready


def require_whole_step(pipeline: Pipeline, options: ReplayOptions) -> None:
    """Raise ``ValueError`` unless all stages are trained, or none in a replay of no training."""
    left_out = sorted(pipeline.choices.omitting)
    if not left_out:
        return
    if not forwards_alone(pipeline):
        raise ValueError(
            f"a replay trains every stage or none; leave out {left_out[0]} to replay the order"
        )
    if options.training is not None or options.data_parallel > 1 or options.zero is not None:
        raise ValueError(
            "this schedule runs forwards alone and trains nothing: leave --steps, --data-parallel "
            "and --zero out"
        )
    if pipeline.num_slices > 1:
        raise ValueError("a replay of forwards alone takes whole samples: leave slices out")


def _judge(verdicts: list[Verdict], more: list[Verdict], *, unsafe: bool) -> None:
    """Add to the verdicts. Raises ``NotVerified`` where one does not hold, unless ``unsafe``."""
    verdicts += more
    if not unsafe:
        require_ok(join(verdicts))


def _promising_bytes(ready: PreparedReplay, whole: ReplicatedSchedule) -> PreparedReplay:
    """With what is predicted of live bytes."""
    plan, peaks = ready.plan, _predicted(whole)
    orders = [plan.order(rank) for rank in range(plan.num_ranks)]
    parallel, hosts = whole.parallel, host_stores(whole.sized)
    rooms = {} if parallel is None else parallel.rooms(orders)
    live_bytes = predicted_live_bytes(whole.sized, orders, rooms)
    ranks = range(plan.num_ranks if peaks and hosts else 0)
    return replace(
        ready,
        predicted=peaks[: plan.num_ranks],
        predicted_hosts=tuple(peaks[hosts[r]] if r in hosts else 0 for r in ranks),
        live_bytes=live_bytes,
        host_bytes=predicted_host_bytes(whole.sized, orders) if live_bytes else (),
        births=predicted_births(plan),
    )


def _predicted(whole: ReplicatedSchedule) -> tuple[int, ...]:
    """The predicted peaks of stores; none of a schedule that lacks tasks or waits for itself."""
    try:
        return whole.peak_bytes()
    except UntimedProgram:
        return ()


def lowered_program(whole: ReplicatedSchedule) -> Program:
    """The program of ``lowering.lower``, in the order of moments where transfers join it."""
    lowered = lower(whole.problem, whole.schedule)
    if not runs_beside(whole.problem):
        return lowered
    return by_moments(lowered, moments(whole.sized, whole.schedule))


def replay_plan(
    whole: ReplicatedSchedule, lowered: Program, training: Training | None = None
) -> ReplayPlan:
    """The plan of a lowered program, its schedule's transfers put in; nothing is verified here.

    STEPs and exchanges of a training are put in too, unless the program has its own (``stepping``).
    """
    pipeline, problem, parallel = whole.pipeline, whole.problem, whole.parallel
    choices = pipeline.choices
    ends: dict[Action, tuple[int, ...]] = {
        Action(stage=e.stage, kind=kind, microbatch=e.microbatch, slice=e.slice): (
            e.source,
            e.target,
        )
        for e in choices.evictions
        for kind in TRANSFER_KINDS
    }
    for task in np.flatnonzero(problem.actions.is_kind(*HOST_KINDS)).tolist():
        action = problem.actions[task]
        ends[action] = (int(pipeline.rank_grid[action.stage, action.microbatch]),)
    if parallel is not None:
        ends |= {action: (rank,) for action, rank in parallel.homes.items()}
    if ends:
        moment = moments(whole.sized, whole.schedule)
        lowered = with_transfers(whole.sized, whole.schedule, lowered, moment, ends)
    plan = ReplayPlan(
        spec=whole.spec,
        program=lowered,
        stage_ranks=pipeline.stage_ranks,
        num_microbatches=pipeline.num_microbatches,
        num_slices=pipeline.num_slices,
        is_bidirectional=pipeline.is_bidirectional,
        acceptors={(e.stage, e.microbatch, e.slice): e.target for e in choices.evictions},
        parallel=parallel,
        training=training,
        hosted=frozenset(choices.state_offload.stages if choices.state_offload else ()),
        trains=not forwards_alone(pipeline),
        weight_parts={g: len(row) for g, row in enumerate(pipeline.part_ticks) if row},
    )
    return with_steps(plan)


def chosen_semantics(
    backend: str, semantics: Semantics | str | None, backends: Sequence[str]
) -> Semantics:
    """The semantics asked for, or the backend's own, which must be one of ``backends``."""
    if backend not in backends:
        raise ValueError(f"replay backend must be one of {', '.join(backends)}, got {backend!r}")
    default = Semantics.BUFFERED if backend == "gloo" else Semantics.PAIR_STREAM
    try:
        chosen = default if semantics is None else USUAL[USUAL.index(Semantics(semantics))]
    except ValueError:
        known = ", ".join(USUAL)
        raise ValueError(f"semantics must be one of {known}, got {semantics!r}") from None
    return chosen


def require_unfrozen(plan: ReplayPlan) -> None:
    """Raise ``ValueError`` for a stage with frozen parameters that a host updates or members share.

    It names the first of them.
    """
    if plan.spec.kind != "own":
        return
    for stage, facts in enumerate(facts_of(plan.spec)):
        if facts.frozen and (plan.is_sharded or stage in plan.hosted):
            what = "is sharded (--zero)" if plan.is_sharded else "is updated by its host"
            raise ValueError(
                f"model stage {stage}: its parameter {facts.frozen[0]} is frozen, and the stage "
                f"{what}, which moves all of a stage: unfreeze it or take another schedule"
            )


def require_uncompiled(plan: ReplayPlan) -> None:
    """Raise ``ValueError`` for a compiled stage whose bytes or work are to be counted.

    What torch.compile makes as it first runs, and again where the number of threads or a mode of
    torch is another, nobody can predict.
    """
    counts = plan.counts_bytes or plan.counts_work
    for stage, facts in enumerate(facts_of(plan.spec) if plan.spec.kind == "own" else ()):
        if facts.is_compiled and counts:
            raise ValueError(
                f"model stage {stage} is made by torch.compile, whose own memory and work cannot "
                "be predicted: replay its gradients alone (--no-count-bytes --no-count-work), or "
                "the stage as it was before"
            )


def require_same_sizes(plan: ReplayPlan) -> None:
    """Raise ``ValueError`` where replicas have microbatches of other sizes in the same places.

    The bytes of a schedule are predicted for all replicas at once.
    """
    for sample in range(plan.num_microbatches, plan.num_samples):
        own, first = sample % plan.num_microbatches, of_size(plan.spec, sample)
        if first != of_size(plan.spec, own):
            raise ValueError(
                f"model {plan.spec.factory}: microbatch {own} of each replica must be of one size, "
                f"and {sample} is of another: give replicas samples of the same sizes"
            )


def require_accumulable(plan: ReplayPlan) -> None:
    """Raise ``ValueError`` where sums of gradients do not stay on a rank from pass to pass."""
    if plan.accumulated == 1:
        return
    if plan.parallel is not None or plan.hosted:
        what = (
            "hosts step at the end of each pass"
            if plan.hosted
            else "replicas add theirs up (REDUCE_GRAD) in each pass"
        )
        raise ValueError(
            f"replay accumulates gradients where they stay on their ranks, and {what}: take more "
            "microbatches in a pass (m=), or leave --accumulate out"
        )


def require_clippable(plan: ReplayPlan) -> None:
    """Raise ``ValueError`` where gradients are to be whole on the ranks' devices and are not.

    So they are to be clipped, to be divided by a loss's scale, or to step masters of float16.
    """
    if plan.training is None or not (plan.is_sharded or plan.hosted):
        return
    what = "stages are sharded (--zero)" if plan.is_sharded else "hosts update stages"
    if plan.loss_scale is not None:
        raise ValueError(
            "replay loss scale: a step is skipped where any gradient on any rank is not finite, "
            f"and {what}: leave --loss-scale out or take another schedule"
        )
    if plan.spec.dtype == "float16":
        raise ValueError(
            f"replay trains float16 by master weights on the ranks, and {what}: leave --steps out "
            "or take another schedule"
        )
    if plan.training.clip is not None:
        raise ValueError(
            f"replay clip takes the norm of whole gradients on their ranks, and {what}: leave "
            "--clip out or take another schedule"
        )
