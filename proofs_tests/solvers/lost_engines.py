"""What an engine may do in a process of its own instead of answering; called there by name."""

from __future__ import annotations

import os
import signal
import sys
import time
from operator import truediv

from bubbleproof.engine_process import cpsat_call
from bubbleproof.engine_process.cpsat_call import CpSatAnswer
from bubbleproof.engine_process.served import CallInside
from bubbleproof.faults import FaultError


def its_number(inside: CallInside) -> int:
    """Which process this is."""
    del inside
    return os.getpid()


class Unreadable:
    """What raises where it is read."""

    def __reduce__(self) -> tuple[object, ...]:
        return truediv, (1, 0)


def damaged_answer(inside: CallInside) -> Unreadable:
    """An answer that the caller cannot read."""
    del inside
    return Unreadable()


def tell_and_kill(inside: CallInside) -> None:
    """Tell something, and be killed as by a system without memory."""
    inside.tell(7)
    os.kill(os.getpid(), signal.SIGKILL)


def kill(inside: CallInside, model: str, parameters: str) -> None:
    """Be killed in the place of CP-SAT."""
    del inside, model, parameters
    os.kill(os.getpid(), signal.SIGKILL)


def abort(inside: CallInside) -> None:
    """Crash as a library does that finds itself broken."""
    del inside
    os.write(2, b"check failed: x == 3\n")
    os.abort()


def abort_without_memory(inside: CallInside, *given: str) -> None:
    """Crash as C++ does where nobody catches what the allocator raises."""
    del inside, given
    os.write(2, b"terminate called after throwing an instance of 'std::bad_alloc'\n")
    os.abort()


def leave(inside: CallInside, *given: str) -> None:
    """End without an answer."""
    del inside, given
    os._exit(3)


def allocate(inside: CallInside, size: int) -> int:
    """Take so many bytes, and write to each page of them."""
    del inside
    block = bytearray(size)
    block[::4096] = b"x" * len(block[::4096])
    return len(block)


def ignore_everything(inside: CallInside) -> None:
    """Neither look at the time nor hear the request to stop."""
    inside.tell(os.getpid())
    while True:
        time.sleep(60)


def sleep(inside: CallInside, model: str, parameters: str) -> None:
    """Ignore everything in the place of CP-SAT."""
    del inside, model, parameters
    while True:
        time.sleep(60)


def obey(inside: CallInside) -> str:
    """Go on until asked to stop."""
    inside.tell(os.getpid())
    inside.stop.wait()
    return "stopped"


def fail(inside: CallInside) -> None:
    """Raise an error of ours."""
    del inside
    raise FaultError("z3", "a schedule", "the checker refuses it")


def fail_strangely(inside: CallInside) -> None:
    """Raise an error that cannot be sent."""
    del inside

    class LocalError(Exception):
        pass

    raise LocalError("somewhere")


def print_much(inside: CallInside) -> str:
    """Write where answers go, as libraries do that log."""
    del inside
    os.write(1, b"a log of an engine\n" * 10)
    sys.stdout.write("another")
    sys.stdout.flush()
    return "answer"


def solve_until_killed(inside: CallInside, model: str, parameters: str) -> CpSatAnswer:
    """CP-SAT, killed behind its answer, all of whose solutions it had told."""
    cpsat_call.solve(inside, model, parameters)
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def search_until_killed(encoding: object, hint: object, budget: object) -> None:
    """An engine's search that is killed before it tells anything."""
    del encoding, hint, budget
    os.kill(os.getpid(), signal.SIGKILL)
