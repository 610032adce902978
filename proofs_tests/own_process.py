"""A test's work in a process of its own, for what must not reach the process that runs the tests.

A signal is one: a worker that shares the tests with others ends by it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from proofs_tests.patience import PATIENCE

ROOT = Path(__file__).parents[1]


def run_alone(work: Callable[[], None]) -> None:
    """Call a function of a test module, found by its name, in a new process; it must not raise."""
    code = f"from {work.__module__} import {work.__name__}\n{work.__name__}()\n"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
