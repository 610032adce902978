"""Many independent calls on many workers, through any ``concurrent.futures.Executor``.

    with open_executor(workers=4) as executor:
        results = run_all(executor, function, items, on_done=show)

``run_all`` gives ``[function(item) for item in items]``: the results stand in the order of the
items whatever the number of workers and whichever ends first. ``on_done(index, result)`` is called
in the caller's thread as each ends, for a progress bar. An error or Ctrl-C cancels what has not
begun and is raised when what runs has ended; so make items short (seconds).

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
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def num_cores() -> int:
    """The CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def open_executor(
    workers: int | None = None, *, address: str | None = None
) -> Iterator[Executor | None]:
    """Workers for ``run_all``: as many processes as cores unless told, or those of a cluster.

    ``address`` is that of a ``dask.distributed`` scheduler whose workers have this package.
    Raises ``ValueError`` for fewer than one worker, for both at once, and where
    ``dask.distributed`` is not installed.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be 1 or more, got {workers}")
    if address is not None:
        if workers is not None:
            raise ValueError("give a number of workers or a cluster's address, not both")
        with _cluster(address) as cluster:
            yield cluster
        return
    workers = num_cores() if workers is None else workers
    if workers == 1:
        yield None
        return
    # Forking a process that has threads (a progress bar is one) may hang; spawned ones are safe.
    pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=_follow_the_caller)
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


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
    futures = [executor.submit(function, item) for item in items]
    index = {future: i for i, future in enumerate(futures)}
    try:
        for future in as_completed(futures):
            result = future.result()
            if on_done is not None:
                on_done(index[future], result)
    except BaseException:
        for future in futures:
            future.cancel()
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


def _follow_the_caller() -> None:
    """Leave Ctrl-C to the caller, and end with it, however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_the_caller, daemon=True).start()


def _end_with_the_caller() -> None:
    caller = parent_process()
    assert caller is not None
    caller.join()
    os._exit(1)


@contextmanager
def _cluster(address: str) -> Iterator[Executor]:
    try:
        from distributed import Client
    except ImportError as error:
        raise ValueError(
            f"to use the cluster at {address}, install the extra bubbleproof[cluster]"
        ) from error
    with Client(address) as client:  # type: ignore[no-untyped-call]  # dask has no annotations
        yield client.get_executor(pure=False)
