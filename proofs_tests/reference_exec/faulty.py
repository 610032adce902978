"""Processes with a fault in rank 1: it dies, hangs or sends what it should not.

Each function is a ``worker`` of ``run_gloo``: it runs in a process of its own, where it puts a
faulty rank in the place of ours. Rank 1 dies or hangs at 1B0, computed and not yet sent.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, MutableSequence
from multiprocessing.connection import Connection

import torch

from bubbleproof.reference_exec import gloo_worker
from bubbleproof.reference_exec.gloo_worker import Seat, work
from bubbleproof.reference_exec.rank import Rank
from bubbleproof.reference_exec.transport import Blocked
from bubbleproof.theory.actions import Action

AT = "1B0"


def _struck(strike: Callable[[], None]) -> type[Rank]:
    class Struck(Rank):
        def run(self) -> Iterator[Blocked | None]:
            for event in super().run():
                if event is None and str(self.actions[self.position]) == AT:
                    strike()
                yield event

    return Struck


def _sending(change: Callable[[torch.Tensor], torch.Tensor]) -> type[Rank]:
    class Sending(Rank):
        def _hand_over(self, tag: Action, tensor: torch.Tensor) -> None:
            super()._hand_over(tag, change(tensor) if str(tag) == "0RECV_B1" else tensor)

    return Sending


def _run(rank: type[Rank], seat: Seat, parent: Connection, positions: MutableSequence[int]) -> None:
    gloo_worker.Rank = rank  # type: ignore[attr-defined]  # in this process only, which ends with the run
    work(seat, parent, positions)


def exits(seat: Seat, parent: Connection, positions: MutableSequence[int]) -> None:
    _run(_struck(lambda: os._exit(3)), seat, parent, positions)


def is_killed(seat: Seat, parent: Connection, positions: MutableSequence[int]) -> None:
    _run(_struck(lambda: os.kill(os.getpid(), signal.SIGKILL)), seat, parent, positions)


def sleeps(seat: Seat, parent: Connection, positions: MutableSequence[int]) -> None:
    _run(_struck(lambda: time.sleep(3600)), seat, parent, positions)


def sends_more(seat: Seat, parent: Connection, positions: MutableSequence[int]) -> None:
    _run(_sending(lambda tensor: tensor.repeat(1, 2, 1)), seat, parent, positions)


def sends_turned(seat: Seat, parent: Connection, positions: MutableSequence[int]) -> None:
    _run(_sending(lambda tensor: tensor.transpose(1, 2)), seat, parent, positions)


def sends_another_type(seat: Seat, parent: Connection, positions: MutableSequence[int]) -> None:
    _run(_sending(torch.Tensor.float), seat, parent, positions)
