"""Our side of ``highs_child``: processes, kept for the next model and stopped when time is up."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
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
        for line in self.process.stdout:
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
        self.process.kill()
        self.process.communicate()


def ask_highs(model: str, known: dict[str, int] | None, budget: Budget) -> Reply | None:
    """The answer for an MPS file, None without one; see ``highs_child``."""
    child = _idle.pop() if _idle else HighsProcess()
    request: Reply = {
        "model": model,
        "known": known,
        "threads": budget.threads,
        "seed": budget.seed,
    }
    line = ""
    try:
        line = child.ask(request, budget)
    finally:
        if line:
            _idle.append(child)
        else:
            child.end()
    found: Reply | None = json.loads(line) if line else None
    return found
