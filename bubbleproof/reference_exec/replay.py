"""Replay: run a verified schedule on torch and compare what happens with what was promised.

What was not verified does not run: ``replay`` itself checks the schedule against its problem and
the lowered program, its messages and its data flow, against the training step the problem poses,
and raises ``NotVerified`` with the first violation. ``unsafe`` runs it all the same, and the report
says so: it names the broken rules, and what ended the run where that does not come to its end.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from bubbleproof.reference_exec.compute import Gradients
from bubbleproof.reference_exec.data_parallel import DataParallel, in_replicas, state_bytes
from bubbleproof.reference_exec.device import CPU, Device, open_device
from bubbleproof.reference_exec.gloo import run_gloo
from bubbleproof.reference_exec.members import whole_results
from bubbleproof.reference_exec.oracle import (
    TOLERANCES,
    are_equal,
    max_relative_error,
    single_threaded,
)
from bubbleproof.reference_exec.plan import COLLECTIVE_KINDS, HOST_KINDS, TRANSFER_KINDS, Plan
from bubbleproof.reference_exec.prediction import predicted_peak_bytes, runs_beside, with_bytes
from bubbleproof.reference_exec.rank import RankResult
from bubbleproof.reference_exec.report import ReplayReport
from bubbleproof.reference_exec.spec import ModelSpec
from bubbleproof.reference_exec.stairs import Stairs, predicted_stairs
from bubbleproof.reference_exec.step import training_step
from bubbleproof.reference_exec.trace import RankTrace, traces_of
from bubbleproof.reference_exec.training import Training
from bubbleproof.reference_exec.training_oracle import matched_training, ordinary_training
from bubbleproof.reference_exec.transfers import by_moments, moments, with_transfers
from bubbleproof.reference_exec.verification import (
    NotVerified,
    first_violations,
    require_ok,
    verify_program,
    verify_transfers,
)
from bubbleproof.reference_exec.virtual import run_virtual
from bubbleproof.reference_exec.words import with_ties
from bubbleproof.reference_exec.zero_levels import ZeroLevels
from bubbleproof.theory.actions import Action
from bubbleproof.theory.chosen import ChosenPipeline
from bubbleproof.theory.lowering import lower
from bubbleproof.theory.pipeline import Pipeline
from bubbleproof.theory.problem import Problem
from bubbleproof.theory.schedule import Program, Schedule
from bubbleproof.theory.timing import UntimedProgram
from bubbleproof.verify.check import check
from bubbleproof.verify.communication import Semantics
from bubbleproof.verify.verdict import join

__all__ = ["BACKENDS", "NotVerified", "lowered_program", "replay", "replay_plan"]

BACKENDS = ("virtual", "gloo")


def replay(
    problem: Problem,
    schedule: Schedule,
    spec: ModelSpec,
    *,
    program: Program | None = None,
    backend: str = "virtual",
    seed: int = 0,
    semantics: Semantics | str | None = None,
    timeout: float = 60.0,
    unsafe: bool = False,
    data_parallel: int = 1,
    zero: ZeroLevels | None = None,
    debug_headers: bool = False,
    progress: Callable[[str], None] | None = None,
    device: str = "cpu",
    training: Training | None = None,
) -> ReplayReport:
    """Verify a schedule, run it on torch and compare gradients and peak bytes.

    Parameters
    ----------
    problem, schedule
        What the schedule solves, and the schedule.
    spec
        The model to train; its sizes decide bytes and run time.
    program
        The lowered program to run; by default ``lowered_program`` makes it. Transfers are put in
        by the times of the schedule.
    backend
        ``virtual`` (all ranks in this process) or ``gloo`` (a process per rank).
    seed
        Picks the interleaving of ``virtual``. (The model's seed is in ``spec``.)
    semantics
        What SEND and RECV are assumed to wait for. ``virtual`` (default ``pair-stream``) runs under
        it; on ``gloo`` sends never wait and receives arrive in order, which is its default
        ``buffered``, and stricter semantics are verified only.
    timeout
        Seconds the ranks of ``gloo`` may take, their start not counted; then one error says which
        rank was where, and no process is left.
    unsafe
        Run what violates a rule too. A run that cannot go on is then reported, not raised.
    data_parallel
        How many replicas run the schedule, each on microbatches of its own; more than one needs a
        schedule with collectives.
    zero
        The level of each parameter where the schedule has collectives, by default the highest that
        they are enough for.
    debug_headers
        Send a header ahead of each message of ``gloo``, and raise ``RankFailed`` at the first that
        is not what its receiver expects. (On ``virtual`` messages always say what they are.)
    progress
        Called with a line of text now and then.
    device
        ``cpu``, or for ``virtual`` also ``cuda``: all ranks on one GPU.
    training
        Optimizer steps to take, each after a run of the program; by default the program runs once
        and only what a host updates is stepped.

    Raises
    ------
    NotVerified
        The schedule or the program violates a rule, and ``unsafe`` is not set.
    ValueError
        The problem is no training step that ranks can run, or an option is unknown.
    ReplayStalled, MessageMismatch, BrokenProgram, RankFailed
        A rank went astray all the same.
    """
    if not timeout > 0:
        raise ValueError(f"replay timeout must be more than 0 seconds, got {timeout}")
    chosen = chosen_semantics(backend, semantics, BACKENDS)
    if backend != "virtual" and device != "cpu":
        raise ValueError(
            f"replay on {backend} computes on the cpu, got {device}; GPUs run a process each "
            "under torchrun with nccl, or all ranks on one of them on virtual"
        )
    where = open_device(device)
    ready = prepared(
        problem,
        schedule,
        spec,
        program=program,
        semantics=chosen,
        unsafe=unsafe,
        training=training,
        data_parallel=data_parallel,
        zero=zero,
    )
    if ready.broken and progress is not None:
        progress(f"UNSAFE: running what is not verified; broken: {', '.join(ready.broken)}")
    stopped = ""
    with single_threaded():
        where.start_peak()
        begun = time.perf_counter()
        try:
            if backend == "virtual":
                results = run_virtual(
                    ready.plan, seed=seed, semantics=chosen, progress=progress, device=where
                )
            else:
                results = run_gloo(
                    ready.plan, timeout=timeout, progress=progress, debug_headers=debug_headers
                )
        except RuntimeError as error:
            if not unsafe:
                raise
            results, stopped = [], f"{type(error).__name__}: {error}"
        seconds = time.perf_counter() - begun
        peak = where.peak_bytes()
        return judged(
            ready,
            results,
            backend=backend,
            seed=seed,
            seconds=seconds,
            stopped=stopped,
            device=where,
            allocator_peak_bytes=() if peak is None else (peak,),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prepared:
    """A schedule ready to run.

    ``predicted`` has the peak bytes of each rank, then of each host (``predicted_peak_bytes``),
    ``state`` those of the model state of each process, where it is sharded;
    ``semantics`` is what the communication was verified under; ``broken`` the rules that
    verification found broken, with the first violation of each, empty unless ``is_unsafe``;
    ``stairs`` the predicted bytes of each action (``predicted_stairs``).
    """

    plan: Plan
    predicted: tuple[int, ...]
    state: tuple[int, ...]
    semantics: Semantics
    is_unsafe: bool
    broken: Mapping[str, str]
    stairs: Stairs = ()


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
) -> Prepared:
    """Verify a schedule and its program; the plan to run, and what it promises.

    Raises ``NotVerified`` unless ``unsafe``, and ``ValueError`` where the problem is no step that
    ranks can run.
    """
    step = training_step(problem)
    spec = spec.on(step.num_stages)
    spec.require_slices(step.num_slices)
    step, parallel = in_replicas(step, spec, data_parallel, zero)
    verdict = check(problem, schedule)
    if not unsafe:
        require_ok(verdict)
    lowered = lowered_program(problem, step, schedule, spec) if program is None else program
    verdict = join([verdict, verify_program(problem, step, schedule, lowered, semantics)])
    if not unsafe:
        require_ok(verdict)
    plan = replay_plan(problem, step, schedule, lowered, spec, parallel)
    plan = replace(plan, training=training)
    verdict = join([verdict, verify_transfers(step, plan.program, semantics)])
    if not unsafe:
        require_ok(verdict)
    orders = [plan.order(rank) for rank in range(plan.num_ranks)]
    return Prepared(
        plan=plan,
        predicted=_predicted(step, problem, schedule, spec),
        state=() if parallel is None else state_bytes(step, spec, parallel),
        semantics=semantics,
        is_unsafe=unsafe,
        broken=first_violations(verdict),
        stairs=predicted_stairs(with_bytes(problem, step, spec), orders),
    )


def lowered_program(
    problem: Problem, step: Pipeline, schedule: Schedule, spec: ModelSpec
) -> Program:
    """The program of ``theory.lowering.lower``, in the order of moments where transfers join it."""
    lowered = lower(problem, schedule)
    if not runs_beside(problem):
        return lowered
    return by_moments(lowered, moments(with_bytes(problem, step, spec), schedule))


def replay_plan(
    problem: Problem,
    step: Pipeline,
    schedule: Schedule,
    lowered: Program,
    spec: ModelSpec,
    parallel: DataParallel | None = None,
) -> Plan:
    """The plan of a lowered program, its schedule's transfers put in; nothing is verified here.

    ``parallel`` is there where the step has collectives (``in_replicas``).
    """
    evictions = step.evictions if isinstance(step, ChosenPipeline) else ()
    ends: dict[Action, tuple[int, ...]] = {
        Action(stage=e.stage, kind=kind, microbatch=e.microbatch): (e.source, e.target)
        for e in evictions
        for kind in TRANSFER_KINDS
    }
    for task in np.flatnonzero(problem.actions.is_kind(*HOST_KINDS)).tolist():
        action = problem.actions[task]
        ends[action] = (int(step.rank_grid[action.stage, action.microbatch]),)
    for task in np.flatnonzero(problem.actions.is_kind(*COLLECTIVE_KINDS)).tolist():
        action = problem.actions[task]
        ends[action] = (step.stage_ranks[action.stage],)
    if ends:
        sized = with_bytes(problem, step, spec)
        lowered = with_transfers(sized, schedule, lowered, moments(sized, schedule), ends)
    return Plan(
        spec=spec,
        program=lowered,
        stage_ranks=step.stage_ranks,
        num_microbatches=step.num_microbatches,
        num_slices=step.num_slices,
        is_bidirectional=step.is_bidirectional,
        acceptors={(e.stage, e.microbatch): e.target for e in evictions},
        parallel=parallel,
        weight_parts={g: len(row) for g, row in enumerate(step.part_ticks) if row},
    )


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


def _predicted(
    step: Pipeline, problem: Problem, schedule: Schedule, spec: ModelSpec
) -> tuple[int, ...]:
    """The predicted peaks; none of a schedule that lacks tasks or waits for itself."""
    try:
        return predicted_peak_bytes(step, problem, schedule, spec)
    except UntimedProgram:
        return ()


def judged(
    ready: Prepared,
    results: list[RankResult],
    *,
    backend: str,
    seed: int = 0,
    seconds: float,
    stopped: str = "",
    device: Device = CPU,
    allocator_peak_bytes: tuple[int, ...] = (),
) -> ReplayReport:
    """Compare the results of all ranks with both oracles, run on ``device``, and the prediction.

    ``allocator_peak_bytes`` are those of the devices that were used, where they keep count;
    ``stopped`` is what ended an unsafe run, which then has no results.
    """
    plan = ready.plan
    losses: dict[tuple[int, int], torch.Tensor] = {}
    for result in results:
        losses |= result.losses
    matched, exact = matched_training(plan, device), ordinary_training(plan)
    results = whole_results(plan, results, matched.gradients)
    gradients = with_ties(plan, summed_replicas(results))
    training = plan.training
    loss = sum(losses[part].item() for part in sorted(losses))
    error = math.inf
    if results:
        error = max(
            max_relative_error(gradients, exact.gradients),
            abs(loss - exact.loss) / max(abs(exact.loss), 1e-300),
        )
    on_ranks, on_hosts = ready.predicted[: plan.num_ranks], ready.predicted[plan.num_ranks :]
    hosts = [r for r in results if r.host_live_bytes or plan.updated()] if on_hosts else []
    return ReplayReport(
        backend=backend,
        semantics=ready.semantics.value,
        seed=seed,
        model=plan.spec.kind,
        dtype=plan.spec.dtype,
        ranks=plan.num_ranks,
        stages=plan.num_stages,
        microbatches=plan.num_microbatches,
        data_parallel=plan.num_replicas,
        zero="" if plan.parallel is None else str(plan.parallel.levels),
        measured_state_bytes=tuple(r.state_bytes for r in results) if ready.state else (),
        predicted_state_bytes=ready.state,
        gradients_equal=are_equal(gradients, matched.gradients),
        losses_equal=losses.keys() == matched.losses.keys()
        and all(torch.equal(losses[part], matched.losses[part]) for part in losses),
        max_relative_error=error,
        tolerance=TOLERANCES[plan.spec.dtype],
        loss=loss,
        measured_peak_bytes=tuple(max(result.live_bytes, default=0) for result in results),
        predicted_peak_bytes=on_ranks * plan.num_replicas,
        measured_host_peak_bytes=tuple(max(r.host_live_bytes, default=0) for r in hosts),
        predicted_host_peak_bytes=on_hosts,
        weights_equal=weights_are_equal(results, matched.weights),
        max_weight_error=max_weight_error(results, exact.weights),
        optimizer="" if training is None else training.optimizer,
        steps=0 if training is None else training.steps,
        has_barrier=training is not None and training.has_barrier,
        num_updated_stages=plan.num_stages if plan.parallel else len(plan.updated()),
        live_bytes=tuple(result.live_bytes for result in results),
        seconds=seconds,
        device=device.description,
        allocator_peak_bytes=allocator_peak_bytes,
        torch_version=torch.__version__,
        unsafe=ready.is_unsafe,
        broken_rules=tuple(ready.broken),
        violations=tuple(ready.broken.values()),
        stopped=stopped,
        losses=tuple(losses[part].item() for part in sorted(losses)),
        traces=_traces(ready, results),
    )


def _traces(ready: Prepared, results: list[RankResult]) -> tuple[RankTrace, ...]:
    return traces_of(
        [ready.plan.order(process) for process in range(len(results))],
        [result.rows for result in results],
        [result.live_bytes for result in results],
        ready.stairs,
    )


def weights_are_equal(results: list[RankResult], expected: Gradients) -> bool:
    """Whether all ranks together stepped what is expected, to the expected bits on each of them."""
    stepped = {key for result in results for key in result.updated}
    return stepped == expected.keys() and all(
        torch.equal(weight, expected[key])
        for result in results
        for key, weight in result.updated.items()
    )


def max_weight_error(results: list[RankResult], expected: Gradients) -> float:
    """The largest relative error of any rank's weights, as in ``max_relative_error``.

    0 where none are expected, infinite where one is missing.
    """
    found: Gradients = {}
    for result in results:
        found |= result.updated
    if not found.keys() >= expected.keys():
        return math.inf
    return max_relative_error(found, expected) if expected else 0.0


def summed_replicas(results: list[RankResult]) -> Gradients:
    """The gradients of all ranks; where two hold a stage, the higher's are added to the lower's."""
    total: Gradients = {}
    for result in results:
        for key, gradient in result.gradients.items():
            total[key] = total[key] + gradient if key in total else gradient
    return total
