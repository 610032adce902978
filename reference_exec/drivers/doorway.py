"""Who comes to the hub's port: anybody. Strangers stay apart until their first line is a hello.

A stranger has ``seconds`` and ``FIRST_LINE`` bytes for it, and ``MAX_STRANGERS`` stand there at
once: where one more comes the first one goes, so that nobody can fill the place. Whatever else is
wrong with a stranger ends that one alone, without a word. The port is of the loopback where the
processes meet there (MASTER_ADDR), and otherwise of all interfaces.
"""

from __future__ import annotations

import hmac
import ipaddress
import selectors
import socket
import time
from contextlib import suppress

from bubbleproof.reference_exec.drivers.wire import Message, NotAMessage, Wire

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
