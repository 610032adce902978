"""Processes of a replay as others start them: torchrun's variables and a command line each.

They are forked from the server that the gloo driver's come from, where torch is loaded, and write
to files. What hangs is killed after ``PATIENCE``.
"""

from __future__ import annotations

import gc
import multiprocessing.connection
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

from bubbleproof.cli import main
from bubbleproof.reference_exec.drivers.gloo_server import server_context
from proofs_tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
Setup = Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What one process is given: words after ``replay --torchrun``, variables, and a preparation.

    ``setup`` is a module's function that is called before.
    """

    words: Sequence[str]
    variables: Mapping[str, str]
    setup: Setup | None = None


class Launched:
    """Processes that run; ``errors`` and ``output`` of each, once it has ended."""

    def __init__(self, folder: Path, processes: list[BaseProcess]) -> None:
        self._folder = folder
        self.processes = processes

    def pid(self, number: int) -> int:
        found = self.processes[number].pid
        assert found is not None
        return found

    def statuses(self) -> list[int | None]:
        """How each process ended; None for one that hangs."""
        for process in self.processes:
            process.join(PATIENCE)
        return [process.exitcode for process in self.processes]

    def errors(self, number: int) -> str:
        return (self._folder / f"{number}.err").read_text()

    def output(self, number: int) -> str:
        return (self._folder / f"{number}.out").read_text()

    def strike(self, signal_: signal.Signals, *numbers: int) -> None:
        for number in numbers or range(len(self.processes)):
            os.kill(self.pid(number), signal_)


def variables(rank: int, world_size: int, port: int, **more: str) -> dict[str, str]:
    """What torchrun sets for one process, all on one node."""
    numbers = {"RANK": rank, "WORLD_SIZE": world_size, "LOCAL_RANK": rank, "MASTER_PORT": port}
    return {**{name: str(n) for name, n in numbers.items()}, "MASTER_ADDR": "127.0.0.1", **more}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def launched(folder: Path, starts: Sequence[Start]) -> Iterator[Launched]:
    """Start processes; those that are left at the end are killed."""
    context = server_context()
    processes = []
    for number, start in enumerate(starts):
        process = context.Process(target=run_one, args=(start, str(folder / str(number))))
        process.start()
        processes.append(process)
    try:
        yield Launched(folder, list(processes))
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.join()


def run_one(start: Start, files: str) -> None:
    """Become one rank: what ``python -m bubbleproof.reference_exec`` does."""
    for number, ending in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{files}.{ending}", os.O_CREAT | os.O_WRONLY | os.O_APPEND), number)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    gc.freeze()  # as in a process of the gloo driver
    os.environ.update(start.variables)
    os.chdir(ROOT)
    if start.setup is not None:
        start.setup()
    sys.argv = ["bubbleproof", "replay", "--torchrun", *start.words]
    status: object = 1
    try:
        main()
    except SystemExit as ended:
        status = ended.code
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status if isinstance(status, int) else 1)


def wait_for(path: Path, launched_: Launched) -> None:
    """Wait until a process has made a file; fails where one ends before."""
    ends = [process.sentinel for process in launched_.processes]
    while not path.exists():
        ended = multiprocessing.connection.wait(ends, timeout=0.02)
        assert path.exists() or not ended, [launched_.errors(n) for n in range(len(ends))]
