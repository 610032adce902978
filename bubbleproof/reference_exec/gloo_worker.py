"""What each process of the gloo driver runs: one rank, its transport, and its report.

Messages carry no tags, as on NCCL: what arrives is what the order says. EVICT and LOAD have a group
of their own, so that a message never stands in the way of a transfer. A receive is posted at its
RECV and waited for where it is used; a send's buffer is kept, and waited for, until the end.
"""

from __future__ import annotations

import os
import time
from collections.abc import MutableSequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from multiprocessing.connection import Connection
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed

from bubbleproof.reference_exec.plan import TRANSFER_KINDS, Plan
from bubbleproof.reference_exec.rank import Rank, RankResult
from bubbleproof.reference_exec.transport import Blocked
from bubbleproof.theory.actions import Action

NOT_STARTED = -1
Array = npt.NDArray[np.float64] | npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seat:
    """One rank's place: its plan, where the ranks meet, and the seconds they have together."""

    rank: int
    plan: Plan
    rendezvous: str
    timeout: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Report:
    """A rank is ``ready``, ``done`` (with a result), ``stalled``, ``failed`` or ``died``."""

    state: str
    text: str = ""
    gradients: dict[tuple[int, str], Array] = field(default_factory=dict)
    losses: dict[tuple[int, int], Array] = field(default_factory=dict)
    live_bytes: tuple[int, ...] = ()
    updated: dict[tuple[int, str], Array] = field(default_factory=dict)
    host_live_bytes: tuple[int, ...] = ()

    @property
    def is_ready(self) -> bool:
        return self.state == "ready"

    @property
    def is_done(self) -> bool:
        return self.state == "done"

    @property
    def is_failure(self) -> bool:
        return self.state in ("stalled", "failed", "died")

    @classmethod
    def of(cls, result: RankResult) -> Report:
        """A result as numpy arrays: torch sends tensors as shared memory of a dying process."""
        return cls(
            state="done",
            gradients={key: value.numpy() for key, value in result.gradients.items()},
            losses={key: value.numpy() for key, value in result.losses.items()},
            live_bytes=result.live_bytes,
            updated={key: value.numpy() for key, value in result.updated.items()},
            host_live_bytes=result.host_live_bytes,
        )

    def result(self) -> RankResult:
        """The result that ``of`` packed."""
        return RankResult(
            gradients={key: torch.tensor(value) for key, value in self.gradients.items()},
            losses={key: torch.tensor(value) for key, value in self.losses.items()},
            live_bytes=self.live_bytes,
            updated={key: torch.tensor(value) for key, value in self.updated.items()},
            host_live_bytes=self.host_live_bytes,
        )


class _Work(Protocol):
    """The part of ``torch.distributed.Work`` used here."""

    def is_completed(self) -> bool: ...

    def wait(self, timeout: timedelta) -> bool: ...


@dataclass(slots=True, kw_only=True, eq=False)
class _GlooTransfer:
    """A posted send or receive, with the buffer that must live until it ends."""

    work: _Work
    tensor: torch.Tensor = field(repr=False)
    waited: bool = False

    def is_done(self) -> bool:
        return self.waited

    def get(self) -> torch.Tensor:
        return self.tensor

    def wait(self, seconds: float) -> None:
        """Block until the transfer ends. Raises torch's ``RuntimeError`` where it does not."""
        self.work.wait(timedelta(seconds=max(seconds, 0.001)))
        self.waited = True


@dataclass(frozen=True, slots=True, kw_only=True)
class _GlooTransport:
    is_blocking = False
    links: torch.distributed.ProcessGroup | None

    def isend(self, tag: Action, tensor: torch.Tensor, *, destination: int) -> _GlooTransfer:
        message = tensor.contiguous()
        work = torch.distributed.isend(message, destination, group=self._group(tag))
        assert work is not None, f"{tag}: no process group to send in"
        return _GlooTransfer(work=work, tensor=message)

    def irecv(self, tag: Action, buffer: torch.Tensor, *, source: int) -> _GlooTransfer:
        work = torch.distributed.irecv(buffer, source, group=self._group(tag))
        assert work is not None, f"{tag}: no process group to receive in"
        return _GlooTransfer(work=work, tensor=buffer)

    def _group(self, tag: Action) -> torch.distributed.ProcessGroup | None:
        return self.links if tag.kind in TRANSFER_KINDS else None


def work(seat: Seat, parent: Connection, positions: MutableSequence[int]) -> None:
    """Run one rank and report to the parent; ``positions[rank]`` is the action it is at.

    The process then stays until the parent hangs up: its end would break its peers' connections.
    """
    torch.set_num_threads(1)
    try:
        report = _run(seat, parent, positions)
    except Exception as error:  # whatever it is, the parent has to hear of it
        report = Report(state="failed", text=f"failed: {_one_line(error)}")
    with suppress(OSError):  # a parent that is gone needs no report
        parent.send(report)
        parent.poll(None)
    os._exit(0 if report.is_done else 1)  # gloo's threads may hang in a normal exit


def _run(seat: Seat, parent: Connection, positions: MutableSequence[int]) -> Report:
    plan = seat.plan
    torch.distributed.init_process_group(
        "gloo",
        store=torch.distributed.FileStore(  # type: ignore[attr-defined]  # public, not exported
            seat.rendezvous, plan.num_ranks
        ),
        rank=seat.rank,
        world_size=plan.num_ranks,
    )
    transport = _GlooTransport(links=torch.distributed.new_group() if plan.acceptors else None)
    rank = Rank(plan, seat.rank, transport)
    parent.send(Report(state="ready"))
    deadline = time.monotonic() + seat.timeout
    positions[seat.rank] = 0
    for event in rank.run():
        if event is None:
            positions[seat.rank] = rank.position + 1
        elif (why := _wait(event, deadline)) is not None:
            return Report(state="stalled", text=f"stalled: {event} ({why})")
    return Report.of(rank.result())


def _wait(blocked: Blocked, deadline: float) -> str | None:
    """Wait for a transfer; why it did not end, or None when it did."""
    transfer = blocked.transfer
    assert isinstance(transfer, _GlooTransfer)
    try:
        transfer.wait(deadline - time.monotonic())
    except RuntimeError as error:
        return _one_line(error)
    return None


def _one_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"
