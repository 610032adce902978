"""``bubbleproof replay --torchrun``: this process is one rank of a replay, started by torchrun.

``torchrun --nproc-per-node RANKS -m bubbleproof.reference_exec SCHEDULE`` comes here. Every process
reads and verifies the schedule by itself; the first one gathers the results, compares and prints.
All end with one status, also where a file is missing on one of several machines only.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from bubbleproof.commands.inputs import Given
from bubbleproof.commands.output import BROKEN, UNUSABLE, refuse, say
from bubbleproof.commands.read_sharded import read_to_replay
from bubbleproof.commands.replay import evidence, print_report
from bubbleproof.commands.replay_files import write_files
from bubbleproof.reference_exec.device import Device
from bubbleproof.reference_exec.gloo import RankFailed
from bubbleproof.reference_exec.oracle import single_threaded
from bubbleproof.reference_exec.replay import Prepared, chosen_semantics, judged, prepared
from bubbleproof.reference_exec.spec import ModelSpec
from bubbleproof.reference_exec.torchrun import (
    BACKENDS,
    Meeting,
    Place,
    open_backend,
    require_processes,
)
from bubbleproof.reference_exec.training import Training
from bubbleproof.reference_exec.zero_levels import ZeroLevels


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is to be replayed, and how; ``device`` None is the backend's own."""

    words: Sequence[str]
    spec: ModelSpec
    training: Training | None = None
    backend: str = "gloo"
    device: str | None = None
    comm: str | None = None
    timeout: float = 60.0
    dialect: str | None = None
    is_unsafe: bool = False
    data_parallel: int = 1
    levels: ZeroLevels | None = None
    targets: tuple[str, ...] = ()
    has_headers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Ready:
    given: Given
    prepared: Prepared
    device: Device


def run_rank(request: Request, *, as_json: bool) -> int:
    """Run this process's rank; the status that all processes end with.

    Raises ``ValueError`` where no torchrun started this process.
    """
    meeting = Meeting(Place.of())
    ready = _ready(request, meeting.place)
    refusal = meeting.first_refusal(ready if isinstance(ready, str) else None)
    if refusal is not None or isinstance(ready, str):
        if meeting.place.is_first:
            refuse(str(refusal))
        return meeting.agreed(UNUSABLE)
    try:
        status = _replayed(request, ready, meeting, as_json=as_json)
    except RankFailed as error:
        say(str(error))
        status = BROKEN
    return meeting.agreed(status)


def _ready(request: Request, place: Place) -> _Ready | str:
    """The schedule verified and the device opened, or why this process cannot."""
    try:
        if not request.timeout > 0:
            raise ValueError(f"replay timeout must be more than 0 seconds, got {request.timeout}")
        semantics = chosen_semantics(request.backend, request.comm, BACKENDS)
        if request.backend == "nccl" and (request.data_parallel > 1 or request.has_headers):
            raise ValueError(
                "replicas and --debug-headers talk through the host: they run on gloo, not on nccl"
            )
        given = read_to_replay(
            request.words,
            dialect=request.dialect,
            data_parallel=request.data_parallel,
            levels=request.levels,
        )
        ready = prepared(
            given.problem,
            given.timed_roughly() if request.is_unsafe else given.timed(),
            request.spec,
            program=given.program if given.has_communication else None,
            semantics=semantics,
            unsafe=request.is_unsafe,
            training=request.training,
            data_parallel=request.data_parallel,
            zero=request.levels,
        )
        require_processes(place, ready.plan)
        device = open_backend(request.backend, place, request.device)
    except (ValueError, OSError) as error:
        return str(error)
    return _Ready(given=given, prepared=ready, device=device)


def _replayed(request: Request, ready: _Ready, meeting: Meeting, *, as_json: bool) -> int:
    """Run, and on the first process compare and print; its status."""
    plan, device = ready.prepared.plan, ready.device
    with single_threaded():
        device.start_peak()
        begun = time.perf_counter()
        results = meeting.run(
            plan,
            backend=request.backend,
            device=device,
            timeout=request.timeout,
            debug_headers=request.has_headers,
        )
        seconds = time.perf_counter() - begun
        if not meeting.place.is_first:
            return BROKEN  # the first process knows better
        report = judged(
            ready.prepared,
            results,
            backend=request.backend,
            seconds=seconds,
            device=device,
            allocator_peak_bytes=meeting.peak_bytes,
        )
    rows = evidence(report)
    write_files(request.targets, ready.given, report, request.spec, rows, quiet=as_json)
    return print_report(ready.given.name, report, as_json=as_json)
