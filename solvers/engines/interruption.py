"""Calls into foreign code that Ctrl-C and the end of a budget can reach.

The call runs in a thread; the caller waits in Python. On Ctrl-C ``stop`` is set, which engines
watch, and the caller goes on with what the call then returns; a second Ctrl-C gives up waiting. A
program that ends gives such a call, which was told to stop, a moment: an engine whose threads still
run while its library is taken down aborts the whole process.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

Value = TypeVar("Value")
POLL = 0.05  # seconds
LEAVE = 2.0  # seconds, for calls that nobody waits for when the program ends
_left: set[threading.Thread] = set()


@atexit.register
def _await_left() -> None:
    for thread in _left:
        if thread.is_alive():
            thread.join(LEAVE)


def run_interruptibly(call: Callable[[], Value], stop: threading.Event) -> Value:
    """The call's value or error, with ``stop`` set when Ctrl-C arrives meanwhile."""
    future: Future[Value] = Future()

    def work() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # handed to the caller
            future.set_exception(error)

    thread, is_begun = threading.Thread(target=work, daemon=True), False
    _left.add(thread)
    try:
        thread.start()
        is_begun = True
        _wait_for(future)
    except KeyboardInterrupt:
        stop.set()
        if not is_begun:  # it may never begin
            raise
        _wait_for(future)
    _left.discard(thread)
    return future.result()


def _wait_for(future: Future[Value]) -> None:
    """Wait in short naps: a signal does not wake an endless one once z3 has handled signals."""
    while not wait([future], timeout=POLL).done:
        pass
