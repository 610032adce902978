"""What a rank in a process of its own has to say, how it gets there, and how it may end instead.

``carried_out`` runs a rank to its end over a ``GroupTransport``. Both drivers with real processes
use it: ``gloo`` (processes started here) and ``torchrun`` (started by others). Of ranks that end
otherwise the gravest are named: what comes later in ``Ending`` often only follows from what comes
earlier, a stall from a death, a signal of torchrun's from a failure.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from bubbleproof.reference_exec.broken import one_line
from bubbleproof.reference_exec.drivers.group_transport import (
    ConnectionClosed,
    GroupTransfer,
    GroupTransport,
    reason,
)
from bubbleproof.reference_exec.drivers.place import at_nodes
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.runtime.device import CPU, Device
from bubbleproof.reference_exec.runtime.rank import Rank, RankResult
from bubbleproof.reference_exec.runtime.transport import BlockedAction


class Ending(Enum):
    """How a process ended; the value says how long to listen for others' endings, in seconds."""

    INTERRUPTED = ("interrupted", 0.2)  # by Ctrl-C
    DIED = ("died", 1.0)  # its connection closed without a word
    ORPHANED = ("orphaned", 1.5)  # its agent (torchrun) is gone
    TERMINATED = ("terminated", 1.5)  # by SIGTERM, which torchrun sends where another one ended
    FAILED = ("failed", 1.5)  # by an error of its own
    STALLED = ("stalled", 1.5)  # it waited too long

    def __init__(self, label: str, patience: float) -> None:
        self.label = label
        self.patience = patience

    @classmethod
    def of(cls, label: object) -> Ending:
        """The ending of a label; what nobody knows is a failure."""
        return next((ending for ending in cls if ending.label == label), cls.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankReport:
    """A rank is ready to begin, is done with a ``result``, or has come to an ``ending``.

    ``text`` says how, in words that follow its rank; ``waiting`` what a stalled rank waits for.
    """

    ending: Ending | None = None
    text: str = ""
    waiting: str = ""
    result: RankResult | None = None

    @property
    def state(self) -> str:
        """In one word."""
        if self.ending is not None:
            return self.ending.label
        return "ready" if self.result is None else "done"

    @classmethod
    def failed(cls, error: BaseException, place: str = "") -> RankReport:
        """What a rank says that ended with an error, perhaps at a ``place``."""
        return cls(ending=Ending.FAILED, text=f"failed{place}: {one_line(error)}")

    @classmethod
    def stalled(cls, why: object, waiting: str = "") -> RankReport:
        """What a rank says that waited too long."""
        return cls(ending=Ending.STALLED, text=f"stalled: {why}", waiting=waiting)


def gravest_of(ended: Mapping[int, RankReport], nodes: Mapping[int, str]) -> str:
    """One line on the gravest kind of ending there is; nodes are named where there are several.

    >>> died = RankReport(ending=Ending.DIED, text="died")
    >>> gravest_of({0: RankReport.stalled("0B0"), 2: died, 3: died}, {0: "a", 2: "b", 3: "b"})
    'ranks 2-3 on b died'
    """
    kind = next(kind for kind in Ending if any(e.ending is kind for e in ended.values()))
    alike: dict[tuple[str, str], list[int]] = {}
    for rank in sorted(rank for rank in ended if ended[rank].ending is kind):
        alike.setdefault((nodes.get(rank, ""), ended[rank].text), []).append(rank)
    return "; ".join(f"{at_nodes(ranks, nodes)} {text}" for (_, text), ranks in alike.items())


def speakers(ranks: Iterable[int], nodes: Mapping[int, str]) -> set[int]:
    """The lowest of the ranks on each node: those that print what all know."""
    lowest: dict[str, int] = {}
    for rank in sorted(ranks):
        lowest.setdefault(nodes.get(rank, ""), rank)
    return set(lowest.values())


def seated(plan: ReplayPlan, process: int, transport: GroupTransport, device: Device = CPU) -> Rank:
    """The rank of a process, over the ``transport`` of that process."""
    replica, rank = plan.seat(process)
    within, among = transport.within(plan, replica), transport.among(plan, rank)
    return Rank(plan, process, within, device, among)


def carried_out(
    rank: Rank, transport: GroupTransport, *, timeout: float, at: Callable[[int], None]
) -> RankReport:
    """Run a rank's program in ``timeout`` seconds; ``at`` is told the position it has come to.

    ``transport`` is the rank's own. The errors of a broken program are the caller's.
    """
    stalled = stall(rank, transport, timeout=timeout, at=at)
    return RankReport(result=rank.result()) if stalled is None else stalled


def stall(
    rank: Rank, transport: GroupTransport, *, timeout: float, at: Callable[[int], None]
) -> RankReport | None:
    """As ``carried_out``; None where the program has ended, whose result is the rank's to tell."""
    deadline = time.monotonic() + timeout
    at(0)
    try:
        for event in rank.run():
            if event is None:
                at(rank.position + 1)
            elif (why := _wait(event, deadline)) is not None:
                return RankReport.stalled(f"{event} ({why})", waiting=str(event))
            del event  # it would keep its message while the rank goes on
    except ConnectionClosed as error:
        return RankReport.stalled(error)
    why = transport.finished(deadline - time.monotonic())
    return None if why is None else RankReport.stalled(why)


def _wait(blocked: BlockedAction, deadline: float) -> str | None:
    """Wait for a transfer; why it did not end, or None when it did."""
    transfer = blocked.transfer
    if not isinstance(transfer, GroupTransfer):
        raise TypeError(f"{blocked}: expected a transfer of a process group")
    try:
        transfer.wait(deadline - time.monotonic())
    except RuntimeError as error:
        return reason(error)
    return None
