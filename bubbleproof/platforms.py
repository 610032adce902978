"""What Linux has and other systems lack, each asked for here alone, with what serves instead.

macOS tells no cores of a process and limits no memory of one; Windows besides has no signals to
hold back, no server to fork processes from, and no SIGINT for a program that runs. (``socket``
options that a system lacks are left out where they are set: ``reference_exec.drivers.doorway``.)
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

MAX_WORKERS = 256  # processes, or threads of an engine


def num_cores() -> int:
    """The CPU cores that this process may use; those of the machine where that is not told."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def installed_bytes() -> int:
    """The bytes of memory of this machine; 0 where they are not told."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 0


@contextmanager
def held_back(number: signal.Signals) -> Iterator[None]:
    """Hold a signal back from this thread; a process that is started meanwhile never gets it.

    Where signals cannot be held back, they come.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {number})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def let_through(numbers: Iterable[signal.Signals]) -> None:
    """Let signals come that whoever started this process may have held back."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)


def ask_to_end(process: subprocess.Popen[bytes]) -> None:
    """Have a program write down what it has and end; it is ended where it cannot be asked."""
    if os.name == "posix":
        process.send_signal(signal.SIGINT)
    else:
        process.terminate()


def has_fork_server() -> bool:
    """Whether processes can be forked from a server that has loaded what they need."""
    import multiprocessing

    return "forkserver" in multiprocessing.get_all_start_methods()


def has_memory_limits() -> bool:
    """Whether the memory of a process can be limited."""
    return sys.platform == "linux"


def limit_memory(size: int | None, process: int = 0) -> None:
    """Let a process, this one unless told, have so many bytes of its own; None: as many as it may.

    What is beyond is not there for it: Python raises ``MemoryError``, libraries fail or abort.
    Counted is what it may write to (Linux's RLIMIT_DATA), not what is reserved or read from files.
    Where memory cannot be limited (``has_memory_limits``) nothing happens.
    """
    if not has_memory_limits():
        return
    import resource

    _, most = resource.prlimit(process, resource.RLIMIT_DATA)
    wanted = resource.RLIM_INFINITY if size is None else size
    if most != resource.RLIM_INFINITY:
        wanted = most if wanted == resource.RLIM_INFINITY else min(wanted, most)
    with suppress(ProcessLookupError):
        resource.prlimit(process, resource.RLIMIT_DATA, (wanted, most))


def offer_to_be_killed_first() -> None:
    """Where a system out of memory kills a process, let it be this one before its caller."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
        score.write("500")


def after_fork(call: Callable[[], None]) -> None:
    """Have something called in every process that is forked from this one."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=call)


def sync_folder(folder: str) -> None:
    """Have the names of a folder's files on its disk, so that a power cut undoes no rename.

    Where a folder cannot be opened, as on Windows, the system does it in its own time.
    """
    with suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
