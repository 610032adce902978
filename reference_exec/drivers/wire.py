"""JSON messages between processes, one a line; the end of the process at the other end is heard.

The kernel closes a process's connections however that ends, and its probes (keepalive) find out
that a machine or a network is gone. Neither asks anything of the process itself: one that computes,
or was stopped for a while, is not taken for dead on a loaded machine.

What comes may be anybody's: a line is read up to a limit, as strict JSON, and whatever is wrong
with it is one error, ``NotAMessage``.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import NoReturn

from bubbleproof.reference_exec.broken import first_line

Message = dict[str, object]

IDLE_SECONDS, PROBE_SECONDS, PROBES = 3, 2, 3  # a machine that is gone is noticed after 9 s
MAX_LINE = 1 << 22  # bytes; what is longer comes from no process of ours
SEND_SECONDS = 10.0  # for the other end to make room; one that is stopped has room for some 100 kB
_KEEPALIVE = {
    "TCP_KEEPIDLE": IDLE_SECONDS,
    "TCP_KEEPINTVL": PROBE_SECONDS,
    "TCP_KEEPCNT": PROBES,
    "TCP_USER_TIMEOUT": 1000 * (IDLE_SECONDS + PROBE_SECONDS * PROBES),
    "TCP_NODELAY": 1,
}


class NotAMessage(ValueError):  # noqa: N818 - what came is none
    """A line that no process of ours sends; the text says what it is."""


class Wire:
    """One connection. Any thread may send; one reads."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._lock = threading.Lock()
        self._rest = bytearray()
        connected.settimeout(SEND_SECONDS)
        if connected.family in (socket.AF_INET, socket.AF_INET6):
            _keep_alive(connected)

    def fileno(self) -> int:
        """What to wait for (``selectors``)."""
        return self._socket.fileno()

    def send(self, message: Mapping[str, object]) -> None:
        """Send a message. That the other end is gone shows when it is read from.

        One that makes no room for ``SEND_SECONDS`` is cut off.
        """
        line = json.dumps(message, allow_nan=False).encode() + b"\n"
        with self._lock, suppress(OSError):
            try:
                self._socket.sendall(line)
            except TimeoutError:  # a part may have gone
                self._socket.shutdown(socket.SHUT_RDWR)

    def receive(self) -> bool:
        """Take in what has come, 64 KiB at most; False at the end of the connection."""
        try:
            piece = self._socket.recv(1 << 16)
        except OSError:
            return False
        self._rest += piece
        return bool(piece)

    def take(self, limit: int = MAX_LINE) -> Message | None:
        """The next message of those that came; None where none is whole yet.

        Raises ``NotAMessage`` for a line of more than ``limit`` bytes, whole or not, and for what
        is no message.
        """
        end = self._rest.find(b"\n", 0, limit + 1)
        if end < 0 and len(self._rest) > limit:
            raise NotAMessage(f"a line of more than {limit} bytes")
        if end < 0:
            return None
        line = bytes(self._rest[:end])
        del self._rest[: end + 1]
        return _message(line)

    def forget(self) -> None:
        """Drop what came and was not taken."""
        self._rest.clear()

    def close(self) -> None:
        """End the connection."""
        self._socket.close()


def _keep_alive(connected: socket.socket) -> None:
    """Have the kernel probe the other end; systems that lack an option have their own times."""
    options = [(socket.SOL_SOCKET, "SO_KEEPALIVE", 1)]
    options += [(socket.IPPROTO_TCP, name, value) for name, value in _KEEPALIVE.items()]
    for level, name, value in options:
        if hasattr(socket, name):
            with suppress(OSError):  # of a connection that is closed, or an option of other systems
                connected.setsockopt(level, getattr(socket, name), value)


def _message(line: bytes) -> Message:
    try:
        message = json.loads(line.decode(), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise NotAMessage(f"{type(error).__name__}: {first_line(error)}") from None
    if not isinstance(message, dict):
        raise NotAMessage(f"expected an object, got {type(message).__name__}")
    return message


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")
