"""The torchrun driver: each process was started by others, on one machine or many, and runs a rank.

``torchrun`` (or whatever sets RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT) starts as
many processes as the schedule has ranks. They meet in a gloo group that carries no message of the
replay: only refusals, reports and the verdict, so that all processes end with the same status. The
messages go through groups of their own (``GroupTransport.by_pairs``) on gloo or NCCL.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed

from bubbleproof.reference_exec.drivers.gloo import GRACE_SECONDS, STARTUP_SECONDS, RankFailed
from bubbleproof.reference_exec.drivers.group_transport import GroupTransport
from bubbleproof.reference_exec.drivers.queued_headers import with_headers
from bubbleproof.reference_exec.drivers.rank_report import Report, carried_out, gravest, one_line
from bubbleproof.reference_exec.plans.plan import Plan
from bubbleproof.reference_exec.runtime.cuda import allow_waiting_kernels
from bubbleproof.reference_exec.runtime.device import CPU, Device, open_device
from bubbleproof.reference_exec.runtime.rank import Rank, RankResult

BACKENDS = ("gloo", "nccl")
PATIENCE = timedelta(hours=1)  # while the first process compares
T = TypeVar("T")
VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A process among those that were started: its rank, their number, its number on its node."""

    rank: int
    world_size: int
    local_rank: int

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    @classmethod
    def of(cls, environment: Mapping[str, str] = os.environ) -> Place:
        """The place that torchrun's variables tell.

        Raises ``ValueError`` where one is missing or no number.
        """
        missing = [name for name in VARIABLES if name not in environment]
        if missing:
            raise ValueError(
                f"a replay under torchrun needs {', '.join(VARIABLES)}; {missing[0]} is not set: "
                "start it by torchrun --nproc-per-node RANKS -m bubbleproof.reference_exec SCHEDULE"
            )
        numbers = {}
        for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
            if not environment[name].isdecimal():
                raise ValueError(f"{name} must be a whole number, got {environment[name]!r}")
            numbers[name.lower()] = int(environment[name])
        return cls(**numbers)


def require_processes(place: Place, plan: Plan) -> None:
    """Raise ``ValueError`` where there are more or fewer processes than ranks in all replicas."""
    if place.world_size != plan.num_processes:
        replicas = f" in {plan.num_replicas} replicas" if plan.num_replicas > 1 else ""
        raise ValueError(
            f"the schedule has {plan.num_ranks} ranks{replicas} and needs a process for each, "
            f"torchrun started {place.world_size}; --nproc-per-node x --nnodes must be "
            f"{plan.num_processes}"
        )


def open_backend(backend: str, place: Place, device_name: str | None = None) -> Device:
    """The device of this process: the cpu for gloo, the GPU of its number on its node for nccl.

    Raises ``ValueError`` for a backend that is unknown, not there, or not on the device named.
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(BACKENDS)}, got {backend!r}")
    own = "cpu" if backend == "gloo" else "cuda"
    if device_name not in (None, own):
        raise ValueError(f"{backend} takes its messages from {own}, got --device {device_name}")
    if backend == "gloo":
        return CPU
    allow_waiting_kernels()
    device = open_device("cuda", place.local_rank)
    if not torch.distributed.is_nccl_available():
        raise ValueError(
            f"nccl was asked for, this torch ({torch.__version__}) was built without it"
        )
    return device


class Meeting:
    """All processes that torchrun started, met; each calls the same methods in the same order."""

    def __init__(self, place: Place) -> None:
        """Wait until all are there. Raises torch's ``RuntimeError`` where they are not."""
        self.place = place
        self.is_whole = True  # whether the others can still be talked to
        self.peak_bytes: tuple[int, ...] = ()  # of each device's allocator, on the first
        torch.distributed.init_process_group(
            "gloo",
            rank=place.rank,
            world_size=place.world_size,
            timeout=timedelta(seconds=STARTUP_SECONDS),
        )
        self._patient = torch.distributed.new_group(backend="gloo", timeout=PATIENCE)

    def first_refusal(self, own: str | None) -> str | None:
        """What the first process that refuses has to say, the same on all; None where none does."""
        said: list[str | None] = [None] * self.place.world_size
        torch.distributed.all_gather_object(said, own)
        return next((text for text in said if text is not None), None)

    def run(
        self,
        plan: Plan,
        *,
        backend: str,
        device: Device,
        timeout: float,
        debug_headers: bool = False,
    ) -> list[RankResult]:
        """Run this process's rank; on the first the results of all in rank order, elsewhere none.

        The plan is not verified here: see ``replay``. Raises ``RankFailed`` on the first process
        where a rank failed or stalled, and on any where one does not report in ``timeout`` seconds
        and some. ``debug_headers`` sends a header ahead of each message.
        """
        try:
            # NCCL's watchdog ends a process whose receive waits longer than its group may take
            seconds = max(STARTUP_SECONDS, timeout + GRACE_SECONDS)
            transport = GroupTransport.by_pairs(
                plan, self.place.rank, backend=backend, device=device, seconds=seconds
            )
            if debug_headers:
                transport = with_headers(transport, timeout)
            replica, own = plan.seat(self.place.rank)
            within, among = transport.within(plan, replica), transport.among(plan, own)
            rank = Rank(plan, self.place.rank, within, device, group=among)
            report = carried_out(rank, transport, timeout=timeout, at=_unobserved)
        except Exception as error:  # whatever it is, the first process has to hear of it
            report = Report.failed(error)
        self._await_all(backend, timeout + GRACE_SECONDS)
        told = self._on_first((report, device.peak_bytes()))
        reports = [each for each, _ in told]
        self.peak_bytes = tuple(peak for _, peak in told if peak is not None)
        if texts := gravest(dict(enumerate(reports))):
            raise RankFailed(f"{backend} replay ended: {'; '.join(texts)}")
        return [each.result() for each in reports]

    def agreed(self, status: int) -> int:
        """The first process's status, on all; the others wait for it."""
        if not self.is_whole:
            return status
        said = [status]
        torch.distributed.broadcast_object_list(said, src=0, group=self._patient)
        return said[0]

    def _await_all(self, backend: str, seconds: float) -> None:
        try:
            torch.distributed.monitored_barrier(timeout=timedelta(seconds=seconds))
        except RuntimeError as error:
            self.is_whole = False
            raise RankFailed(f"{backend} replay ended: no report: {one_line(error)}") from None

    def _on_first(self, own: T) -> list[T]:
        """What each process gives, in rank order, on the first; an empty list elsewhere."""
        given = [own] * self.place.world_size if self.place.is_first else None
        torch.distributed.gather_object(own, given, group=self._patient)
        return given or []


def _unobserved(position: int) -> None:
    del position
