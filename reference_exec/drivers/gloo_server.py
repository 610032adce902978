"""The server that the gloo driver's processes are forked from; this module loads no torch.

A server of ``multiprocessing`` (``forkserver``) loads torch once, starts no thread, and every
process is forked from it in milliseconds; one forked from the caller would inherit threads that are
not there. It is loaded when first needed, which takes as long as ``import torch``. Who knows early
that it will be needed, and has to load torch too, calls ``start_server`` first: both then load side
by side. The server ends with the process that started it. Where the system has no such server
(Windows) each process is started anew and loads torch by itself.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.context import SpawnContext
from typing import TYPE_CHECKING, TypeAlias

from bubbleproof.platforms import has_fork_server, held_back

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext  # which not every system has

Context: TypeAlias = "ForkServerContext | SpawnContext"
_FIRST_BACKWARD = "torch.fx.experimental.symbolic_shapes"  # what torch imports for one
_WORKER = "bubbleproof.reference_exec.drivers.gloo_worker"
_PREPARED = "bubbleproof.reference_exec.drivers.gloo_preload"
FIRST_OPTIMIZER = "torch._dynamo"  # the same for one of its optimizers, and as much again
_PRELOAD: tuple[str, ...] = ("torch", "torch.distributed", _FIRST_BACKWARD, _WORKER, _PREPARED)
_asked: dict[str, None] = {}  # modules beside these, in order


def server_context(*modules: str) -> Context:
    """The context whose processes come from the server, or are started anew where there is none.

    ``modules`` are loaded by the server, if it has not started yet, besides what all ranks need and
    what was asked for before: one server serves all of a process.
    """
    _asked.update(dict.fromkeys(modules))
    if not has_fork_server():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(dict.fromkeys([*_PRELOAD, *_asked])))
    return context


def start_server(*modules: str) -> None:
    """Start the server and do not wait for it; does nothing where there is one, or can be none."""
    server_context(*modules)
    if has_fork_server():
        from multiprocessing import forkserver

        with uninterrupted():
            forkserver.ensure_running()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold SIGINT back from processes that are started here, for as long as they live.

    A terminal sends Ctrl-C to all of them. It is their parent's to answer, which ends them; they
    would each print where they were.
    """
    if has_fork_server():
        from multiprocessing import resource_tracker

        resource_tracker.ensure_running()  # to start it would let SIGINT through
    with held_back(signal.SIGINT):
        yield


def stop_server() -> None:
    """End the server at once, for a program that ends: it would go on until torch is loaded."""
    if not has_fork_server():
        return
    from multiprocessing import forkserver

    pid = getattr(getattr(forkserver, "_forkserver", None), "_forkserver_pid", None)
    if isinstance(pid, int):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
