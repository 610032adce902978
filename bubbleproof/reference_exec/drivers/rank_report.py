"""What a rank in a process of its own has to say, and how it gets there.

``carried_out`` runs a rank to its end over a ``GroupTransport``. Both drivers with real processes
use it: ``gloo`` (processes started here) and ``torchrun`` (started by others).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch

from bubbleproof.reference_exec.broken import MessageMismatch
from bubbleproof.reference_exec.drivers.group_transport import (
    ConnectionClosed,
    GroupTransfer,
    GroupTransport,
    reason,
)
from bubbleproof.reference_exec.runtime.rank import Rank, RankResult
from bubbleproof.reference_exec.runtime.transport import Blocked

TENSORS = ("gradients", "losses", "updated")  # the fields of a result that hold them


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Report:
    """A rank is ``ready``, ``done`` (with a result), ``stalled``, ``failed`` or ``died``.

    ``waiting`` is what a stalled rank waits for; ``packed`` a result with arrays for tensors.
    """

    state: str
    text: str = ""
    waiting: str = ""
    packed: RankResult | None = None

    @property
    def is_ready(self) -> bool:
        return self.state == "ready"

    @property
    def is_done(self) -> bool:
        return self.state == "done"

    @property
    def is_failure(self) -> bool:
        return self.state in ("stalled", "failed", "died")

    @classmethod
    def of(cls, result: RankResult) -> Report:
        """A result as numpy arrays: torch sends tensors as shared memory of a dying process."""
        return cls(state="done", packed=_with_each(result, torch.Tensor.numpy))

    @classmethod
    def failed(cls, error: BaseException) -> Report:
        """What a rank says that ended with an error."""
        return cls(state="failed", text=f"failed: {one_line(error)}")

    def result(self) -> RankResult:
        """The result that ``of`` packed."""
        assert self.packed is not None, "the rank is done"
        return _with_each(self.packed, torch.tensor)


def _with_each(result: RankResult, change: Callable[..., object]) -> RankResult:
    changed = {
        name: {key: change(value) for key, value in getattr(result, name).items()}
        for name in TENSORS
    }
    return replace(result, **changed)  # type: ignore[arg-type]  # arrays only on their way


def carried_out(
    rank: Rank, transport: GroupTransport, *, timeout: float, at: Callable[[int], None]
) -> Report:
    """Run a rank's program in ``timeout`` seconds; ``at`` is told the position it has come to.

    ``transport`` is the rank's own. The errors of a broken program are the caller's.
    """
    stalled = stall(rank, transport, timeout=timeout, at=at)
    return Report.of(rank.result()) if stalled is None else stalled


def stall(
    rank: Rank, transport: GroupTransport, *, timeout: float, at: Callable[[int], None]
) -> Report | None:
    """As ``carried_out``; None where the program has ended, whose result is the rank's to tell."""
    deadline = time.monotonic() + timeout
    at(0)
    try:
        for event in rank.run():
            if event is None:
                at(rank.position + 1)
            elif (why := _wait(event, deadline)) is not None:
                text = f"stalled: {event} ({why})"
                return Report(state="stalled", text=text, waiting=str(event))
            del event  # it would keep its message while the rank goes on
    except ConnectionClosed as error:
        return Report(state="stalled", text=f"stalled: {error}")
    if (why := transport.finished(deadline - time.monotonic())) is not None:
        return Report(state="stalled", text=f"stalled: {why}")
    return None


def gravest(reports: Mapping[int, Report]) -> list[str]:
    """What ranks say that failed: of deaths, failures and stalls only the first kind there is.

    The later kinds only follow from the earlier.
    """
    for state in ("died", "failed", "stalled"):
        ranks = [rank for rank, report in sorted(reports.items()) if report.state == state]
        if ranks:
            return [f"rank {rank} {reports[rank].text}" for rank in ranks]
    return []


def _wait(blocked: Blocked, deadline: float) -> str | None:
    """Wait for a transfer; why it did not end, or None when it did."""
    transfer = blocked.transfer
    assert isinstance(transfer, GroupTransfer)
    try:
        transfer.wait(deadline - time.monotonic())
    except MessageMismatch:
        raise
    except RuntimeError as error:
        return reason(error)
    return None


def one_line(error: BaseException) -> str:
    """The error's type and the first line of its message."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"
