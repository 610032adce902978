"""The processes of the gloo driver: what each does all its life, and with one plan.

A process works on one order after another and reports on each. Between its report and its release
it stays as it is, since the end of its connections could disturb a peer that is not through. It
ends when its parent hangs up, or ends in whatever way.
"""

from __future__ import annotations

import gc
import io
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, MutableSequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path

import torch
import torch.distributed

from bubbleproof.reference_exec.drivers.agreement import Parts, require_same
from bubbleproof.reference_exec.drivers.group_transport import GroupTransport
from bubbleproof.reference_exec.drivers.rank_report import RankReport, carried_out, seated
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.runtime.rank import account


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seat:
    """One process's place: its plan, where they all meet, and the seconds they have together."""

    rank: int
    plan: ReplayPlan
    rendezvous: str
    timeout: float


@dataclass(frozen=True, slots=True, eq=False)
class ParentLine:
    """What a process tells its parent while it works; ``position`` has the one place it is at."""

    parent: Connection
    position: MutableSequence[int]

    def ready(self) -> None:
        """Say that the rank stands ready to begin."""
        self.tell(RankReport())

    def at(self, position: int) -> None:
        """Note the action that the rank has come to."""
        self.position[0] = position

    def tell(self, report: RankReport) -> None:
        """Send a report, tensors included: ``send`` would leave them in this process's memory."""
        written = io.BytesIO()
        pickler = pickle.Pickler(written)
        pickler.dispatch_table = {torch.Tensor: _as_array}
        pickler.dump(report)
        self.parent.send_bytes(written.getvalue())


def _as_array(tensor: torch.Tensor) -> tuple[Callable[..., torch.Tensor], tuple[object, ...]]:
    """How a tensor is pickled: by its array, which takes a tenth of torch's own time.

    NumPy has no bfloat16: of 16 bits the array holds the bits.
    """
    plain = tensor.detach()
    if plain.dtype is torch.bfloat16:
        return _of_bits, (plain.contiguous().view(torch.int16).numpy(),)
    return torch.tensor, (plain.numpy(),)


def _of_bits(bits: object) -> torch.Tensor:
    return torch.tensor(bits).view(torch.bfloat16)


Worker = Callable[[Seat, ParentLine], RankReport]


def give_order(path: Path, seat: Seat, parts: Parts) -> None:
    """Write what the processes of a plan are to do; each takes the ``seat`` of its own number.

    ``parts`` are what the caller has loaded for it.
    """
    path.write_bytes(pickle.dumps((seat, parts)))


def serve(worker: Worker, number: int, parent: Connection, position: MutableSequence[int]) -> None:
    """Work on the parent's orders, named by file, until it hangs up; None is a release.

    A name is small whatever the plan, so that sending it never waits for a process that hangs.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's to answer
    threading.Thread(target=_end_with_parent, name="end with parent", daemon=True).start()
    torch.set_num_threads(1)
    gc.freeze()  # what is here now stays; to look through it would cost each release a while
    line = ParentLine(parent, position)
    with suppress(EOFError, OSError):  # a parent that is gone
        while True:
            order: str | None = parent.recv()
            if order is None:
                _let_go()
            else:
                line.tell(_report(worker, number, order, line))
    os._exit(0)  # gloo's threads may hang in a normal exit


def _report(worker: Worker, number: int, order: str, line: ParentLine) -> RankReport:
    try:
        seat, parts = pickle.loads(Path(order).read_bytes())
        require_same(parts, seat.plan.spec)
        return worker(replace(seat, rank=number), line)
    except Exception as error:  # whatever it is, the parent has to hear of it
        return RankReport.failed(error)


def _let_go() -> None:
    """Leave the process group, and free what the last rank left in cycles."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    gc.collect()


def _end_with_parent() -> None:
    """End this process when its parent has ended, also by a signal that it could not catch."""
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
    os._exit(1)


def join_group(seat: Seat, timeout: timedelta | None = None) -> None:
    """Make the process group of a seat's plan, which all its processes call."""
    size = seat.plan.num_processes
    store = torch.distributed.FileStore(  # type: ignore[attr-defined]  # public, not exported
        seat.rendezvous, size
    )
    torch.distributed.init_process_group(
        "gloo", store=store, rank=seat.rank, world_size=size, timeout=timeout
    )


def work(seat: Seat, line: ParentLine) -> RankReport:
    """Run one rank in a process group of the plan's own, which is there when this returns."""
    plan = seat.plan
    if plan.training is not None:
        torch.optim.SGD([torch.zeros(1)])  # what torch loads for it would keep a group that is here
    join_group(seat)
    transport = GroupTransport.by_default(plan, seat.rank)
    with account(plan):
        rank = seated(plan, seat.rank, transport)
        line.ready()
        return carried_out(rank, transport, timeout=seat.timeout, at=line.at)
