"""Our side of ``highs_child``: processes, kept for the next model and stopped when time is up."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from itertools import count
from pathlib import Path
from queue import Empty, SimpleQueue

from bubbleproof.solvers.engines.engine import Budget

CHILD = Path(__file__).with_name("highs_child.py")
POLL = 0.05  # seconds between looks at the budget
GRACE = 5.0  # seconds to finish after being told to stop
Reply = dict[str, object]

_numbers = count()
_idle: list[HighsProcess] = []


class HighsProcess:
    """One child, and the lines that it writes."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", str(CHILD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, start_new_session=True,
        )  # fmt: skip
        self.lines: SimpleQueue[str] = SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self.lines.put(line)
        self.lines.put("")  # it ended

    def write(self, message: dict[str, object]) -> None:
        """Send one line."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def ask(self, request: dict[str, object], budget: Budget) -> str:
        """The answer's line; empty where the child ended or would not stop."""
        number = next(_numbers)
        self.write(request | {"number": number, "seconds": budget.seconds})
        while budget.seconds > 0:
            try:
                return self.lines.get(timeout=POLL)
            except Empty:
                continue
        self.write({"stop": number})
        try:
            return self.lines.get(timeout=GRACE)
        except Empty:
            return ""

    def end(self) -> None:
        """Kill the child."""
        assert self.process.stdin is not None
        self.process.kill()
        self.process.wait()
        with suppress(OSError):
            self.process.stdin.close()


def ask_highs(model: str, known: dict[str, int] | None, budget: Budget) -> Reply | None:
    """The answer for an MPS file, None without one; see ``highs_child``."""
    child = _idle_or_new()
    request: Reply = {
        "model": model,
        "known": known,
        "threads": budget.threads,
        "seed": budget.seed,
    }
    line = ""
    try:
        with suppress(BrokenPipeError):
            line = child.ask(request, budget)
    finally:
        if line:
            _idle.append(child)
        else:
            child.end()
    found: Reply | None = json.loads(line) if line else None
    return found


def _idle_or_new() -> HighsProcess:
    while _idle:
        child = _idle.pop()
        if child.process.poll() is None:
            return child
        child.end()
    return HighsProcess()


def _end_all() -> None:
    while _idle:
        _idle.pop().end()


atexit.register(_end_all)
os.register_at_fork(after_in_child=_idle.clear)  # a child process is its parent's alone
