"""What became of an engine that gave no answer: killed, out of memory, crashed or too late.

A loss is never a statement about the problem. What the engine had told before it was lost is kept,
and judged as any answer is.
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from enum import Enum

BINARY = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
WITHOUT_MEMORY = re.compile(
    r"bad_alloc|OutOfMemory|out of memory|MemoryError|cannot allocate memory", re.IGNORECASE
)
KILL = 9  # the number of the signal that cannot be caught, on every system that has signals


class LossKind(Enum):
    """Why there is no answer; the value is what the user reads behind the engine's name."""

    OVERRAN = "did not end at its time limit and was ended"
    MEMORY = "ran out of memory"
    KILLED = "was killed from outside, as systems do when memory runs out"
    CRASHED = "crashed"
    NOT_STARTED = "could not be started in a process of its own"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLoss:
    """``who`` gave no answer; ``detail`` is what is known beyond the ``kind``.

    >>> str(EngineLoss(who="cpsat", kind=LossKind.MEMORY, detail="its limit was 4 GiB"))
    'cpsat ran out of memory (its limit was 4 GiB): what was known before is kept'
    """

    who: str
    kind: LossKind
    detail: str = ""

    def __str__(self) -> str:
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.who} {self.kind.value}{detail}: what was known before is kept"


class EngineLostError(Exception):
    """A call that gave no answer; ``loss`` tells why."""

    def __init__(self, loss: EngineLoss) -> None:
        super().__init__(loss)
        self.loss = loss


def size_text(size: int) -> str:
    """Bytes in words.

    >>> size_text(4 << 30), size_text(1000)
    ('4 GiB', '1000 B')
    """
    unit, name = next(((unit, name) for unit, name in BINARY if size >= unit), (1, "B"))
    return f"{size / unit:.4g} {name}"


def out_of_memory(who: str, memory: int | None) -> EngineLoss:
    """The loss of an engine that found no more memory, within its limit if it has one."""
    detail = "" if memory is None else f"its limit was {size_text(memory)}"
    return EngineLoss(who=who, kind=LossKind.MEMORY, detail=detail)


def loss_of(who: str, status: int, errors: str, memory: int | None) -> EngineLoss:
    """The loss of a process that ended by itself, by its exit ``status`` and what it wrote.

    A negative status is the number of a signal. A library that finds no memory says so on standard
    error and aborts.
    """
    if WITHOUT_MEMORY.search(errors):
        return out_of_memory(who, memory)
    if status == -KILL:
        return EngineLoss(who=who, kind=LossKind.KILLED, detail=_signal(status))
    last = errors.strip().splitlines()[-1:]
    parts = [_signal(status), *(line[:200] for line in last)]
    if memory is not None:
        parts.append(f"its memory limit was {size_text(memory)}")
    return EngineLoss(who=who, kind=LossKind.CRASHED, detail="; ".join(parts))


def _signal(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"
