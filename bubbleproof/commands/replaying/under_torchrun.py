"""``bubbleproof replay --torchrun``: this process is one rank of a replay, started by torchrun.

``torchrun --nproc-per-node RANKS -m bubbleproof.reference_exec SCHEDULE`` comes here. Every process
reads and verifies the schedule by itself, and all compare what they were given before anything
runs; the first one gathers the results, compares and prints. All end with one status, also where a
file is missing on one of several machines only, or a process dies.

What processes compare are the ``RunParts``: every option counts unless it is named in
``OF_ONE_PROCESS``, so that an option that is added later is compared without a word here.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import partial

from bubbleproof.commands.options.targets import require_writable
from bubbleproof.commands.output import BROKEN, INTERRUPTED, UNUSABLE, print_json, refuse, say
from bubbleproof.commands.replaying.read_sharded import known_pipeline, read_to_replay
from bubbleproof.commands.replaying.replay_files import print_report, write_files
from bubbleproof.commands.replaying.replay_options import ReplayRequest
from bubbleproof.formats import ScheduleFile
from bubbleproof.reference_exec.drivers.agreement import (
    IdentityPart,
    Paper,
    content_digest,
    model_parts,
    own_files,
    versions,
)
from bubbleproof.reference_exec.drivers.lifeline import End
from bubbleproof.reference_exec.drivers.nccl_order import (
    KeptOrder,
    NcclHere,
    agreed_semantics,
    kept_order,
    nccl_here,
    require_sharing,
)
from bubbleproof.reference_exec.drivers.place import ProcessPlace
from bubbleproof.reference_exec.drivers.torchrun import (
    BACKENDS,
    Processes,
    open_backend,
    require_processes,
)
from bubbleproof.reference_exec.evidence.compare import compared
from bubbleproof.reference_exec.evidence.oracle import single_threaded
from bubbleproof.reference_exec.plans.prepared import PreparedReplay, chosen_semantics, prepared
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.plans.run_options import ReplayOptions
from bubbleproof.reference_exec.runtime.device import Device
from bubbleproof.theory.model.schedule import Schedule

# What is read, and how, shows in schedule and problem; only the first process prints and writes.
OF_ONE_PROCESS = ("dialect", "output", "json", "explain", "torchrun")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Ready:
    given: ScheduleFile
    prepared: PreparedReplay
    device: Device
    semantics_why: str


def run_rank(request: ReplayRequest, *, parent: int) -> int:
    """Run this process's rank; the status that all processes end with.

    ``parent`` is the process that started this one. Where another process ends before its time this
    one is ended too, and does not return. Raises ``ValueError`` where no torchrun started this
    process, and where it does not find the others.
    """
    place = ProcessPlace.of(parent=parent)
    processes = Processes(place, on_end=partial(_tell, request, place))
    asked = RunParts(request)
    ready = _ready(request, place, asked)
    why = ready if isinstance(ready, str) else None
    refused = processes.refusal(asked.paper(place, why))
    if refused is not None or isinstance(ready, str):
        text, everyone = refused or (str(ready), True)
        if everyone or place.local_rank == 0:
            refuse(text)
        return processes.agreed(UNUSABLE)
    try:
        status = _replayed(request, ready, processes)
    except (ValueError, OSError) as error:  # a file that could not be written after all
        status = refuse(str(error))
    return processes.agreed(status)


def _tell(request: ReplayRequest, place: ProcessPlace, end: End) -> None:
    """Say why all end, before a replay or in its midst; the first process also as JSON."""
    text = end.text
    if end.status == INTERRUPTED:
        text = "interrupted"
    elif end.status != UNUSABLE:
        text = f"{backend_of(request)} replay ended: {text}"
        if request.output.json and place.is_first:
            print_json({"name": " ".join(request.schedule), "ok": False, "failures": [text]})
    if end.is_speaker:
        (say if end.status == BROKEN else refuse)(text)
    sys.stdout.flush()
    sys.stderr.flush()


def backend_of(request: ReplayRequest) -> str:
    """The backend asked for, gloo by default."""
    return request.run.backend or BACKENDS[0]


def _ready(request: ReplayRequest, place: ProcessPlace, asked: RunParts) -> _Ready | str:
    """The schedule verified and the device opened, or why this process cannot.

    What it comes to know of what it is to run it tells ``asked``.
    """
    try:
        # no seed: it picks among interleavings of one process
        options = replace(request.options(BACKENDS[0]), seed=0)
        if place.is_first:  # which writes them
            require_writable(request.targets)
        given = read_to_replay(request)
        schedule = given.timed_roughly() if request.run.unsafe else given.timed()
        asked.know(given, schedule)
        device = open_backend(
            options.backend,
            place,
            request.run.device,
            shares=request.communication.share_gpu,
        )
        order = _order(options, given, asked, shares=request.communication.share_gpu)
        ready = prepared(
            known_pipeline(given),
            schedule,
            request.model.spec(),
            options,
            program=given.lowered,
            semantics=order.semantics,
        )
        asked.know_plan(ready.plan)
        require_processes(place, ready.plan)
    except (ValueError, OSError) as error:
        return str(error)
    return _Ready(given=given, prepared=ready, device=device, semantics_why=order.why)


def _order(
    options: ReplayOptions, given: ScheduleFile, asked: RunParts, *, shares: bool = False
) -> KeptOrder:
    """What the program is verified under; over NCCL what it keeps here, which is told ``asked``.

    Raises ``ValueError`` where ranks are to share a GPU (``shares``) and NCCL lets none.
    """
    chosen = chosen_semantics(options.backend, options.semantics, BACKENDS)
    if options.backend != "nccl":
        return KeptOrder(semantics=chosen, why="")
    here, pipeline = nccl_here(), known_pipeline(given)
    asked.know_nccl(here)
    if shares:
        require_sharing(here)
    kept = kept_order(here, ranks=pipeline.num_ranks, replicas=options.data_parallel or 1)
    return agreed_semantics(kept, options.semantics)


def _replayed(request: ReplayRequest, ready: _Ready, processes: Processes) -> int:
    """Run, and on the first process compare and print; its status."""
    plan, device = ready.prepared.plan, ready.device
    with single_threaded():
        device.start_peak()
        begun = time.perf_counter()
        results = processes.run(plan, ready.prepared.options, device)
        seconds = time.perf_counter() - begun
        if not processes.place.is_first:
            return BROKEN  # the first process knows better
        report = compared(
            ready.prepared,
            results,
            seconds=seconds,
            device=device,
            allocator_peak_bytes=processes.peak_bytes,
            semantics_why=ready.semantics_why,
        )
    status = print_report(ready.given.name, report, request)
    write_files(request, ready.given, report)
    return status


class RunParts:
    """The parts that a process has come to know: at first its options and versions."""

    def __init__(self, request: ReplayRequest) -> None:
        self._spec = request.model.spec()
        self._parts = {**dict(_option_parts(request)), **versions(), **own_files()}

    def know(self, given: ScheduleFile, schedule: Schedule) -> None:
        """The schedule and its problem have been read; a user's model is loaded here."""
        orders = (given.program.actions, given.program.resource, schedule.program, schedule.start)
        self._parts["schedule"] = IdentityPart.of_content(content_digest(orders), given.name)
        self._parts["problem"] = IdentityPart.of_content(content_digest(given.problem))
        self._parts |= model_parts(self._spec)

    def know_nccl(self, here: NcclHere) -> None:
        """Versions and variables that order what NCCL runs have been read."""
        self._parts |= here.parts()

    def know_plan(self, plan: ReplayPlan) -> None:
        """The programs that the ranks are to run have been made."""
        self._parts["program"] = IdentityPart.of_content(content_digest(plan))

    def paper(self, place: ProcessPlace, refusal: str | None) -> Paper:
        """What this process tells the others, and why it cannot run."""
        parts = {name: (part.mark, part.shown) for name, part in self._parts.items()}
        return Paper(rank=place.rank, node=place.node, parts=parts, refusal=refusal)


def _option_parts(request: ReplayRequest) -> Iterator[tuple[str, IdentityPart]]:
    for group in (request.run, request.model, request.training, request.communication):
        for field in fields(group):
            if field.name not in OF_ONE_PROCESS:
                value = getattr(group, field.name)
                option = f"--{field.name.replace('_', '-')}"
                yield option, IdentityPart.of("not given" if value is None else value)
