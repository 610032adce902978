"""Who comes to the hub's port: anybody. Strangers stay apart until their first line is a hello.

A stranger has ``seconds`` and ``FIRST_LINE`` bytes for it, and ``MAX_STRANGERS`` stand there at
once: where one more comes the first one goes, so that nobody can fill the place. Whatever else is
wrong with a stranger ends that one alone, without a word. The port is of the loopback where the
processes meet there (MASTER_ADDR), and otherwise of all interfaces.

JSON messages between processes, one a line; the end of the process at the other end is heard.

The kernel closes a process's connections however that ends, and its probes (keepalive) find out
that a machine or a network is gone. Neither asks anything of the process itself: one that computes,
or was stopped for a while, is not taken for dead on a loaded machine.

What comes may be anybody's: a line is read up to a limit, as strict JSON, and whatever is wrong
with it is one error, ``NotAMessage``.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import selectors
import socket
import threading
import time
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


FIRST_LINE = 1 << 10  # bytes
FIRST_LINE_SECONDS = 10.0
MAX_STRANGERS = 64
NO_ROOM_SECONDS = 0.05  # to wait where the system has no more connections to give


class Doorway:
    """The listener at ``address``, whose events ``selector`` tells, and those who came in by it.

    ``token`` is what a hello has to say.
    """

    def __init__(
        self,
        selector: selectors.BaseSelector,
        *,
        address: str,
        token: str,
        seconds: float = FIRST_LINE_SECONDS,
    ) -> None:
        self.listener = _listener(address)
        self._selector, self._token, self._seconds = selector, token.encode(), seconds
        self._until: dict[Wire, float] = {}  # in the order in which they came
        selector.register(self.listener, selectors.EVENT_READ)

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    def is_stranger(self, wire: Wire) -> bool:
        """Whether nothing is known of who is there."""
        return wire in self._until

    def accept(self) -> None:
        """Let in one who stands before the listener."""
        try:
            connected, _ = self.listener.accept()
        except OSError:  # gone again, or the system has no more connections to give
            self._drop_first()
            time.sleep(NO_ROOM_SECONDS)
            return
        with suppress(OSError):  # gone meanwhile
            wire = Wire(connected)
            self._until[wire] = time.monotonic() + self._seconds
            self._selector.register(wire, selectors.EVENT_READ)
        while len(self._until) > MAX_STRANGERS:
            self._drop_first()

    def hello(self, wire: Wire) -> Message | None:
        """A stranger's first line where it knows the token, who then is no stranger any more.

        None where it is not whole yet. Who says anything else is gone.
        """
        try:
            said = wire.take(FIRST_LINE) if wire.receive() else {}
        except NotAMessage:
            said = {}
        if said is None:
            return None
        token = said.get("hello")
        known = isinstance(token, str) and hmac.compare_digest(
            token.encode(errors="backslashreplace"), self._token
        )
        if not known:
            self._drop(wire)
            return None
        del self._until[wire]
        return said

    def drop_late(self) -> None:
        """Part with strangers who have said nothing for too long."""
        now = time.monotonic()
        for wire in [wire for wire, until in self._until.items() if now > until]:
            self._drop(wire)

    def close(self) -> None:
        """Part with all strangers and let nobody in."""
        for wire in list(self._until):
            self._drop(wire)
        self._selector.unregister(self.listener)
        self.listener.close()

    def _drop_first(self) -> None:
        if self._until:
            self._drop(next(iter(self._until)))

    def _drop(self, wire: Wire) -> None:
        del self._until[wire]
        with suppress(KeyError, ValueError, OSError):  # not watched yet
            self._selector.unregister(wire)
        wire.close()


def _listener(address: str) -> socket.socket:
    """A listening socket on a free port, of the loopback where ``address`` is that.

    Elsewhere of all interfaces and both internet protocols where there are both: an address that
    other machines know need not be one of this machine's own.
    """
    if local := _loopback(address):
        return _first_of(local)
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", 0))


def _first_of(places: list[tuple[socket.AddressFamily, str]]) -> socket.socket:
    """A listening socket at the first of the places that there is; others are never fallen to."""
    for family, host in places[:-1]:
        with suppress(OSError):
            return socket.create_server((host, 0), family=family)
    family, host = places[-1]
    return socket.create_server((host, 0), family=family)


def _loopback(address: str) -> list[tuple[socket.AddressFamily, str]]:
    """The addresses that a name for the loopback stands for; none where it is no such name."""
    try:
        is_local = ipaddress.ip_address(address).is_loopback
    except ValueError:
        is_local = address.lower() == "localhost"
    if not is_local:
        return []
    found = socket.getaddrinfo(address, None, type=socket.SOCK_STREAM)
    return [(family, str(where[0])) for family, _, _, _, where in found]
