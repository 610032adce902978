"""Replays over the stand-in for NCCL: a rank and a machine for each process, all in this one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from bubbleproof.reference_exec.drivers.group_transport import GroupTransfer, GroupTransport
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.runtime import rank as rank_module
from bubbleproof.reference_exec.runtime.rank import Rank, RankResult, account
from bubbleproof.reference_exec.runtime.transport import BlockedAction
from bubbleproof.theory.model.actions import Action
from proofs_tests.reference_exec.races.machine import Machine, StandInDevice
from proofs_tests.reference_exec.races.nccl import Net, Work, in_place
from proofs_tests.reference_exec.races.recorder import Recorder


class Stalled(RuntimeError):  # noqa: N818 - what happened to the run
    """No rank can go on: the device of each waits for another's."""


@contextmanager
def named_actions(recorder: Recorder) -> Iterator[None]:
    """Let a recorder know which action runs."""
    right = Rank._timed

    def timed(self: Rank, action: Action) -> Iterator[BlockedAction]:
        steps = right(self, action)
        while True:
            recorder.machine.doing = str(action)
            try:
                event = next(steps)
            except StopIteration:
                recorder.machine.doing = "the end of a pass"
                return
            yield event

    rank_module.Rank._timed = timed  # type: ignore[method-assign]  # put back below
    try:
        yield
    finally:
        rank_module.Rank._timed = right  # type: ignore[method-assign]  # as it was


def run_queued(
    plan: ReplayPlan, *, seed: int = 0, lateness: float = 0.5
) -> tuple[list[RankResult], Recorder]:
    """Run every process of a plan as under torchrun with NCCL, all in this one.

    The seed picks who goes on next. Raises ``Stalled`` where nobody can, and what ranks raise.
    """
    processes = range(plan.num_processes)
    machines = [Machine(f"rank {r}: ", seed + r, lateness) for r in processes]
    recorder = Recorder(machines[0])
    net = Net(recorder, machines)
    with account(plan), in_place(net), named_actions(recorder), recorder:
        ranks: list[Rank] = []
        transports: list[GroupTransport] = []
        for process in processes:
            net.turn_to(process)
            device = StandInDevice(machines[process])
            transport = GroupTransport.by_pairs(
                plan, process, backend="nccl", device=device, seconds=1.0
            )
            replica, own = plan.seat(process)
            within, among = transport.within(plan, replica), transport.among(plan, own)
            ranks.append(Rank(plan, process, within, device, group=among))
            transports.append(transport)
        _take_turns(ranks, net, random.Random(seed))
        results = []
        for process, rank in enumerate(ranks):
            net.turn_to(process)
            if (why := transports[process].finished(1.0)) is not None:
                raise Stalled(f"rank {process}: {why}")
            results.append(rank.result())
    return results, recorder


def _take_turns(ranks: list[Rank], net: Net, choice: random.Random) -> None:
    running = {rank.process: rank.run() for rank in ranks}
    waiting: dict[int, BlockedAction] = {}
    while running:
        able = [r for r in running if r not in waiting or _can_go_on(waiting[r])]
        if not able:
            raise Stalled("; ".join(f"rank {r}: {waiting[r]}" for r in sorted(waiting)))
        process = choice.choice(able)
        net.turn_to(process)
        if process in waiting:
            transfer = waiting.pop(process).transfer
            assert isinstance(transfer, GroupTransfer)
            transfer.wait(1.0)
            del transfer
        event = None  # an event keeps its message
        try:
            event = next(running[process])
        except StopIteration:
            del running[process]
            continue
        if event is not None:
            waiting[process] = event


def _can_go_on(blocked: BlockedAction) -> bool:
    """On NCCL any host can; here what is received has to be there, as operations run at once."""
    transfer = blocked.transfer
    assert isinstance(transfer, GroupTransfer)
    work = transfer.work
    assert isinstance(work, Work)
    is_free = work.is_send and not transfer.is_awaited
    return is_free or work.has_passed or work.is_stuck
