"""What each process of the gloo driver runs: one rank, its transport, and its report."""

from __future__ import annotations

import os
from collections.abc import MutableSequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection

import torch
import torch.distributed

from bubbleproof.reference_exec.group_transport import GroupTransport
from bubbleproof.reference_exec.headers import HeaderTransport
from bubbleproof.reference_exec.plan import Plan
from bubbleproof.reference_exec.rank import Rank
from bubbleproof.reference_exec.rank_report import Report, carried_out

NOT_STARTED = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seat:
    """One process's place: its plan, where they all meet, and the seconds they have together."""

    rank: int
    plan: Plan
    rendezvous: str
    timeout: float
    debug_headers: bool = False


def work(seat: Seat, parent: Connection, positions: MutableSequence[int]) -> None:
    """Run one rank and report to the parent; ``positions[rank]`` is the action it is at.

    The process then stays until the parent hangs up: its end would break its peers' connections.
    """
    torch.set_num_threads(1)
    try:
        report = _run(seat, parent, positions)
    except Exception as error:  # whatever it is, the parent has to hear of it
        report = Report.failed(error)
    with suppress(OSError):  # a parent that is gone needs no report
        parent.send(report)
        parent.poll(None)
    os._exit(0 if report.is_done else 1)  # gloo's threads may hang in a normal exit


def _run(seat: Seat, parent: Connection, positions: MutableSequence[int]) -> Report:
    plan = seat.plan
    torch.distributed.init_process_group(
        "gloo",
        store=torch.distributed.FileStore(  # type: ignore[attr-defined]  # public, not exported
            seat.rendezvous, plan.num_processes
        ),
        rank=seat.rank,
        world_size=plan.num_processes,
    )
    replica, own = plan.seat(seat.rank)
    transport = GroupTransport.by_default(plan, seat.rank)
    if seat.debug_headers:
        transport = HeaderTransport(
            rank=seat.rank,
            messages=transport.messages,
            links=transport.links,
            seconds=seat.timeout,
        )
    within, among = transport.within(plan, replica), transport.among(plan, own)
    rank = Rank(plan, seat.rank, within, group=among)
    parent.send(Report(state="ready"))

    def at(position: int) -> None:
        positions[seat.rank] = position

    return carried_out(rank, transport, timeout=seat.timeout, at=at)
