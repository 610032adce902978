"""One run of the gloo driver: wait for all ranks' reports, or tell in one message what went wrong.

One deadline holds for the whole run: a rank that dies, fails or waits too long ends it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait

from bubbleproof.reference_exec.drivers.gloo_process import NOT_STARTED, Process
from bubbleproof.reference_exec.drivers.rank_report import Report, gravest
from bubbleproof.reference_exec.plans.plan import Plan
from bubbleproof.reference_exec.runtime.rank import RankResult

STARTUP_SECONDS = 120.0
GRACE_SECONDS = 2.0
LATE_SECONDS = 10.0  # what the report of a rank whose time is over may take on a loaded machine


class RankFailed(RuntimeError):  # noqa: N818 - what happened to the rank
    """A rank that died, failed or waited too long; the message names it and its action."""


class Run:
    """The processes that have been given a plan, in rank order, and what they reported last."""

    def __init__(
        self,
        plan: Plan,
        processes: Sequence[Process],
        *,
        timeout: float,
        progress: Callable[[str], None] | None,
    ) -> None:
        self._plan = plan
        self._processes = processes
        self._timeout = timeout
        self._progress = progress
        self._ranks = {process.connection: rank for rank, process in enumerate(processes)}
        self._reports: dict[int, Report] = {}

    def results(self) -> list[RankResult]:
        """Wait for every rank; raises ``RankFailed`` for the first that does not deliver."""
        ranks = range(self._plan.num_processes)
        deadline = time.monotonic() + STARTUP_SECONDS
        is_running = False
        while any(rank not in self._reports or not self._reports[rank].is_done for rank in ranks):
            if not self._listen(deadline - time.monotonic()):
                raise RankFailed(self._overdue())
            if any(report.is_failure for report in self._reports.values()):
                self._hear_the_others()
                raise RankFailed(self._failure())
            if not is_running and len(self._reports) == len(ranks):
                is_running = True
                deadline = time.monotonic() + self._timeout + LATE_SECONDS
        return [self._reports[rank].result() for rank in ranks]

    def _listen(self, seconds: float) -> bool:
        """Take in what arrives next, a closed connection included; False when nothing came."""
        silent = self._silent()
        open_ends = [end for end, rank in self._ranks.items() if rank in silent]
        ready = wait(open_ends, timeout=max(seconds, 0))
        for end in ready:
            assert isinstance(end, Connection)
            rank = self._ranks[end]
            try:
                self._reports[rank] = end.recv()
            except (EOFError, OSError):  # a killed process may leave either
                self._reports[rank] = Report(state="died", text=self._death(rank))
            if self._progress is not None:
                self._progress(f"{self._plan.name(rank)}: {self._reports[rank].state}")
        return bool(ready)

    def _hear_the_others(self) -> None:
        """Give the other ranks a moment: the first report need not be the cause."""
        deadline = time.monotonic() + GRACE_SECONDS
        while (left := deadline - time.monotonic()) > 0 and any(
            report.is_ready for report in self._reports.values()
        ):
            if not self._listen(left):
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
        texts = gravest(self._reports)
        if any(report.state in ("died", "failed") for report in self._reports.values()):
            texts += [
                f"{self._plan.name(rank)} was left waiting: {report.waiting}"
                for rank, report in sorted(self._reports.items())
                if report.waiting
            ]
        else:
            texts += [
                f"{self._plan.name(rank)} is silent {self._place(rank)}" for rank in self._silent()
            ]
        return f"gloo replay ended: {'; '.join(texts)}"

    def _silent(self) -> list[int]:
        """The ranks that have neither delivered nor failed."""
        ranks = range(self._plan.num_processes)
        return [r for r in ranks if r not in self._reports or self._reports[r].is_ready]

    def _overdue(self) -> str:
        late = [f"{self._plan.name(rank)} hangs {self._place(rank)}" for rank in self._silent()]
        return f"gloo replay ended after its time ({self._timeout:g} s): {'; '.join(late)}"
