"""The gloo driver: one process per rank on this machine, started and ended by the call itself.

Processes are forked from a server that has torch loaded and meet through a file in a temporary
directory (``gloo_worker`` is what each of them runs). One deadline holds for the whole run: a rank
that dies, fails or waits too long ends every process and raises one ``RankFailed``.

Starting a process imports the caller's main module anew, so a script that replays on gloo needs
Python's usual ``if __name__ == "__main__":``.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Callable, MutableSequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

from bubbleproof.reference_exec.gloo_worker import NOT_STARTED, Seat, work
from bubbleproof.reference_exec.plan import Plan
from bubbleproof.reference_exec.rank import RankResult
from bubbleproof.reference_exec.rank_report import Report, gravest

STARTUP_SECONDS = 120.0
GRACE_SECONDS = 2.0
_FIRST_BACKWARD = "torch.fx.experimental.symbolic_shapes"  # what torch imports for one
_PRELOAD = ["torch", "torch.distributed", _FIRST_BACKWARD]
Worker = Callable[[Seat, Connection, MutableSequence[int]], None]


class RankFailed(RuntimeError):  # noqa: N818 - what happened to the rank
    """A rank that died, failed or waited too long; the message names it and its action."""


def run_gloo(
    plan: Plan,
    *,
    timeout: float = 60.0,
    progress: Callable[[str], None] | None = None,
    debug_headers: bool = False,
    worker: Worker = work,
) -> list[RankResult]:
    """Run every rank of a plan in a process of its own. Results in rank order.

    ``timeout`` is the seconds the ranks have once all have started; starting may take
    ``STARTUP_SECONDS`` more, and telling what went wrong twice ``GRACE_SECONDS``. ``debug_headers``
    sends a header ahead of each message (``headers``). ``worker``, a module's function, is what
    each process runs. The plan is not verified here: see ``replay``. Raises ``RankFailed``; no
    process is left then, and a next call starts its own.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*_PRELOAD, worker.__module__])
    with tempfile.TemporaryDirectory(prefix="bubbleproof-") as folder:
        team = _Team(
            plan, timeout, progress, context.RawArray("q", [NOT_STARTED] * plan.num_processes)
        )
        try:
            team.start(context, worker, Path(folder) / "rendezvous", debug_headers=debug_headers)
            return team.results()
        finally:
            team.end()


class _Team:
    """The processes of one run and what they reported last."""

    def __init__(
        self,
        plan: Plan,
        timeout: float,
        progress: Callable[[str], None] | None,
        positions: MutableSequence[int],
    ) -> None:
        self._plan = plan
        self._timeout = timeout
        self._progress = progress
        self._positions = positions
        self._processes: list[ForkServerProcess] = []
        self._connections: dict[Connection, int] = {}
        self._reports: dict[int, Report] = {}

    def start(
        self, context: ForkServerContext, worker: Worker, rendezvous: Path, *, debug_headers: bool
    ) -> None:
        """Start a process per rank; they meet through the file ``rendezvous``."""
        for rank in range(self._plan.num_processes):
            ours, theirs = context.Pipe()
            seat = Seat(
                rank=rank,
                plan=self._plan,
                rendezvous=str(rendezvous),
                timeout=self._timeout,
                debug_headers=debug_headers,
            )
            process = context.Process(
                target=worker,
                args=(seat, theirs, self._positions),
                name=self._plan.name(rank),
                daemon=True,
            )
            process.start()
            theirs.close()
            self._processes.append(process)
            self._connections[ours] = rank

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
                deadline = time.monotonic() + self._timeout + GRACE_SECONDS
        return [self._reports[rank].result() for rank in ranks]

    def end(self) -> None:
        """End every process that still runs and close what is open."""
        for connection in self._connections:
            connection.close()
        for rank, process in enumerate(self._processes):
            if rank in self._reports and self._reports[rank].is_done:
                process.join(timeout=GRACE_SECONDS)
            process.kill()
            process.join()
            process.close()
        self._processes.clear()

    def _listen(self, seconds: float) -> bool:
        """Take in what arrives next, a closed connection included; False when nothing came."""
        silent = self._silent()
        open_ends = [end for end, rank in self._connections.items() if rank in silent]
        ready = wait(open_ends, timeout=max(seconds, 0))
        for end in ready:
            assert isinstance(end, Connection)
            rank = self._connections[end]
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
        process.join(timeout=GRACE_SECONDS)
        hint = "; a script needs if __name__ == '__main__':"
        begun = self._positions[rank] != NOT_STARTED
        return f"died with exit code {process.exitcode} {self._place(rank)}{'' if begun else hint}"

    def _place(self, rank: int) -> str:
        position, order = self._positions[rank], self._plan.order(rank)
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
