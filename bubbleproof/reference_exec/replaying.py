"""Replay: run a verified schedule on torch and compare what happens with what was promised.

What was not verified does not run: ``replay`` itself checks the schedule against its problem and
the lowered program, its messages and its data flow, against the pipeline's training step,
and raises ``NotVerified`` with the first violation. ``unsafe`` runs it all the same, and the report
says so: it names the broken rules, and what ended the run where that does not come to its end.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from bubbleproof.reference_exec.drivers.gloo import GlooPool, run_gloo
from bubbleproof.reference_exec.drivers.virtual import run_virtual
from bubbleproof.reference_exec.evidence.compare import compared
from bubbleproof.reference_exec.evidence.oracle import single_threaded
from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.prepared import chosen_semantics, prepared
from bubbleproof.reference_exec.plans.replay_limits import require_time_limit
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.reference_exec.plans.verification import NotVerified
from bubbleproof.reference_exec.plans.zero_levels import ZeroLevels
from bubbleproof.reference_exec.runtime.cuda import open_device
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.communication.semantics import Semantics

__all__ = ["BACKENDS", "NotVerified", "replay"]

BACKENDS = ("virtual", "gloo")


def replay(
    pipeline: Pipeline,
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
    pool: GlooPool | None = None,
    count_bytes: bool = True,
    count_work: bool = True,
) -> ReplayReport:
    """Verify a schedule, run it on torch and compare gradients and peak bytes.

    Parameters
    ----------
    pipeline, schedule
        The training step with its choices, and a schedule of its problem.
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
        How many replicas run the schedule, each on microbatches of its own.
    zero
        The level of each parameter. By default a schedule with collectives has the highest that
        they are enough for, and replicas of one without are whole (plain data parallelism).
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
    pool
        Processes for ``gloo`` that stay for the next replay; by default this one starts its own.
        After a run of what is not verified they are ended, and the next replay starts new ones.
    count_bytes
        Count the bytes that live after each action, and compare them. Without, steps are some per
        cent faster, and the report says nothing of bytes.
    count_work
        Count what each action computes, and to which gradients it adds, and compare it. Without,
        the report does not say that a split backward is one.

    Raises
    ------
    NotVerified
        The schedule or the program violates a rule, and ``unsafe`` is not set.
    ValueError
        The pipeline has what no rank can run, or an option is unknown.
    ReplayStalled, MessageMismatch, BrokenProgram, RankFailed
        A rank went astray all the same.
    """
    chosen = chosen_semantics(backend, semantics, BACKENDS)
    _require_kinds(training, zero)
    _require_together(backend, device, timeout, pool)
    where = open_device(device)
    ready = prepared(
        pipeline,
        schedule,
        spec,
        program=program,
        semantics=chosen,
        unsafe=unsafe,
        training=training,
        data_parallel=data_parallel,
        zero=zero,
        count_bytes=count_bytes,
        count_work=count_work,
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
                run = run_gloo if pool is None else pool.run
                results = run(
                    ready.plan, timeout=timeout, progress=progress, debug_headers=debug_headers
                )
        except RuntimeError as error:
            if not unsafe:
                raise
            results, stopped = [], f"{type(error).__name__}: {error}"
        seconds = time.perf_counter() - begun
        if ready.broken and pool is not None:
            pool.renew()
        peak = where.peak_bytes()
        return compared(
            ready,
            results,
            backend=backend,
            seed=seed,
            seconds=seconds,
            stopped=stopped,
            device=where,
            allocator_peak_bytes=() if peak is None else (peak,),
        )


def _require_kinds(training: object, zero: object) -> None:
    """Raise ``ValueError`` for a training or levels in another form than ours."""
    if not isinstance(training, Training | None):
        raise ValueError(f"replay training must be a Training(steps=...), got {training!r}")
    if not isinstance(zero, ZeroLevels | None):
        raise ValueError(f'replay zero must be ZeroLevels.parse("3,norm=1"), got {zero!r}')


def _require_together(backend: str, device: str, timeout: float, pool: GlooPool | None) -> None:
    """Raise ``ValueError`` for options that do not go together."""
    require_time_limit(timeout)
    if backend != "virtual" and device != "cpu":
        raise ValueError(
            f"replay on {backend} computes on the cpu, got {device}; GPUs run a process each "
            "under torchrun with nccl, or all ranks on one of them on virtual"
        )
    if backend != "gloo" and pool is not None:
        raise ValueError(f"replay on {backend} takes no pool of processes, which is for gloo")
