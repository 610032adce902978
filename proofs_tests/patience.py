"""Time in tests: a guard against hanging, never a measure.

A loaded machine is many times slower. So a test whose outcome needs a search to come to its end
gives it ``PATIENCE``, and one that shows that something ends early lets it run without a limit in a
thread that is waited for as long. What takes how long stands in ``benchmarks``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")
PATIENCE = 300.0  # seconds; nothing here takes a fifth of it on a free machine
FOREVER = 100 * PATIENCE


def in_time() -> float:
    """A deadline (``time.perf_counter``) that decides nothing."""
    return time.perf_counter() + PATIENCE


def ended(call: Callable[[], Value]) -> Value:
    """What a call gives that has to end by itself. Raises ``AssertionError`` where it hangs."""
    given: list[Value] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            given.append(call())
        except BaseException as error:  # whatever it is, the caller has to hear of it
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if failed:
        raise failed[0]
    assert given, "the call hangs"
    return given[0]
