"""``bubbleproof replay SCHEDULE``: run a verified schedule on torch and compare.

The model that a plan was made for, made small: what ``replay`` of a plan's folder trains.

    kind      llama where the model is gated, else transformer; of experts, one block stands for all
    heads     two of keys and values at most, and as many queries to each as planned
    hidden    four numbers a head
    layers    each stage's, divided by what leaves two to the largest, rounded up: an uneven cut
              stays uneven where that is more than rounding
    words     64 at most; tied where the model is

Samples of a microbatch, their length, the type and the seed are those of the command.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from bubbleproof.commands.first_lines import print_answer
from bubbleproof.commands.output import BROKEN, HOLDS, print_json, print_table, say
from bubbleproof.commands.replaying.read_sharded import known_pipeline, read_to_replay
from bubbleproof.commands.replaying.replay_files import (
    print_failure,
    print_report,
    require_endings,
    write_files,
)
from bubbleproof.commands.replaying.replay_options import ModelOptions, ReplayRequest
from bubbleproof.facts import VIOLATED, rows
from bubbleproof.formats import ScheduleFile
from bubbleproof.formats.inputs import read_plan_input, read_schedule_input
from bubbleproof.hand_over.handed import PlannedModel, planned_of
from bubbleproof.reference_exec.drivers.gloo_server import (
    FIRST_OPTIMIZER,
    start_server,
    stop_server,
)
from bubbleproof.reference_exec.plans.replay_limits import require_room, require_size
from bubbleproof.torch_limits import room_needed, torch_needed
from bubbleproof.verify.communication.semantics import Semantics

if TYPE_CHECKING:
    from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
    from bubbleproof.reference_exec.pytorch.runtime import TorchRuntimeReport

MOST_LAYERS, MOST_KV_HEADS, HEAD_WIDTH, MOST_WORDS = 2, 2, 4, 64
_SIZES = ("model", "hidden", "layers", "heads", "kv_heads", "vocabulary", "tied")


def with_planned_model(request: ReplayRequest) -> ReplayRequest:
    """The request with the plan's model, where it names a plan of one and asks for no other."""
    plan = read_plan_input(request.schedule)
    usual = ModelOptions()
    if plan is None or any(getattr(request.model, n) != getattr(usual, n) for n in _SIZES):
        return request
    planned = planned_of(plan)
    if planned is None:
        return request
    small = scaled(planned, request.model)
    name = planned.model.name or "the planned model"
    say(
        f"{name} is replayed small: {small.model}, layers {small.layers}, hidden {small.hidden}, "
        f"heads {small.heads}, vocabulary {small.vocabulary} (--model says another)"
    )
    return replace(request, model=small)


def scaled(planned: PlannedModel, given: ModelOptions) -> ModelOptions:
    """The small model, see above; what it does not say is as ``given``."""
    model = planned.model
    kv = model.kv_heads or model.heads
    kv_heads = min(kv, MOST_KV_HEADS)
    heads = kv_heads * max(model.heads // kv, 1)
    return replace(
        given,
        model="llama" if model.gated else "transformer",
        hidden=HEAD_WIDTH * heads,
        layers=",".join(map(str, small_cut(planned.layers))),
        heads=heads,
        kv_heads=kv_heads,
        vocabulary=min(model.vocabulary, MOST_WORDS),
        tied=model.tied and len(planned.layers) > 1,
    )


def small_cut(layers: Sequence[int]) -> tuple[int, ...]:
    """The layers of each stage, the largest with two at most.

    >>> small_cut((20, 20)), small_cut((5, 10, 10, 4)), small_cut((1, 1))
    ((2, 2), (1, 2, 2, 1), (1, 1))
    """
    divisor = max(-(-max(layers) // MOST_LAYERS), 1)
    return tuple(max(-(-count // divisor), 1) for count in layers)


BACKEND = "torch-runtime"
OWN_BACKENDS = ("virtual", "gloo")
BACKENDS = (*OWN_BACKENDS, BACKEND)


def run_replay(request: ReplayRequest) -> int:
    """Replay one schedule and print the evidence; status 1 where a promise is broken.

    An unsafe replay says so, and gives status 1 for what is not verified. With ``--torchrun`` this
    process is one of the ranks.
    """
    require_endings(request.targets)
    request = with_planned_model(request)
    request.model.require_meaning()
    if request.communication.torchrun:
        request.run.leave_out("ranks that torchrun starts", "seed")
        parent = os.getppid()  # before torch is loaded, which takes a while
        with torch_needed():
            from bubbleproof.commands.replaying.under_torchrun import run_rank
        return run_rank(request, parent=parent)
    request.communication.leave_out("ranks that torchrun did not start", "share_gpu")
    _require_backend(request)
    if request.run.backend == BACKEND:
        with torch_needed(), interruptible():
            return run_replay_torch(request)
    given = read_to_replay(request)
    try:
        with room_needed():
            report = replay_given(given, request)
    except RuntimeError as error:  # a stalled or failed rank
        return print_failure(given.name, str(error), json=request.output.json)
    status = print_report(given.name, report, request)
    write_files(request, given, report)
    return status


def _require_backend(request: ReplayRequest) -> None:
    """Raise ``ValueError`` for a backend that is unknown or cannot do what is asked."""
    backend = request.run.backend or OWN_BACKENDS[0]
    if backend == "nccl":
        raise ValueError(
            "nccl runs a process per GPU: torchrun --nproc-per-node RANKS "
            "-m bubbleproof.reference_exec SCHEDULE --backend nccl"
        )
    if backend not in BACKENDS:
        known = f"{', '.join(BACKENDS)}, or nccl under torchrun"
        raise ValueError(f"replay backend must be one of {known}, got {backend!r}")
    if backend == OWN_BACKENDS[0]:
        request.communication.leave_out("ranks in one process", "timeout")
    else:
        request.run.leave_out(f"ranks in processes of their own ({backend})", "seed")
    if backend in OWN_BACKENDS:
        return
    if request.targets:
        raise ValueError(f"replay files are written of our own ranks, not of {BACKEND}")
    request.training.leave_out(f"--backend {BACKEND}", *(f.name for f in fields(request.training)))
    request.run.leave_out(f"--backend {BACKEND}", "unsafe", "no_count_bytes", "no_count_work")
    if request.run.device not in (None, "cpu"):
        raise ValueError(f"replay by {BACKEND} computes on the cpu, got {request.run.device}")


def replay_given(given: ScheduleFile, request: ReplayRequest) -> ReplayReport:
    """Verify and run. Raises ``ValueError`` for what is not verified or cannot run."""
    with interruptible():
        return _replay(given, request)


@contextmanager
def interruptible() -> Iterator[None]:
    """Leave no process behind where Ctrl-C ends this command."""
    try:
        yield
    except KeyboardInterrupt:
        stop_server()
        raise


def _require_size(given: ScheduleFile, request: ReplayRequest) -> None:
    """Raise ``ValueError`` for what is too large by its numbers, before torch is loaded."""
    training = request.training.asked()
    passes = 1 if training is None else training.num_passes
    backend = request.run.backend or OWN_BACKENDS[0]
    require_size(given.problem, passes, request.training.data_parallel, backend=backend)
    pipeline = known_pipeline(given)
    require_room(
        request.model.spec(),
        num_stages=pipeline.num_stages,
        num_slices=pipeline.num_slices,
        replicas=request.training.data_parallel,
        device=request.run.device or "cpu",
    )


def _replay(given: ScheduleFile, request: ReplayRequest) -> ReplayReport:
    _require_size(given, request)
    if request.run.backend == "gloo":  # its server loads torch while this process does
        is_training = request.training.asked() is not None
        start_server("bubbleproof.cli", *[FIRST_OPTIMIZER] * is_training)
    with torch_needed():
        from bubbleproof.reference_exec.replaying import replay
    return replay(
        known_pipeline(given),
        given.timed_roughly() if request.run.unsafe else given.timed(),
        request.model.spec(),
        request.options(OWN_BACKENDS[0]),
        program=given.lowered,
        progress=None if request.output.json else say,
    )


WORKER = "bubbleproof.reference_exec.pytorch.worker"  # what each of its processes needs


def run_replay_torch(request: ReplayRequest) -> int:
    """Replay by both executors and compare; status 1 where bits differ without a reason.

    Raises ``ValueError`` for what is not verified or what a PyTorch table cannot say, and
    ``ModuleNotFoundError`` without torch.
    """
    given = read_schedule_input(request.schedule, dialect=request.run.dialect)
    start_server("bubbleproof.cli", WORKER)  # which loads torch while this process does
    from bubbleproof.reference_exec.pytorch.runtime import compare_with_torch_runtime

    try:
        with room_needed():
            report = compare_with_torch_runtime(
                known_pipeline(given),
                given.timed(),
                request.model.spec(),
                program=given.lowered,
                semantics=request.communication.comm or Semantics.BUFFERED,
                timeout=request.communication.timeout,
                progress=None if request.output.json else say,
            )
    except RuntimeError as error:  # a failed process
        return print_failure(given.name, str(error), json=request.output.json)
    if request.output.json:
        print_json({"name": given.name, **report.to_dict()})
    elif print_answer(_lines_of_torch(report), request.detail):
        print_table(given.name, report.columns, rows(report.facts()))
    return HOLDS if report.ok else BROKEN


def _lines_of_torch(report: TorchRuntimeReport) -> list[str]:
    """What PyTorch's runtime made of it, each comparison that failed on a line."""
    where = f"PyTorch {report.torch_version}, {report.ranks} ranks, {report.dtype}"
    failed = [fact for fact in report.facts() if fact.verdict == VIOLATED]
    if failed:
        return [
            f"FAIL  {len(failed)} of {len(report.facts())} comparisons differ ({where})",
            *(f"{fact.label}: {fact.told}, expected: {fact.wanted}" for fact in failed),
        ]
    if report.gradients_equal:
        return [f"PASS  gradients and losses bit-identical to PyTorch's runtime ({where})"]
    stages = " ".join(map(str, report.reordered_stages))
    return [
        f"PASS  losses bit-identical to PyTorch's runtime ({where})",
        f"gradients bit-identical but for {len(report.differing)} norms and biases of stages "
        f"{stages}, which PyTorch sums in another order",
    ]
