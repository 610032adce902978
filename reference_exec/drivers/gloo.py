"""The gloo driver: one process per rank on this machine, kept to run one plan after another.

``run_gloo`` starts processes, runs one plan and ends them; ``GlooPool`` keeps them for the next.
They are forked from a server that has torch loaded (``gloo_server``), meet through a file in a
temporary directory, and run a rank each (``gloo_worker``).

What a run costs without a pool is mostly the start of its processes. In a pool they stay, and what
could pass from one plan to the next is this:

messages
    Every plan has a process group of its own, with connections of its own, made of as many
    processes as it has and left when all have delivered. Nothing that was posted for one plan can
    meet another's, whatever its order, tags or groups by pairs. To make one takes some 10 ms for
    four ranks; to leave it takes longer, while the caller compares results.
what a rank has
    Model, gradients, activations and a host's copies belong to a ``Rank``, which goes with its run.
what a process has
    Our models and ranks change nothing of torch's (random numbers, grad mode, types by default) and
    leave no thread. Of a *user's own* model that is not known: its plans run in processes of their
    own, which end with the run, as without a pool.
after a fault
    A run that does not deliver, for whatever reason, ends all processes; the next run starts new
    ones. So it is after ``renew``.

A process ends with its pool, and when the pool's process ends in whatever way.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path
from typing import Self

from bubbleproof.error_base import Error
from bubbleproof.reference_exec.drivers.agreement import model_parts, versions
from bubbleproof.reference_exec.drivers.gloo_server import (
    FIRST_OPTIMIZER,
    Context,
    server_context,
    uninterrupted,
)
from bubbleproof.reference_exec.drivers.gloo_worker import Seat, Worker, give_order, serve, work
from bubbleproof.reference_exec.drivers.rank_report import Ending, RankReport, gravest_of
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.runtime.rank import RankResult

STARTUP_SECONDS = 120.0
GRACE_SECONDS = 2.0
NOT_STARTED = -1
LATE_SECONDS = 10.0  # what the report of a rank whose time is over may take on a loaded machine


class RankFailed(Error, RuntimeError):  # noqa: N818 - what happened to the rank
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


__all__ = ["GRACE_SECONDS", "STARTUP_SECONDS", "GlooPool", "RankFailed", "Worker", "run_gloo"]


class GlooPool:
    """Processes that run plans on gloo, one plan at a time; a context, which ends them.

    ``num_processes`` start with the context; a plan that needs more starts more, a plan that needs
    fewer leaves the others idle. ``worker``, a module's function, is what each process does with
    its seat in a plan. A pool serves the process that made it; any use by another, during a run or
    after its end raises ``ValueError``.

    Starting a process imports the caller's main module anew, so a script that replays on gloo needs
    Python's usual ``if __name__ == "__main__":``.
    """

    def __init__(self, num_processes: int = 0, *, worker: Worker = work) -> None:
        if num_processes < 0:
            raise ValueError(f"a pool has 0 processes or more, got {num_processes}")
        self._wanted = num_processes
        self._worker = worker
        self._owner = os.getpid()
        self._processes: list[Process] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._num_plans = 0
        self._is_running = False
        self._is_closed = False

    @property
    def num_processes(self) -> int:
        """How many processes there are now."""
        return len(self._processes)

    def __enter__(self) -> Self:
        self._require_usable()
        self._start(self._wanted)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(
        self,
        plan: ReplayPlan,
        *,
        timeout: float = 60.0,
        progress: Callable[[str], None] | None = None,
    ) -> list[RankResult]:
        """Run every rank of a plan, each in a process. Results in rank order.

        ``timeout`` is the seconds the ranks have once all have started; starting may take
        ``STARTUP_SECONDS`` more, and telling what went wrong ``LATE_SECONDS`` and some. The plan is
        not verified here: see ``replay``. Raises ``RankFailed``; no process is left then.
        """
        self._require_usable()
        if plan.spec.factory and any(process.has_served for process in self._processes):
            return run_gloo(plan, timeout=timeout, progress=progress, worker=self._worker)
        if not all(process.is_alive for process in self._processes):
            self._end()
        self._is_running = True
        try:
            modules = [FIRST_OPTIMIZER] if plan.training else []
            folder = self._start(plan.num_processes, *modules)
            self._begin(plan, folder, timeout)
            seated = self._processes[: plan.num_processes]
            results = GlooRun(plan, seated, timeout=timeout, progress=progress).results()
        except BaseException:
            self._end()
            raise
        finally:
            self._is_running = False
        if plan.spec.factory:
            self._end()
        for process in self._processes[: plan.num_processes]:
            process.release()
        return results

    def renew(self) -> None:
        """End all processes; a next run starts new ones."""
        self._require_usable()
        self._end()

    def close(self) -> None:
        """End all processes for good."""
        if self._owner == os.getpid():
            self._is_closed = True
            self._end()

    def _require_usable(self) -> None:
        if self._owner != os.getpid():
            raise ValueError("the pool of processes belongs to the process that made it")
        if self._is_closed:
            raise ValueError("the pool of processes has ended")
        if self._is_running:
            raise ValueError("the pool of processes runs a plan; it runs one at a time")

    def _start(self, num_processes: int, *modules: str) -> Path:
        """Start what is missing to so many processes; ``modules`` as in ``server_context``.

        The result is the folder of all files by which the ranks of a plan meet.
        """
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="bubbleproof-")
        context = server_context(self._worker.__module__, *modules)
        while len(self._processes) < num_processes:
            self._processes.append(Process(context, self._worker, len(self._processes)))
        return Path(self._folder.name)

    def _begin(self, plan: ReplayPlan, folder: Path, timeout: float) -> None:
        """Give each rank of the plan to its process; they meet through a file of their own."""
        self._num_plans += 1
        place = folder / str(self._num_plans)
        place.mkdir()
        seat = Seat(rank=0, plan=plan, rendezvous=str(place / "rendezvous"), timeout=timeout)
        give_order(place / "order", seat, {**versions(), **model_parts(plan.spec)})
        for process in self._processes[: plan.num_processes]:
            process.begin(place / "order")

    def _end(self) -> None:
        """End every process, then wait for all."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.bury()
        self._processes.clear()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def run_gloo(
    plan: ReplayPlan,
    *,
    timeout: float = 60.0,
    progress: Callable[[str], None] | None = None,
    worker: Worker = work,
) -> list[RankResult]:
    """Run every rank of a plan in a process that this call starts and ends; see ``GlooPool.run``.

    ``worker``, a module's function, is what each process runs. Raises ``RankFailed``.
    """
    with GlooPool(worker=worker) as pool:
        return pool.run(plan, timeout=timeout, progress=progress)
