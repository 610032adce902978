"""Work in a process of its own, so that its memory is its own and it can be killed."""

from __future__ import annotations

import multiprocessing
import subprocess
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")
Work = Callable[Concatenate[Callable[[T], None], P], None]


def answers(limit: float, work: Work[T, P], *given: P.args, **named: P.kwargs) -> Iterator[T]:
    """What ``work(tell, *given)``, a module's function, tells one after another as it goes.

    The process ends with the iteration. Raises ``TimeoutError`` where the work has not ended after
    ``limit`` seconds, ``ChildProcessError`` where it failed or died.
    """
    context, deadline = multiprocessing.get_context("spawn"), time.monotonic() + limit
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(theirs, work, given, named))
    process.start()
    theirs.close()
    try:
        while ours.poll(max(deadline - time.monotonic(), 0.0)):
            told, failure = ours.recv()
            if failure:
                raise ChildProcessError(failure)
            yield told
        raise TimeoutError(f"stopped after the limit of {limit:g} s")
    except EOFError:
        process.join()
        if process.exitcode:
            raise ChildProcessError(f"died with exit code {process.exitcode}") from None
    finally:
        process.kill()
        process.join()


def _work(
    parent: Connection,
    work: Callable[..., None],
    given: tuple[object, ...],
    named: dict[str, object],
) -> None:
    try:
        work(lambda told: parent.send((told, "")), *given, **named)
    except Exception as error:  # whatever it is, the parent has to hear of it
        parent.send((None, f"{type(error).__name__}: {error}"))


def commit_of(checkout: Path) -> str:
    """The commit of a checkout and its day; empty where git knows none."""
    command = ["git", "-C", str(checkout), "log", "-1", "--format=%h of %cs"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
