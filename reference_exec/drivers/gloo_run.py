"""One run of the gloo driver: wait for all ranks' reports, or tell in one message what went wrong.

The processes are seen from their parent here; what they do is ``gloo_worker``'s business. One
deadline holds for the whole run: a rank that dies, fails or waits too long ends it.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path

from bubbleproof.reference_exec.drivers.gloo_server import Context, uninterrupted
from bubbleproof.reference_exec.drivers.gloo_worker import Worker, serve
from bubbleproof.reference_exec.drivers.rank_report import Ending, RankReport, gravest_of
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.runtime.rank import RankResult

STARTUP_SECONDS = 120.0
GRACE_SECONDS = 2.0
NOT_STARTED = -1
LATE_SECONDS = 10.0  # what the report of a rank whose time is over may take on a loaded machine


class RankFailed(RuntimeError):  # noqa: N818 - what happened to the rank
    """A rank that died, failed or waited too long; the message names it and its action."""


class Process:
    """One process, seen from its parent."""

    def __init__(self, context: Context, worker: Worker, number: int) -> None:
        """Start it; ``number`` is its rank in every plan."""
        self.connection, theirs = context.Pipe()
        self.has_served = False
        self._position = context.RawArray("q", [NOT_STARTED])
        self._process = context.Process(
            target=serve,
            args=(worker, number, theirs, self._position),
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

    def begin(self, order: Path) -> None:
        """Give it an order. That it is dead shows when it is listened to."""
        self._position[0] = NOT_STARTED
        self._send(str(order))

    def release(self) -> None:
        """Let go of what the last order left; nothing may be sent to it that it needs any more."""
        self.has_served = True
        self._send(None)

    def heard(self) -> RankReport | None:
        """What it says next; None where it has hung up."""
        try:
            report: RankReport = pickle.loads(self.connection.recv_bytes())
        except (EOFError, OSError):  # a killed process may leave either
            return None
        return report

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

    def _send(self, order: str | None) -> None:
        with suppress(OSError):
            self.connection.send(order)


class GlooRun:
    """The processes that have been given a plan, in rank order, and what they reported last."""

    def __init__(
        self,
        plan: ReplayPlan,
        processes: Sequence[Process],
        *,
        timeout: float,
        progress: Callable[[str], None] | None,
    ) -> None:
        self._plan, self._processes = plan, processes
        self._timeout, self._progress = timeout, progress
        self._ranks = {process.connection: rank for rank, process in enumerate(processes)}
        self._reports: dict[int, RankReport] = {}

    def results(self) -> list[RankResult]:
        """Wait for every rank; raises ``RankFailed`` for the first that does not deliver."""
        deadline = time.monotonic() + STARTUP_SECONDS
        is_running = False
        while silent := self._silent():
            if not self._listen(silent, deadline - time.monotonic()):
                raise RankFailed(self._overdue())
            if self._ended():
                self._hear_the_others()
                raise RankFailed(self._failure())
            if not is_running and len(self._reports) == len(self._ranks):
                is_running = True
                deadline = time.monotonic() + self._timeout + LATE_SECONDS
        results = (self._reports[rank].result for rank in self._ranks.values())
        return [result for result in results if result is not None]

    def _listen(self, silent: Sequence[int], seconds: float) -> bool:
        """Take in what arrives next, a closed connection included; False when nothing came."""
        ready = wait([self._processes[rank].connection for rank in silent], max(seconds, 0))
        for rank in silent:
            if self._processes[rank].connection not in ready:
                continue
            told = self._processes[rank].heard()
            self._reports[rank] = told or RankReport(ending=Ending.DIED, text=self._death(rank))
            if self._progress is not None:
                self._progress(f"{self._plan.name(rank)}: {self._reports[rank].state}")
        return bool(ready)

    def _hear_the_others(self) -> None:
        """Give the other ranks a moment: the first report need not be the cause."""
        deadline = time.monotonic() + GRACE_SECONDS
        while (left := deadline - time.monotonic()) > 0:
            waited_for = [rank for rank in self._silent() if rank in self._reports]
            if not waited_for or not self._listen(self._silent(), left):
                return

    def _death(self, rank: int) -> str:
        process = self._processes[rank]
        code = process.exit_code(GRACE_SECONDS)
        has_begun = process.has_served or process.position != NOT_STARTED
        hint = "" if has_begun else "; a script needs if __name__ == '__main__':"
        return f"died with exit code {code} {self._place(rank)}{hint}"

    def _place(self, rank: int) -> str:
        position, order = self._processes[rank].position, self._plan.order(rank)
        if position == NOT_STARTED:
            return "before its first action"
        return f"at {order[position]}" if position < len(order) else "after its last action"

    def _failure(self) -> str:
        """The gravest reports; with them the ranks that keep silent, or that were left waiting."""
        ended = self._ended()
        texts = [gravest_of(ended, {})]
        if any(report.ending is not Ending.STALLED for report in ended.values()):
            texts += [
                f"{self._plan.name(rank)} was left waiting: {report.waiting}"
                for rank, report in sorted(ended.items())
                if report.waiting
            ]
        else:
            texts += [
                f"{self._plan.name(rank)} is silent {self._place(rank)}" for rank in self._silent()
            ]
        return f"gloo replay ended: {'; '.join(texts)}"

    def _ended(self) -> dict[int, RankReport]:
        """The reports of the ranks that will not deliver."""
        return {rank: report for rank, report in self._reports.items() if report.ending is not None}

    def _silent(self) -> list[int]:
        """The ranks that have neither delivered nor failed."""
        ranks = range(len(self._processes))
        return [r for r in ranks if r not in self._reports or self._reports[r].state == "ready"]

    def _overdue(self) -> str:
        late = [f"{self._plan.name(rank)} hangs {self._place(rank)}" for rank in self._silent()]
        return f"gloo replay ended after its time ({self._timeout:g} s): {'; '.join(late)}"
