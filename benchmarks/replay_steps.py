"""Steps of ours and of PyTorch's runtime, in teams of processes that take turns.

A team is a process per rank that holds one executor of a plan, its model, its data and its
connections. The executors are ours, which counts the live bytes and the work of every action, ours
that counts bytes alone, ours that counts nothing, as PyTorch's runtime, and PyTorch's. The teams
live side by side, and the others wait while one takes a step. A *round* is one training step of
each, and the one that goes first alternates. Within its step a team runs the whole program, from
data and weights to gradients; before it the gradients are dropped. Timed in each process:

``wall``
    from the first rank's beginning to the last rank's end, seconds, on the clock that all processes
    of a machine share;
``processor``
    seconds of processor time of all ranks together, their gloo threads included. It hardly depends
    on what else the machine does.

Round 0 is *cold*, the processes' first step; the others are *warm*. The gradients of every step are
compared with those of the team's first, whose bits the caller compares with the oracle's.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt
import torch

from bubbleproof.reference_exec.drivers.gloo_server import server_context
from bubbleproof.reference_exec.drivers.gloo_worker import Seat, join_group
from bubbleproof.reference_exec.drivers.group_transport import GroupTransport
from bubbleproof.reference_exec.drivers.rank_report import stall
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.pytorch.worker import TorchRank
from bubbleproof.reference_exec.runtime.compute import Gradients
from bubbleproof.reference_exec.runtime.rank import Rank

OURS, BYTES, UNCOUNTED = "ours", "ours, bytes counted", "ours, nothing counted"
TORCH = "PyTorch"
EXECUTORS = (OURS, BYTES, UNCOUNTED, TORCH)
LIMIT_S = 300.0
_Named = dict[tuple[int, str], npt.NDArray[np.generic]]
Taker = Callable[[], Callable[[], Gradients]]  # takes a step; what it gives tells the gradients


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Told:
    """What one process tells of a step: begin, end and processor time (s), or why it failed.

    ``gradients`` are those of the first step.
    """

    begin: float = 0.0
    end: float = 0.0
    processor: float = 0.0
    gradients: _Named | None = None
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a team, in seconds."""

    wall: float
    processor: float


class Team:
    """The processes of one executor; a context, which ends them."""

    def __init__(self, name: str, plan: ReplayPlan) -> None:
        self.name = name
        self.gradients: Gradients = {}
        self._plan = plan_of(name, plan)
        self._folder = tempfile.TemporaryDirectory(prefix="bubbleproof-")
        self._ends: list[Connection] = []
        self._processes: list[BaseProcess] = []

    def __enter__(self) -> Self:
        context = server_context(__name__)
        place = str(Path(self._folder.name) / "rendezvous")
        for rank in range(self._plan.num_ranks):
            ours, theirs = context.Pipe()
            seat = Seat(rank=rank, plan=self._plan, rendezvous=place, timeout=LIMIT_S)
            process = context.Process(target=_work, args=(self.name, seat, theirs), daemon=True)
            process.start()
            theirs.close()
            self._ends.append(ours)
            self._processes.append(process)
        self._hear()  # all stand ready
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self._processes:
            process.kill()
            process.join()
        self._folder.cleanup()

    def step(self) -> Step:
        """Let the team take one step. Raises ``RuntimeError`` where a process fails."""
        for end in self._ends:
            end.send(None)
        told = self._hear()
        for one in told:
            for key, value in (one.gradients or {}).items():
                found, known = torch.tensor(value), self.gradients.get(key)
                self.gradients[key] = found if known is None else known + found
        return Step(
            wall=max(one.end for one in told) - min(one.begin for one in told),
            processor=sum(one.processor for one in told),
        )

    def _hear(self) -> list[_Told]:
        found = []
        for rank, end in enumerate(self._ends):
            try:
                told: _Told | None = end.recv() if end.poll(LIMIT_S) else None
            except EOFError:
                raise RuntimeError(f"{self.name}: rank {rank} died") from None
            if told is None:
                raise RuntimeError(f"{self.name}: rank {rank} told nothing for {LIMIT_S:g} s")
            if told.failure:
                raise RuntimeError(f"{self.name}: rank {rank}: {told.failure}")
            found.append(told)
        return found


def plan_of(name: str, plan: ReplayPlan) -> ReplayPlan:
    """The plan as an executor runs it."""
    return replace(plan, counts_bytes=name in (OURS, BYTES), counts_work=name == OURS)


def _work(name: str, seat: Seat, parent: Connection) -> None:
    torch.set_num_threads(1)
    try:
        _steps(name, seat, parent)
    except EOFError:
        pass  # the parent has ended
    except Exception as error:  # whatever it is, the parent has to hear of it
        parent.send(_Told(failure=f"{type(error).__name__}: {error}"))
    os._exit(0)


def _steps(name: str, seat: Seat, parent: Connection) -> None:
    join_group(seat)
    take = _theirs(seat) if name == TORCH else _ours(seat)
    parent.send(_Told())
    first: _Named | None = None
    while True:
        parent.recv()
        processor, begin = time.process_time(), time.monotonic()
        gradients = take()
        end, processor = time.monotonic(), time.process_time() - processor
        found = {key: value.numpy().copy() for key, value in gradients().items()}
        if first is not None and any(not np.array_equal(found[k], first[k]) for k in first):
            raise RuntimeError("a step gives other gradients than the first")
        told = found if first is None else None
        parent.send(_Told(begin=begin, end=end, processor=processor, gradients=told))
        first = first or found


def _ours(seat: Seat) -> Taker:
    transport = GroupTransport.by_default(seat.plan, seat.rank)
    rank = Rank(seat.plan, seat.rank, transport)

    def take() -> Callable[[], Gradients]:
        rank.drop_gradients()
        stalled = stall(rank, transport, timeout=LIMIT_S, at=lambda _: None)
        if stalled is not None:
            raise RuntimeError(stalled.text)
        return lambda: rank.result().gradients

    return take


def _theirs(seat: Seat) -> Taker:
    rank = TorchRank(seat)

    def take() -> Callable[[], Gradients]:
        rank.drop_gradients()
        rank.step()
        return rank.gradients

    return take
