"""Steps of PyTorch's runtime and of our ranks under one watch: live bytes after each action.

Both run a rank of a plan on gloo in a process of its own, and both are read by ``StorageWatch``:
once before the first action and after each. Parameters, the batch and gradients of parameters do
not count; messages, receive buffers and losses do, on either side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

import torch
from torch.distributed.pipelining.schedules import _Action

from benchmarks.storage_watch import StorageWatch
from bubbleproof.reference_exec.drivers.gloo import run_gloo
from bubbleproof.reference_exec.drivers.gloo_worker import ParentLine, Seat, join_group
from bubbleproof.reference_exec.drivers.group_transport import GroupTransport
from bubbleproof.reference_exec.drivers.rank_report import RankReport, carried_out, seated
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.pytorch.table import require_sayable
from bubbleproof.reference_exec.pytorch.worker import RuntimeRequest, TorchRank
from bubbleproof.reference_exec.runtime.rank import RankResult

Readings = tuple[tuple[int, ...], ...]


def torch_live_bytes(plan: ReplayPlan, *, timeout: float = 60.0) -> Readings:
    """Of each rank, the bytes that PyTorch's runtime holds before its first action and after each.

    Raises ``ValueError`` for what a table cannot say, ``RankFailed`` where a process ends early.
    """
    require_sayable(plan)
    return _readings(plan, timeout, work_torch)


def own_live_bytes(plan: ReplayPlan, *, timeout: float = 60.0) -> Readings:
    """Of each rank, the bytes that ours holds, read alike."""
    return _readings(plan, timeout, work_own)


def _readings(
    plan: ReplayPlan, timeout: float, worker: Callable[[Seat, ParentLine], RankReport]
) -> Readings:
    results = run_gloo(plan, timeout=timeout, worker=worker)
    return tuple(result.live_bytes for result in results)


class _Read(list[_Action]):
    """A rank's actions; the watch is read before the first and after each."""

    def __init__(self, actions: list[_Action], read: Callable[[], None]) -> None:
        super().__init__(actions)
        self._read = read

    def __iter__(self) -> Iterator[_Action]:
        for action in super().__iter__():
            self._read()
            yield action
        self._read()


def work_torch(seat: Seat, line: ParentLine) -> RankReport:
    """One step of PyTorch's runtime, with outputs returned, as its users have it."""
    try:
        join_group(seat, timedelta(seconds=seat.timeout))
        rank = TorchRank(seat, asked=RuntimeRequest(returns_outputs=True))
        found: list[int] = []
        watch = StorageWatch(rank.parameter_gradients)
        rank.wrap_actions(lambda actions: _Read(actions, lambda: found.append(watch.live_bytes())))
        line.ready()
        with watch:
            rank.step()
        result = RankResult(gradients=rank.gradients(), losses={}, live_bytes=tuple(found))
        return RankReport(result=result)
    except Exception as error:  # whatever it is, the parent has to hear of it
        return RankReport.failed(error)


def work_own(seat: Seat, line: ParentLine) -> RankReport:
    """One step of our rank."""
    join_group(seat)
    transport = GroupTransport.by_default(seat.plan, seat.rank)
    rank = seated(seat.plan, seat.rank, transport)
    found: list[int] = []
    watch = StorageWatch(rank.parameter_gradients)
    line.ready()

    def at(position: int) -> None:
        found.append(watch.live_bytes())
        line.at(position)

    with watch, torch.enable_grad():
        report = carried_out(rank, transport, timeout=seat.timeout, at=at)
    if report.result is None:
        return report
    result = RankResult(
        gradients=report.result.gradients, losses=report.result.losses, live_bytes=tuple(found)
    )
    return RankReport(result=result)
