"""JSON messages between processes, one a line; the end of the process at the other end is heard.

The kernel closes a process's connections however that ends, and its probes (keepalive) find out
that a machine or a network is gone. Neither asks anything of the process itself: one that computes,
or was stopped for a while, is not taken for dead on a loaded machine.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress

Message = dict[str, object]

IDLE_SECONDS, PROBE_SECONDS, PROBES = 3, 2, 3  # a machine that is gone is noticed after 9 s
MAX_LINE = 1 << 26  # bytes; what is longer comes from no process of ours
_KEEPALIVE = {
    "TCP_KEEPIDLE": IDLE_SECONDS,
    "TCP_KEEPINTVL": PROBE_SECONDS,
    "TCP_KEEPCNT": PROBES,
    "TCP_USER_TIMEOUT": 1000 * (IDLE_SECONDS + PROBE_SECONDS * PROBES),
    "TCP_NODELAY": 1,
}


class Wire:
    """One connection. Any thread may send; one reads."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._lock = threading.Lock()
        self._rest = b""
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE.items():
            if hasattr(socket, name):
                connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def fileno(self) -> int:
        """What to wait for (``selectors``)."""
        return self._socket.fileno()

    def send(self, message: Mapping[str, object]) -> None:
        """Send a message. That the other end is gone shows when it is read from."""
        with self._lock, suppress(OSError):
            self._socket.sendall(json.dumps(message).encode() + b"\n")

    def read(self) -> list[Message] | None:
        """The messages that are there, whole ones only; None at the end of the connection.

        What is no message of ours ends it too.
        """
        try:
            piece = self._socket.recv(1 << 16)
            *lines, self._rest = (self._rest + piece).split(b"\n")
            messages = [json.loads(line) for line in lines]
        except (OSError, ValueError):
            return None
        strange = any(not isinstance(message, dict) for message in messages)
        return None if not piece or strange or len(self._rest) > MAX_LINE else messages

    def close(self) -> None:
        """End the connection."""
        self._socket.close()
