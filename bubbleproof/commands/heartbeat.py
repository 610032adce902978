"""A line now and then while a long search has nothing to tell."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Event, Thread

from bubbleproof.planners.planned import PlanOptions

SILENCE = 10.0  # seconds without a line, after which one is due


@contextmanager
def heartbeat(options: PlanOptions, silence: float = SILENCE) -> Iterator[PlanOptions]:
    """The options with a ``tell`` that also says that a search goes on, after ``silence`` seconds
    without a line; as they are where nothing is told."""
    tell = options.tell
    if tell is None:
        yield options
        return
    limit = f"{options.time_limit:g} s" if options.work is None else f"{options.work:g} of work"
    begun, told, ended = time.monotonic(), Event(), Event()

    def tell_and_note(line: str) -> None:
        told.set()
        tell(line)

    def watch() -> None:
        while not ended.is_set():
            if told.wait(silence):
                told.clear()
            elif not ended.is_set():
                seconds = time.monotonic() - begun
                tell(f"{seconds:7.2f} s  searching on, limit {limit}")

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield replace(options, tell=tell_and_note)
    finally:
        ended.set()
        told.set()
        watcher.join()
