"""A schedule made ready to run: verified, lowered to a plan, its bytes predicted.

What violates a rule is refused (``NotVerified``) or, where unsafe, kept and named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bubbleproof.reference_exec.models.footprint import require_stages
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.reference import require_steps
from bubbleproof.reference_exec.plans.data_parallel import DataParallel, state_bytes
from bubbleproof.reference_exec.plans.instants import require_stays, require_ticks
from bubbleproof.reference_exec.plans.plan import HOST_KINDS, TRANSFER_KINDS, Plan
from bubbleproof.reference_exec.plans.predicted_live_bytes import LiveBytes, predicted_live_bytes
from bubbleproof.reference_exec.plans.prediction import (
    predicted_peak_bytes,
    runs_beside,
    with_bytes,
)
from bubbleproof.reference_exec.plans.replay_limits import require_size
from bubbleproof.reference_exec.plans.replicated import Replicated, replicated
from bubbleproof.reference_exec.plans.state_bytes import StateBytes, predicted_state
from bubbleproof.reference_exec.plans.step import training_step
from bubbleproof.reference_exec.plans.stepping import with_steps, without_steps, without_training
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.reference_exec.plans.transfer_rows import by_moments, moments, with_transfers
from bubbleproof.reference_exec.plans.verification import (
    first_violations,
    require_ok,
    verify_collectives,
    verify_plan,
    verify_program,
)
from bubbleproof.reference_exec.plans.zero_levels import ZeroLevels
from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.links import schedule_without_messages, without_messages
from bubbleproof.theory.pipelines.lowering import lower
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import UntimedProgram
from bubbleproof.verify.check import check
from bubbleproof.verify.communication.matching import Semantics
from bubbleproof.verify.verdict import join


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prepared:
    """A schedule ready to run.

    ``predicted`` has the peak bytes of each rank, then of each host (``predicted_peak_bytes``),
    ``state`` those of the model state of each process, where it is sharded;
    ``semantics`` is what the communication was verified under; ``broken`` the rules that
    verification found broken, with the first violation of each, empty unless ``is_unsafe``;
    ``live_bytes`` those of each action (``predicted_live_bytes``), ``model_state`` those of
    what stays between steps (``predicted_state``).
    """

    plan: Plan
    predicted: tuple[int, ...]
    state: tuple[int, ...]
    semantics: Semantics
    is_unsafe: bool
    broken: Mapping[str, str]
    live_bytes: LiveBytes = ()
    model_state: tuple[tuple[StateBytes, ...], tuple[StateBytes, ...]] = ((), ())


def prepared(
    problem: Problem,
    schedule: Schedule,
    spec: ModelSpec,
    *,
    program: Program | None = None,
    semantics: Semantics,
    unsafe: bool = False,
    training: Training | None = None,
    data_parallel: int = 1,
    zero: ZeroLevels | None = None,
    count_bytes: bool = True,
) -> Prepared:
    """Verify a schedule and its program; the plan to run, and what it promises.

    Unless ``count_bytes`` it promises nothing of live bytes.
    Raises ``NotVerified`` unless ``unsafe``, and ``ValueError`` where the problem is no step that
    ranks can run.
    """
    require_size(problem, 1 if training is None else training.steps, data_parallel)
    step = training_step(problem)
    require_stages(spec, step.num_stages)
    spec = spec.on(step.num_stages)
    spec.require_slices(step.num_slices)
    require_steps(spec, 1 if training is None else training.steps)
    verdict = check(problem, schedule)
    if not unsafe:
        require_ok(verdict)
        if runs_beside(problem):
            require_ticks(problem)
            require_stays(problem, schedule)
    schedule = schedule_without_messages(problem, schedule)
    problem = without_messages(problem)
    posed = replicated(problem, step, schedule, spec, replicas=data_parallel, levels=zero)
    if posed.problem is not problem:
        verdict = join([verdict, check(posed.problem, posed.schedule)])
    problem, step, schedule = posed.problem, posed.step, posed.schedule
    parallel = posed.parallel
    lowered = program
    if lowered is None:
        lowered = lowered_program(problem, step, schedule, spec, parallel)
    bare = lowered if training is None else without_steps(lowered)
    verdict = join([verdict, verify_program(problem, step, schedule, bare, semantics)])
    if not unsafe:
        require_ok(verdict)
    plan = replay_plan(problem, step, schedule, lowered, spec, parallel, training)
    plan = replace(plan, counts_bytes=count_bytes)
    verdict = join(
        [
            verdict,
            verify_plan(posed.asked, plan, semantics),
            verify_collectives(problem, schedule, without_training(plan)),
        ]
    )
    if not unsafe:
        require_ok(verdict)
    return Prepared(
        plan=plan,
        predicted=_predicted(posed, spec) if count_bytes else (),
        state=() if parallel is None else state_bytes(step, spec, parallel),
        semantics=semantics,
        is_unsafe=unsafe,
        broken=first_violations(verdict),
        model_state=predicted_state(plan),
        live_bytes=_live_bytes(posed, plan) if count_bytes else (),
    )


def _live_bytes(posed: Replicated, plan: Plan) -> LiveBytes:
    """The predicted bytes of each action."""
    sized = with_bytes(posed.problem, posed.step, plan.spec, posed.parallel)
    orders = [plan.order(rank) for rank in range(plan.num_ranks)]
    parallel = posed.parallel
    rooms = {} if parallel is None else parallel.rooms(orders, plan.spec, plan.num_stages)
    return predicted_live_bytes(sized, orders, rooms)


def _predicted(posed: Replicated, spec: ModelSpec) -> tuple[int, ...]:
    """The predicted peaks; none of a schedule that lacks tasks or waits for itself."""
    try:
        return predicted_peak_bytes(posed.step, posed.problem, posed.schedule, spec, posed.parallel)
    except UntimedProgram:
        return ()


def lowered_program(
    problem: Problem,
    step: Pipeline,
    schedule: Schedule,
    spec: ModelSpec,
    parallel: DataParallel | None = None,
) -> Program:
    """The program of ``lowering.lower``, in the order of moments where transfers join it."""
    lowered = lower(problem, schedule)
    if not runs_beside(problem):
        return lowered
    return by_moments(lowered, moments(with_bytes(problem, step, spec, parallel), schedule))


def replay_plan(
    problem: Problem,
    step: Pipeline,
    schedule: Schedule,
    lowered: Program,
    spec: ModelSpec,
    parallel: DataParallel | None = None,
    training: Training | None = None,
) -> Plan:
    """The plan of a lowered program, its schedule's transfers put in; nothing is verified here.

    ``parallel`` is there where the problem has collectives (``replicated``). STEPs and exchanges of
    a training are put in too, unless the program has its own (``stepping``).
    """
    evictions = step.choices.evictions
    ends: dict[Action, tuple[int, ...]] = {
        Action(stage=e.stage, kind=kind, microbatch=e.microbatch): (e.source, e.target)
        for e in evictions
        for kind in TRANSFER_KINDS
    }
    for task in np.flatnonzero(problem.actions.is_kind(*HOST_KINDS)).tolist():
        action = problem.actions[task]
        ends[action] = (int(step.rank_grid[action.stage, action.microbatch]),)
    if parallel is not None:
        ends |= {action: (rank,) for action, rank in parallel.homes.items()}
    if ends:
        sized = with_bytes(problem, step, spec, parallel)
        lowered = with_transfers(sized, schedule, lowered, moments(sized, schedule), ends)
    plan = Plan(
        spec=spec,
        program=lowered,
        stage_ranks=step.stage_ranks,
        num_microbatches=step.num_microbatches,
        num_slices=step.num_slices,
        is_bidirectional=step.is_bidirectional,
        acceptors={(e.stage, e.microbatch): e.target for e in evictions},
        parallel=parallel,
        training=training,
        hosted=frozenset(problem.actions.stage[problem.actions.is_kind(Kind.STEP)].tolist()),
        weight_parts={g: len(row) for g, row in enumerate(step.weight_parts) if row},
    )
    return plan if training is None else with_steps(plan)


def chosen_semantics(
    backend: str, semantics: Semantics | str | None, backends: Sequence[str]
) -> Semantics:
    """The semantics asked for, or the backend's own, which must be one of ``backends``."""
    if backend not in backends:
        raise ValueError(f"replay backend must be one of {', '.join(backends)}, got {backend!r}")
    default = Semantics.BUFFERED if backend == "gloo" else Semantics.PAIR_STREAM
    try:
        chosen = default if semantics is None else Semantics(semantics)
    except ValueError:
        known = ", ".join(Semantics)
        raise ValueError(f"semantics must be one of {known}, got {semantics!r}") from None
    return chosen
