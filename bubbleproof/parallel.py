"""Many independent calls on many workers, through any ``concurrent.futures.Executor``.

    with open_executor(workers=4) as executor:
        results = run_all(executor, function, items, on_done=show)

``run_all`` gives ``[function(item) for item in items]``: the results stand in the order of the
items whatever the number of workers and whichever ends first. ``on_done(index, result)`` is called
in the caller's thread as each ends, for a progress bar. An error cancels what has not begun and is
raised when what runs has ended; so make items short (seconds). Ctrl-C is raised at once, and ends
the workers of ``open_executor`` in the middle of what they do.

``open_executor`` opens a pool of processes, or joins a ``dask.distributed`` cluster by the address
of its scheduler. With one worker it gives ``None``, which ``run_all`` takes as "here, in order". An
executor of your own serves as well.

``function`` must be importable by name (no lambda, no closure) and items and results must pickle;
workers are started afresh and share nothing with the caller. The processes ignore Ctrl-C, which
the caller passes on by cancelling, and end when the caller does.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from threading import Thread, current_thread, main_thread
from types import FrameType
from typing import ParamSpec, TypeVar

from bubbleproof.platforms import MAX_WORKERS, held_back, num_cores

Item = TypeVar("Item")
Result = TypeVar("Result")
CallParameters = ParamSpec("CallParameters")
PATIENCE = 5.0  # seconds for a scheduler to take a connection


@contextmanager
def open_executor(
    workers: int | None = None, *, address: str | None = None
) -> Iterator[Executor | None]:
    """Workers for ``run_all``: as many processes as cores unless told, or those of a cluster.

    ``address`` is that of a ``dask.distributed`` scheduler whose workers have this package.
    Raises ``ValueError`` for fewer than one worker or more than ``MAX_WORKERS``, for both at once,
    and where ``dask.distributed`` is not installed.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be 1 or more, got {workers}")
    if workers is not None and workers > MAX_WORKERS:
        raise ValueError(f"workers must be {MAX_WORKERS} or less, got {workers}")
    if address is not None:
        if workers is not None:
            raise ValueError("give a number of workers or a cluster's address, not both")
        with _cluster(address) as cluster:
            yield cluster
        return
    workers = min(num_cores(), MAX_WORKERS) if workers is None else workers
    if workers == 1:
        yield None
        return
    pool = _Pool(workers)
    try:
        yield pool
    except KeyboardInterrupt:
        pool.abandon()
        raise
    finally:
        with postponed(pool.abandon):  # a worker that still starts needs what the caller would undo
            pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def postponed(hear: Callable[[], None] = lambda: None) -> Iterator[None]:
    """A Ctrl-C within the block is raised at its end; ``hear`` is called when it comes."""
    before = signal.getsignal(signal.SIGINT)
    if current_thread() is not main_thread() or before is None:
        yield
        return
    came: list[tuple[int, FrameType | None]] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append((number, frame))
        hear()

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came and callable(before):
            before(*came[0])


class _Pool(ProcessPoolExecutor):
    """Processes that can be told to end at once, in the middle of a call."""

    def __init__(self, workers: int) -> None:
        # Forking a process that has threads (a progress bar is one) may hang; spawned ones do not.
        context = get_context("spawn")
        follower, self._lifeline = context.Pipe(duplex=False)
        super().__init__(workers, context, initializer=_follow_the_caller, initargs=(follower,))

    def submit(
        self,
        fn: Callable[CallParameters, Result],
        /,
        *args: CallParameters.args,
        **kwargs: CallParameters.kwargs,
    ) -> Future[Result]:
        """Hand in a call; a process that this starts gets no Ctrl-C before it ignores it."""
        # another thread may take the signal, and half a start is an error
        with held_back(signal.SIGINT), postponed():
            return super().submit(fn, *args, **kwargs)

    def abandon(self) -> None:
        """End the processes; what they were at is lost."""
        self._lifeline.close()


def run_all(
    executor: Executor | None,
    function: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    on_done: Callable[[int, Result], None] | None = None,
) -> list[Result]:
    """``[function(item) for item in items]`` by the executor's workers, or here without one.

    Raises what ``function`` raises; what has not begun by then is cancelled.
    """
    if executor is None:
        return _run_here(function, items, on_done)
    futures: list[Future[Result]] = []
    try:  # from the first call handed in: a Ctrl-C before the last finds workers busy
        for item in items:
            futures.append(executor.submit(function, item))
        index = {future: i for i, future in enumerate(futures)}
        for future in as_completed(futures):
            result = future.result()
            if on_done is not None:
                on_done(index[future], result)
    except BaseException as error:
        for future in futures:
            future.cancel()
        if isinstance(error, KeyboardInterrupt) and isinstance(executor, _Pool):
            executor.abandon()
        raise
    return [future.result() for future in futures]


def _run_here(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    on_done: Callable[[int, Result], None] | None,
) -> list[Result]:
    results = []
    for i, item in enumerate(items):
        results.append(function(item))
        if on_done is not None:
            on_done(i, results[-1])
    return results


def _follow_the_caller(lifeline: Connection) -> None:
    """Leave Ctrl-C to the caller, and end with it, however it ends, or when it lets go."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_the_caller, args=(lifeline,), daemon=True).start()


def _end_with_the_caller(lifeline: Connection) -> None:
    if (caller := parent_process()) is not None:
        wait([caller.sentinel, lifeline])
    os._exit(1)


def _require_answer(address: str) -> None:
    """Raise ``ValueError`` where nothing takes a connection at an address of a host and a port."""
    scheme, _, place = address.rpartition("://")
    host, _, port = place.rpartition(":")
    if scheme not in ("", "tcp", "tls"):
        return  # what ``distributed`` knows, or refuses at once
    rule = f"a scheduler's address must be such as tcp://HOST:8786, got {address!r}"
    if not host or not (port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise ValueError(rule)
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()
    except (OSError, UnicodeError) as error:
        raise ValueError(
            f"no scheduler answers at {address}: {error}; start one there, or leave out the address"
        ) from None


@contextmanager
def _cluster(address: str) -> Iterator[Executor]:
    try:
        from distributed import Client
    except ImportError as error:
        raise ValueError(
            f"to use the cluster at {address}, install the extra bubbleproof[cluster]"
        ) from error
    _require_answer(address)
    with Client(address, timeout=PATIENCE) as client:  # type: ignore[no-untyped-call]  # dask has no annotations
        yield client.get_executor(pure=False)
