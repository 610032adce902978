"""What a process of the gloo driver does with a plan: one rank, its transport, its report."""

from __future__ import annotations

from collections.abc import Callable, MutableSequence
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection

import torch
import torch.distributed

from bubbleproof.reference_exec.drivers.group_transport import GroupTransport
from bubbleproof.reference_exec.drivers.queued_headers import with_headers
from bubbleproof.reference_exec.drivers.rank_report import Report, carried_out
from bubbleproof.reference_exec.plans.plan import Plan
from bubbleproof.reference_exec.runtime.rank import Rank


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seat:
    """One process's place: its plan, where they all meet, and the seconds they have together."""

    rank: int
    plan: Plan
    rendezvous: str
    timeout: float
    debug_headers: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """What a process tells its parent while it works; ``position`` has the one place it is at."""

    parent: Connection
    position: MutableSequence[int]

    def ready(self) -> None:
        """Say that the rank stands ready to begin."""
        self.parent.send(Report(state="ready"))

    def at(self, position: int) -> None:
        """Note the action that the rank has come to."""
        self.position[0] = position


Worker = Callable[[Seat, Line], Report]


def join_group(seat: Seat, timeout: timedelta | None = None) -> None:
    """Make the process group of a seat's plan, which all its processes call."""
    size = seat.plan.num_processes
    store = torch.distributed.FileStore(  # type: ignore[attr-defined]  # public, not exported
        seat.rendezvous, size
    )
    torch.distributed.init_process_group(
        "gloo", store=store, rank=seat.rank, world_size=size, timeout=timeout
    )


def work(seat: Seat, line: Line) -> Report:
    """Run one rank in a process group of the plan's own, which is there when this returns."""
    plan = seat.plan
    if plan.training is not None:
        torch.optim.SGD([torch.zeros(1)])  # what torch loads for it would keep a group that is here
    join_group(seat)
    replica, own = plan.seat(seat.rank)
    transport = GroupTransport.by_default(plan, seat.rank)
    if seat.debug_headers:
        transport = with_headers(transport, seat.timeout)
    within, among = transport.within(plan, replica), transport.among(plan, own)
    rank = Rank(plan, seat.rank, within, group=among)
    line.ready()
    return carried_out(rank, transport, timeout=seat.timeout, at=line.at)
