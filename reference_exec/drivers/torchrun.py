"""The torchrun driver: each process was started by others, on one machine or many, and runs a rank.

``torchrun`` (or whatever sets RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT) starts as
many processes as the schedule has ranks. All have a ``Lifeline`` to a ``Hub`` in the first: through
it they compare what they were given before anything runs, hear of each other's ends, and end with
one status. Results come together in a gloo group that carries no message of the replay; those go
through groups of their own (``GroupTransport.by_pairs``) on gloo or NCCL.

Where processes meet that others started: torch's store, and in it the address of the hub.

With torchrun the store is its own, on the first node; otherwise the first process keeps one. All
waiting here is by looking again, so that an interrupt or the end of the agent is answered.
"""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed
from torch.distributed import (  # type: ignore[attr-defined]  # public, not exported
    PrefixStore,
    TCPStore,
)
from torch.distributed.distributed_c10d import Store

from bubbleproof.reference_exec.drivers.agreement import Paper, disagreement, refusal
from bubbleproof.reference_exec.drivers.gloo import GRACE_SECONDS, STARTUP_SECONDS
from bubbleproof.reference_exec.drivers.group_transport import GroupTransport
from bubbleproof.reference_exec.drivers.hub import Hub
from bubbleproof.reference_exec.drivers.lifeline import End, Lifeline
from bubbleproof.reference_exec.drivers.place import ProcessPlace
from bubbleproof.reference_exec.drivers.rank_report import RankReport, carried_out, seated
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.plans.run_options import ReplayOptions
from bubbleproof.reference_exec.runtime.cuda import allow_waiting_kernels, open_device
from bubbleproof.reference_exec.runtime.device import CPU, Device
from bubbleproof.reference_exec.runtime.rank import RankResult, account

LOOK_SECONDS = 0.05
KEY = "bubbleproof/hub"


def open_store(place: ProcessPlace, seconds: float) -> Store:
    """The store of all processes, for this attempt of theirs.

    Raises ``ValueError`` where nobody keeps it within ``seconds``, and where another program has
    the port.
    """
    is_master = place.is_first and not place.has_store
    where = f"{place.address}:{place.port}"
    if not is_master:
        text = f"the first process is not at {where} (MASTER_ADDR and MASTER_PORT)"
        _await(lambda: _is_open(place.address, place.port), place, seconds, text)
    try:
        store = TCPStore(
            place.address,
            place.port,
            is_master=is_master,
            timeout=timedelta(seconds=seconds),
            wait_for_workers=False,
        )
    except RuntimeError as error:
        line = str(error).partition("\n")[0]
        raise ValueError(f"no store at {where} (MASTER_ADDR and MASTER_PORT): {line}") from None
    return PrefixStore(f"bubbleproof/{place.attempt}", store)


def hub_address(
    store: Store, own: tuple[int, str] | None, place: ProcessPlace, seconds: float
) -> tuple[int, str]:
    """The hub's port and token: ``own`` are the first process's, for all others to find.

    Raises ``ValueError`` where the first process does not come within ``seconds``, or there are
    two of them.
    """
    if own is not None:
        said = f"{own[0]} {own[1]}"
        if store.compare_set(KEY, "", said).decode() != said:
            raise ValueError("two processes were given rank 0; ranks must differ")
        return own
    text = f"rank 0 did not come to {place.address}:{place.port} within {seconds:g} s"
    try:
        _await(lambda: store.check([KEY]), place, seconds, text)
        port, _, token = store.get(KEY).decode().partition(" ")
    except RuntimeError:  # torch's, of a connection that ended
        raise ValueError(f"rank 0 or its torchrun ended before rank {place.rank} met it") from None
    return int(port), token


def _is_open(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=5.0).close()
    except OSError:
        return False
    return True


def _await(is_there: Callable[[], bool], place: ProcessPlace, seconds: float, text: str) -> None:
    """Look until it is there. Raises ``ValueError`` after ``seconds``, or when the agent ends."""
    deadline = time.monotonic() + seconds
    while not is_there():
        if time.monotonic() > deadline:
            raise ValueError(text)
        if place.is_orphan:
            raise ValueError(f"rank {place.rank} lost torchrun, which has ended")
        time.sleep(LOOK_SECONDS)


BACKENDS = ("gloo", "nccl")
PATIENCE = timedelta(hours=1)  # while the first process compares
T = TypeVar("T")


def require_processes(place: ProcessPlace, plan: ReplayPlan) -> None:
    """Raise ``ValueError`` where there are more or fewer processes than ranks in all replicas."""
    if place.world_size != plan.num_processes:
        replicas = f" in {plan.num_replicas} replicas" if plan.num_replicas > 1 else ""
        raise ValueError(
            f"the schedule has {plan.num_ranks} ranks{replicas} and needs a process for each, "
            f"torchrun started {place.world_size}; --nproc-per-node x --nnodes must be "
            f"{plan.num_processes}"
        )


def open_backend(
    backend: str, place: ProcessPlace, device_name: str | None = None, *, shares: bool = False
) -> Device:
    """The device of this process: the cpu for gloo, the GPU of its number on its node for nccl.

    Where ranks may share GPUs (``shares``) numbers beyond the last begin anew at the first.

    Raises ``ValueError`` for a backend that is unknown, not there, or not on the device named.
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(BACKENDS)}, got {backend!r}")
    own = "cpu" if backend == "gloo" else "cuda"
    if device_name not in (None, own):
        raise ValueError(f"{backend} takes its messages from {own}, got --device {device_name}")
    if backend == "gloo":
        if shares:
            raise ValueError("--share-gpu is for ranks on GPUs (--backend nccl), gloo has none")
        return CPU
    allow_waiting_kernels(shares=shares)
    found = torch.cuda.device_count() if shares else 0
    device = open_device("cuda", place.local_rank % found if found else place.local_rank)
    if not torch.distributed.is_nccl_available():
        raise ValueError(
            f"nccl was asked for, this torch ({torch.__version__}) was built without it"
        )
    return device


class Processes:
    """All processes that torchrun started; each calls the same methods in the same order.

    Where one ends that should not, all are ended, whatever they do: ``on_end`` says why.
    """

    def __init__(self, place: ProcessPlace, *, on_end: Callable[[End], None]) -> None:
        """Come to where all meet. Raises ``ValueError`` where the first is not there in time."""
        self.place = place
        self.peak_bytes: tuple[int, ...] = ()  # of each device's allocator, on the first
        self._on_end = on_end
        self._store = open_store(place, STARTUP_SECONDS)
        token = secrets.token_hex(16)
        self._hub = None
        if place.is_first:
            self._hub = Hub(place.world_size, _TOPICS, token=token, address=place.address)
        own = None if self._hub is None else (self._hub.port, token)
        port, token = hub_address(self._store, own, place, STARTUP_SECONDS)
        self._line = Lifeline(place, (place.address, port), token, on_end=self._finish)

    def refusal(self, paper: Paper) -> tuple[str, bool] | None:
        """Why nothing runs, and whether every process says so; None where all agree and can."""
        said = self._line.exchange("papers", asdict(paper))
        if not isinstance(said, dict):
            return None
        return str(said["text"]), bool(said["everyone"])

    def run(
        self,
        plan: ReplayPlan,
        options: ReplayOptions,
        device: Device,
    ) -> list[RankResult]:
        """Run this process's rank; on the first the results of all in rank order, elsewhere none.

        The plan is not verified here: see ``replay``. Where a rank fails, or does not report in
        ``options.timeout`` seconds and some, all processes end.
        """
        timeout = options.timeout
        try:
            torch.distributed.init_process_group(
                "gloo",
                store=self._store,
                rank=self.place.rank,
                world_size=self.place.world_size,
                timeout=timedelta(seconds=STARTUP_SECONDS),
            )
            patient = torch.distributed.new_group(backend="gloo", timeout=PATIENCE)
            # NCCL's watchdog ends a process whose receive waits longer than its group may take
            seconds = max(STARTUP_SECONDS, timeout + GRACE_SECONDS)
            transport = GroupTransport.by_pairs(
                plan, self.place.rank, backend=options.backend, device=device, seconds=seconds
            )
            with account(plan):
                rank = seated(plan, self.place.rank, transport, device)
                report = carried_out(rank, transport, timeout=timeout, at=lambda _: None)
        except (Exception, SystemExit) as error:  # whatever it is, all have to hear of it
            report = RankReport.failed(error)
        if report.ending is not None:
            self._line.end(report.ending, report.text)
        self._line.exchange("reported", None, timeout + GRACE_SECONDS)
        told = self._on_first((report, device.peak_bytes()), patient)
        self.peak_bytes = tuple(peak for _, peak in told if peak is not None)
        return [each.result for each, _ in told if each.result is not None]

    def agreed(self, status: int) -> int:
        """The first process's status, on all; the others wait for it. All part here."""
        said = self._line.exchange("status", status)
        self._line.leave()
        if self._hub is not None:
            self._hub.linger()
        return said if isinstance(said, int) else status

    def _on_first(self, own: T, group: torch.distributed.ProcessGroup | None) -> list[T]:
        """What each process gives, in rank order, on the first; an empty list elsewhere."""
        given = [own] * self.place.world_size if self.place.is_first else None
        torch.distributed.gather_object(own, given, group=group)
        return given or []

    def _finish(self, end: End) -> None:
        """Say why this process ends; the first lets all others hear of it before."""
        self._on_end(end)
        if self._hub is not None:
            self._hub.linger()


def _judged(said: Sequence[object]) -> object:
    """What all processes get to hear of their papers: a refusal, or nothing."""
    papers = [Paper.from_json(each) for each in said]
    for rank, paper in enumerate(papers):
        if paper.rank != rank:
            raise ValueError(f"rank {rank} said that it is rank {paper.rank}")
    if (text := disagreement(papers)) is not None:
        return {"text": text, "everyone": True}
    text = refusal(papers)
    return None if text is None else {"text": text, "everyone": False}


_TOPICS: dict[str, Callable[[Sequence[object]], object]] = {
    "papers": _judged,
    "reported": lambda _: None,
    "status": lambda said: said[0],
}
