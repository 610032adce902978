"""The processes of the gloo driver: what one does all its life, and what its parent sees of it.

A process works on one order after another and reports on each. Between its report and its release
it stays as it is, since the end of its connections could disturb a peer that is not through. It
ends when its parent hangs up, or ends in whatever way.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import MutableSequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path

import torch
import torch.distributed

from bubbleproof.reference_exec.drivers.gloo_server import uninterrupted
from bubbleproof.reference_exec.drivers.gloo_worker import Line, Seat, Worker
from bubbleproof.reference_exec.drivers.identity import Parts, require_same
from bubbleproof.reference_exec.drivers.rank_report import Report

NOT_STARTED = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a process is to do: a seat whose plan lies in the file ``plan``.

    ``parts`` are what the caller has loaded for it.

    It is small whatever the plan, so that sending it never waits for a process that hangs.
    """

    rank: int
    plan: str
    parts: Parts
    rendezvous: str
    timeout: float
    debug_headers: bool

    def seat(self) -> Seat:
        """The seat, its plan read."""
        return Seat(
            rank=self.rank,
            plan=pickle.loads(Path(self.plan).read_bytes()),
            rendezvous=self.rendezvous,
            timeout=self.timeout,
            debug_headers=self.debug_headers,
        )


class Process:
    """One process, seen from its parent."""

    def __init__(self, context: ForkServerContext, worker: Worker, number: int) -> None:
        """Start it; ``number`` is its rank in every plan."""
        self.connection, theirs = context.Pipe()
        self.has_served = False
        self._position = context.RawArray("q", [NOT_STARTED])
        self._process = context.Process(
            target=serve,
            args=(worker, theirs, self._position),
            name=f"rank {number}",
            daemon=True,
        )
        with uninterrupted():
            self._process.start()  # and with the first one the server
        theirs.close()

    @property
    def position(self) -> int:
        """The index of the action that its rank is at, or ``NOT_STARTED``."""
        return int(self._position[0])

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    def begin(self, order: Order) -> None:
        """Give it an order. That it is dead shows when it is listened to."""
        self._position[0] = NOT_STARTED
        with suppress(OSError):
            self.connection.send(order)

    def release(self) -> None:
        """Let go of what the last order left; nothing may be sent to it that it needs any more."""
        self.has_served = True
        with suppress(OSError):
            self.connection.send(None)

    def exit_code(self, seconds: float) -> int | None:
        """How it ended; None where that takes more than so many seconds."""
        self._process.join(timeout=seconds)
        return self._process.exitcode

    def kill(self) -> None:
        """End it, whatever it does; ``bury`` waits for that."""
        self.connection.close()
        self._process.kill()

    def bury(self) -> None:
        """Wait until it has ended."""
        self._process.join()
        self._process.close()


def serve(worker: Worker, parent: Connection, position: MutableSequence[int]) -> None:
    """Work on the parent's orders until it hangs up. None in an order's place is a release."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's to answer
    threading.Thread(target=_end_with_parent, name="end with parent", daemon=True).start()
    torch.set_num_threads(1)
    gc.freeze()  # what is here now stays; to look through it would cost each release a while
    line = Line(parent, position)
    with suppress(EOFError, OSError):  # a parent that is gone
        while True:
            order: Order | None = parent.recv()
            if order is None:
                _let_go()
            else:
                parent.send(_report(worker, order, line))
    os._exit(0)  # gloo's threads may hang in a normal exit


def _report(worker: Worker, order: Order, line: Line) -> Report:
    try:
        seat = order.seat()
        require_same(order.parts, seat.plan.spec)
        return worker(seat, line)
    except Exception as error:  # whatever it is, the parent has to hear of it
        return Report.failed(error)


def _let_go() -> None:
    """Leave the process group, and free what the last rank left in cycles."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    gc.collect()


def _end_with_parent() -> None:
    """End this process when its parent has ended, also by a signal that it could not catch."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
