"""Processes with a fault in rank 1: it dies, hangs or sends what it should not.

Each function is a ``worker`` of ``run_gloo``: it runs in a process of its own, where it puts a
faulty rank in the place of ours. Rank 1 dies or hangs at 1B0, computed and not yet sent.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator

import torch

from bubbleproof.reference_exec.drivers import rank_report
from bubbleproof.reference_exec.drivers.gloo_worker import ParentLine, Seat, work
from bubbleproof.reference_exec.drivers.rank_report import RankReport
from bubbleproof.reference_exec.runtime.rank import Rank
from bubbleproof.reference_exec.runtime.transport import BlockedAction
from bubbleproof.theory.model.actions import Action

AT = "1B0"


def _struck(strike: Callable[[], None]) -> type[Rank]:
    class Struck(Rank):
        def run(self) -> Iterator[BlockedAction | None]:
            for event in super().run():
                if event is None and str(self.actions[self.position]) == AT:
                    strike()
                yield event

    return Struck


def _sending(change: Callable[[torch.Tensor], torch.Tensor]) -> type[Rank]:
    class Sending(Rank):
        def __init__(self, *given: object, **options: object) -> None:
            super().__init__(*given, **options)  # type: ignore[arg-type]  # passed on
            right = self._messages.hand_over

            def hand_over(tag: Action, tensor: torch.Tensor) -> None:
                right(tag, change(tensor) if str(tag) == "0RECV_B1" else tensor)

            self._messages.hand_over = hand_over  # type: ignore[method-assign]  # of this rank

    return Sending


def _run(rank: type[Rank], seat: Seat, line: ParentLine) -> RankReport:
    rank_report.Rank = rank  # type: ignore[attr-defined]  # in this process only, which ends with the run
    return work(seat, line)


def exits(seat: Seat, line: ParentLine) -> RankReport:
    return _run(_struck(lambda: os._exit(3)), seat, line)


def is_killed(seat: Seat, line: ParentLine) -> RankReport:
    return _run(_struck(lambda: os.kill(os.getpid(), signal.SIGKILL)), seat, line)


def sleeps(seat: Seat, line: ParentLine) -> RankReport:
    return _run(_struck(lambda: time.sleep(3600)), seat, line)


def sends_more(seat: Seat, line: ParentLine) -> RankReport:
    return _run(_sending(lambda tensor: tensor.repeat(1, 2, 1)), seat, line)
