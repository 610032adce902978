"""The server that the gloo driver's processes are forked from; this module loads no torch.

A server of ``multiprocessing`` (``forkserver``) loads torch once, starts no thread, and every
process is forked from it in milliseconds; one forked from the caller would inherit threads that are
not there. It is loaded when first needed, which takes as long as ``import torch``. Who knows early
that it will be needed, and has to load torch too, calls ``start_server`` first: both then load side
by side. The server ends with the process that started it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import forkserver, resource_tracker
from multiprocessing.context import ForkServerContext

_FIRST_BACKWARD = "torch.fx.experimental.symbolic_shapes"  # what torch imports for one
_WORKER = "bubbleproof.reference_exec.drivers.gloo_worker"
FIRST_OPTIMIZER = "torch._dynamo"  # the same for one of its optimizers, and as much again
_PRELOAD: tuple[str, ...] = ("torch", "torch.distributed", _FIRST_BACKWARD, _WORKER)


def server_context(*modules: str) -> ForkServerContext:
    """The context whose processes come from the server.

    ``modules`` are loaded by the server, if it has not started yet, besides what all ranks need.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(dict.fromkeys([*_PRELOAD, *modules])))
    return context


def start_server(*modules: str) -> None:
    """Start the server and do not wait for it; does nothing where there is one."""
    server_context(*modules)
    with uninterrupted():
        forkserver.ensure_running()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold SIGINT back from processes that are started here, for as long as they live.

    A terminal sends Ctrl-C to all of them. It is their parent's to answer, which ends them; they
    would each print where they were.
    """
    resource_tracker.ensure_running()  # to start it would let SIGINT through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def stop_server() -> None:
    """End the server at once, for a program that ends: it would go on until torch is loaded."""
    pid = getattr(getattr(forkserver, "_forkserver", None), "_forkserver_pid", None)
    if isinstance(pid, int):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
