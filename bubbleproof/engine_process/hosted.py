"""The caller's side: a function in a process of its own, for as long and as large as it may be.

    answer = call("module:name", arguments, limits, who="cpsat", on_told=keep)

The process is started afresh (no fork: the caller has threads) by this interpreter, imports what
the function's module needs and stays for the next call, so that only the first one pays for the
start. When nothing is left of ``limits.left()`` the function is asked to stop; a grace later the
process is killed, and so it is when the caller is interrupted. A process ends with its caller.
"""

from __future__ import annotations

import atexit
import queue
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import cast

from bubbleproof.engine_process.loss import EngineLoss, EngineLostError, LossKind, out_of_memory
from bubbleproof.engine_process.served import (
    POLL,
    RAISED,
    STOP,
    TOLD,
    WITHOUT_MEMORY,
    EngineCall,
)
from bubbleproof.engine_process.serving_process import ServingProcess
from bubbleproof.platforms import after_fork

MOST_IDLE = 2  # processes that are kept for the next call
GRACE, LEAST_GRACE, MOST_GRACE = 0.05, 0.5, 2.0  # of the seconds asked for, and seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """``left()`` is how many seconds are left, 0 once the call is to end; ``memory`` in bytes."""

    left: Callable[[], float]
    memory: int | None = None


def call(
    function: str,
    arguments: tuple[object, ...],
    limits: CallLimits,
    *,
    who: str,
    on_told: Callable[[object], None] = lambda _: None,
) -> object:
    """What ``function``, ``module:name``, gives for a ``CallInside`` and the arguments.

    ``on_told`` is called, in this thread, with each value that the function tells meanwhile.
    Raises what the function raises, and ``EngineLostError`` where the process gives no answer.
    """
    try:
        process = _PROCESSES.take()
    except OSError as error:
        kind = LossKind.NOT_STARTED
        raise EngineLostError(EngineLoss(who=who, kind=kind, detail=str(error))) from None
    try:
        what, value = _answer(process, function, arguments, limits, who, on_told)
    except BaseException:
        process.end()
        raise
    if what == WITHOUT_MEMORY:
        process.end()
        raise EngineLostError(out_of_memory(who, limits.memory))
    _PROCESSES.give_back(process)
    if what == RAISED:
        raise cast(Exception, value)
    return value


def _answer(
    process: ServingProcess,
    function: str,
    arguments: tuple[object, ...],
    limits: CallLimits,
    who: str,
    on_told: Callable[[object], None],
) -> tuple[str, object]:
    """The last word of the process. Raises ``EngineLostError`` where there is none."""
    seconds = limits.left()
    process.send(
        EngineCall(function=function, arguments=arguments, seconds=seconds, memory=limits.memory)
    )
    grace, end = min(MOST_GRACE, max(LEAST_GRACE, GRACE * seconds)), None
    while True:
        with suppress(queue.Empty):
            message = process.answers.get(timeout=POLL)
            if message is None:
                raise EngineLostError(process.loss(who, limits.memory))
            if message[0] != TOLD:
                return message
            on_told(message[1])
        if end is None and not limits.left():
            process.send(STOP)
            end = time.monotonic() + grace
        elif end is not None and time.monotonic() > end:
            raise EngineLostError(EngineLoss(who=who, kind=LossKind.OVERRAN))


class _Processes:
    """Those that wait for a call; never more than ``MOST_IDLE``."""

    def __init__(self) -> None:
        self.idle: list[ServingProcess] = []
        self.lock = Lock()

    def take(self) -> ServingProcess:
        """One that waits, or a new one. Raises ``OSError`` where none can be started."""
        while True:
            with self.lock:
                process = self.idle.pop() if self.idle else None
            if process is None:
                return ServingProcess()
            if process.is_there:
                return process
            process.end()

    def give_back(self, process: ServingProcess) -> None:
        """Keep one for the next call, or end it where enough wait."""
        with self.lock:
            is_kept = len(self.idle) < MOST_IDLE
            if is_kept:
                self.idle.append(process)
        if not is_kept:
            process.end()

    def end(self) -> None:
        """End them all."""
        with self.lock:
            ended, self.idle = self.idle, []
        for process in ended:
            process.end()

    def forget(self) -> None:
        """In a process that was forked: they are the other one's."""
        self.lock = Lock()
        for process in self.idle:
            process.forget()
        self.idle = []


_PROCESSES = _Processes()
end_idle = _PROCESSES.end
atexit.register(end_idle)
after_fork(_PROCESSES.forget)
