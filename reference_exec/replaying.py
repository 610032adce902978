"""Replay: run a verified schedule on torch and compare what happens with what was promised.

What was not verified does not run: ``replay`` itself checks the schedule against its problem and
the lowered program, its messages and its data flow, against the pipeline's training step, and
raises ``NotVerified`` with the first violation. The option ``unsafe`` runs it all the same, and the
report says so: it names the broken rules, and what ended the run where that does not come to its
end.
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
from bubbleproof.reference_exec.plans.run_options import ReplayOptions
from bubbleproof.reference_exec.plans.verification import NotVerified
from bubbleproof.reference_exec.runtime.cuda import open_device
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline

__all__ = ["BACKENDS", "NotVerified", "replay"]

BACKENDS = ("virtual", "gloo")


def replay(
    pipeline: Pipeline,
    schedule: Schedule,
    spec: ModelSpec,
    options: ReplayOptions | None = None,
    *,
    program: Program | None = None,
    progress: Callable[[str], None] | None = None,
    pool: GlooPool | None = None,
) -> ReplayReport:
    """Verify a schedule, run it on torch and compare gradients and peak bytes.

    Parameters
    ----------
    pipeline, schedule
        The training step with its choices, and a schedule of its problem.
    spec
        The model to train; its sizes decide bytes and run time.
    options
        Where and how it runs; by default once on ``virtual``, everything counted.
    program
        The lowered program to run; by default ``lowered_program`` makes it. Transfers are put in
        by the times of the schedule.
    progress
        Called with a line of text now and then.
    pool
        Processes for ``gloo`` that stay for the next replay; by default this one starts its own.
        After a run of what is not verified they are ended, and the next replay starts new ones.

    Raises
    ------
    NotVerified
        The schedule or the program violates a rule, and ``options.unsafe`` is not set.
    ValueError
        The pipeline has what no rank can run, or an option is unknown.
    ReplayStalled, MessageMismatch, BrokenProgram, RankFailed
        A rank went astray all the same.
    """
    how = ReplayOptions() if options is None else options
    chosen = chosen_semantics(how.backend, how.semantics, BACKENDS)
    _require_together(how, pool)
    where = open_device(how.device)
    ready = prepared(pipeline, schedule, spec, how, program=program, semantics=chosen)
    if ready.broken and progress is not None:
        progress(f"UNSAFE: running what is not verified; broken: {', '.join(ready.broken)}")
    stopped = ""
    with single_threaded():
        where.start_peak()
        begun = time.perf_counter()
        try:
            if how.backend == "virtual":
                results = run_virtual(
                    ready.plan, seed=how.seed, semantics=chosen, progress=progress, device=where
                )
            else:
                run = run_gloo if pool is None else pool.run
                results = run(ready.plan, timeout=how.timeout, progress=progress)
        except RuntimeError as error:
            if not how.unsafe:
                raise
            results, stopped = [], f"{type(error).__name__}: {error}"
        seconds = time.perf_counter() - begun
        if ready.broken and pool is not None:
            pool.renew()
        peak = where.peak_bytes()
        return compared(
            ready,
            results,
            seconds=seconds,
            stopped=stopped,
            device=where,
            allocator_peak_bytes=() if peak is None else (peak,),
        )


def _require_together(how: ReplayOptions, pool: GlooPool | None) -> None:
    """Raise ``ValueError`` for options that do not go together."""
    if how.backend != "virtual" and how.device != "cpu":
        raise ValueError(
            f"replay on {how.backend} computes on the cpu, got {how.device}; GPUs run a process "
            "each under torchrun with nccl, or all ranks on one of them on virtual"
        )
    if how.backend != "gloo" and pool is not None:
        raise ValueError(f"replay on {how.backend} takes no pool of processes, which is for gloo")
