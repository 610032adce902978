"""Work counted in bytecodes: the same number in every run, on any machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def counted_steps(call: Callable[[], object]) -> int:
    """How many bytecodes of Python a call executes, all that it calls included."""
    steps = 0

    def trace(frame: FrameType, event: str, _: Any) -> Callable[[FrameType, str, Any], Any]:
        nonlocal steps
        frame.f_trace_opcodes = True
        steps += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return steps
