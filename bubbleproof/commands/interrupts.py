"""Ctrl-C in the midst of a command: it is noted, and ends one step and not what was found before.

``interruptions`` stands round a whole command. Within it a command's steps go through
``unless_interrupted``, so that what the steps before have found is still printed.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

Value = TypeVar("Value")
_noted: list[int] = []  # of the one command that this process runs
_begun: list[float] = []  # when it began, while it runs
_loaded: list[float] = []  # when a process of its own began to load it, until it runs


@contextmanager
def interruptions() -> Iterator[list[int]]:
    """The Ctrl-C that come while the block runs: a search that one ends returns as if none had."""
    _noted.clear()
    _begun[:] = [_loaded.pop() if _loaded else time.perf_counter()]
    try:
        yield from _noting()
    finally:
        _begun.clear()


def _noting() -> Iterator[list[int]]:
    """The same, where a Ctrl-C is ours to note."""

    def note(number: int, frame: FrameType | None) -> None:
        _noted.append(number)
        signal.default_int_handler(number, frame)

    is_ours = threading.current_thread() is threading.main_thread()
    if not is_ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield _noted
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield _noted
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def loaded_since(moment: float) -> None:
    """The next command has been waited for since then, a moment of ``time.perf_counter``."""
    _loaded[:] = [moment]


def begun() -> float:
    """When the command began, a moment of ``time.perf_counter``; outside of one it is now."""
    return _begun[0] if _begun else time.perf_counter()


def is_interrupted() -> bool:
    """Whether a Ctrl-C came since the command began: nothing long is to be begun any more."""
    return bool(_noted)


def unless_interrupted(step: Callable[[], Value], instead: Value) -> Value:
    """What ``step`` gives, or ``instead`` where Ctrl-C ends it."""
    before = len(_noted)
    try:
        return step()
    except KeyboardInterrupt:
        if len(_noted) == before:
            _noted.append(signal.SIGINT)
        return instead
    except Exception:
        if len(_noted) == before:
            raise
        return instead  # compiled code lets a Ctrl-C out as an error of its own
