"""The inside of an engine's process: it does one call after another, and ends with its caller.

Calls and the request to stop come on standard input, answers go out on standard output; what the
engines themselves print goes to standard error. A thread reads, so that a stop is heard while an
engine runs, and the end of the input, which is the end of the caller however that came, ends the
process at once.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from threading import Event, Lock, Thread
from typing import IO

from bubbleproof.platforms import limit_memory, offer_to_be_killed_first

LENGTH = struct.Struct("<Q")
BEGIN = b"\0bubbleproof serves\0"  # what was written before was not for us


def packed(value: object) -> bytes:
    """A value as it goes over a pipe. Raises what ``pickle`` raises where it cannot."""
    data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(data)) + data


def write_all(pipe: IO[bytes], data: bytes) -> None:
    """Write to a pipe without a buffer. Raises ``OSError`` where nobody reads any more."""
    left = memoryview(data)
    while left:
        left = left[pipe.write(left) :]


def read_begin(pipe: IO[bytes]) -> None:
    """Pass over what others wrote, as a ``sitecustomize`` may. Raises ``EOFError`` at the end."""
    seen = b""
    while seen != BEGIN:
        seen = (seen + _exactly(pipe, 1))[-len(BEGIN) :]


def read_frame(pipe: IO[bytes]) -> object:
    """Wait for one value. Raises ``EOFError`` where the other end has gone."""
    (length,) = LENGTH.unpack(_exactly(pipe, LENGTH.size))
    value: object = pickle.loads(_exactly(pipe, length))
    return value


def _exactly(pipe: IO[bytes], size: int) -> bytes:
    parts, missing = [], size
    while missing:
        part = pipe.read(missing)
        if not part:
            raise EOFError
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


STOP = "stop"
TOLD, DONE, RAISED, WITHOUT_MEMORY = "told", "done", "raised", "without memory"
POLL = 0.05  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCall:
    """What to call, ``module:name``, with which arguments; ``seconds`` and bytes it may take."""

    function: str
    arguments: tuple[object, ...]
    seconds: float
    memory: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallInside:
    """A call as the function sees it, which gets this before its arguments.

    ``deadline`` is of ``time.perf_counter``; ``tell`` sends a value to the caller.
    """

    deadline: float
    tell: Callable[[object], None]
    stop: Event = field(default_factory=Event)

    @property
    def seconds(self) -> float:
        """What is left, 0 or more; nothing once the caller has asked to stop."""
        return 0.0 if self.stop.is_set() else max(0.0, self.deadline - time.perf_counter())


@contextmanager
def watching(left: Callable[[], float], halt: Callable[[], None]) -> Iterator[None]:
    """While the block runs, call ``halt`` (which may be more than once) when nothing is left.

    Parameters
    ----------
    left
        How many seconds are left, 0 or more.
    """
    over = Event()

    def watch() -> None:
        while not over.wait(POLL):
            if not left():
                halt()

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


class _Server:
    def __init__(self, given: IO[bytes], answers: IO[bytes]) -> None:
        self.given, self.answers, self.writing = given, answers, Lock()
        self.wanted: queue.SimpleQueue[tuple[EngineCall, Event]] = queue.SimpleQueue()

    def read(self) -> None:
        """Take in calls and stops until the caller has gone."""
        stop = Event()
        try:
            while True:
                value = read_frame(self.given)
                if value == STOP:
                    stop.set()
                elif isinstance(value, EngineCall):
                    stop = Event()
                    self.wanted.put((value, stop))
        except MemoryError:
            os.write(2, b"MemoryError\n")
        finally:
            os._exit(1)

    def say(self, what: str, value: object = None) -> None:
        """Send one answer."""
        data = packed((what, value))
        with self.writing:
            self.answers.write(data)
            self.answers.flush()

    def serve(self) -> None:
        """Do what is wanted, one after another."""
        while True:
            self.answer(*self.wanted.get())

    def answer(self, call: EngineCall, stop: Event) -> None:
        """Do one call; whatever it raises is the answer."""
        deadline = time.perf_counter() + call.seconds
        inside = CallInside(deadline=deadline, tell=lambda value: self.say(TOLD, value), stop=stop)
        limit_memory(call.memory)
        try:
            module, _, name = call.function.partition(":")
            what, value = DONE, getattr(import_module(module), name)(inside, *call.arguments)
        except MemoryError:
            what, value = WITHOUT_MEMORY, None
        except Exception as error:  # handed to the caller
            what, value = RAISED, _portable(error)
        limit_memory(None)
        self.say(what, value)


def _portable(error: Exception) -> Exception:
    """The error as it can be sent, with where it was raised."""
    error.add_note("in the engine's process:\n" + "".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # of whatever kind: the error is not ours
        return RuntimeError(repr(error))
    return error


def main() -> None:
    """Serve until the caller ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the caller's, which asks to stop
    offer_to_be_killed_first()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    answers.write(BEGIN)
    answers.flush()
    server = _Server(sys.stdin.buffer, answers)
    Thread(target=server.read, daemon=True).start()
    server.serve()
