"""Who may ask the server of ``serve``: whoever knows a token, on this machine, from our own page.

The server listens on the loopback address alone, but every program and every page in a browser of
this machine can reach that. So a path begins with a token that is drawn at the start (no cookie is
set, so that no foreign page asks in a reader's name); the ``Host`` must be ours, since another name
may lead to this address (DNS rebinding); a question must be JSON, which no foreign form can send
without asking first; and it must come from our own page where the browser tells the ``Origin``.

What is offered to Perfetto, a page from elsewhere, has a token of its own, good for the trace of a
schedule and nothing else.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

LONGEST_QUESTION = 4 << 20  # bytes


class Unwelcome(Exception):  # noqa: N818 - it is no fault of ours, and is answered
    """A request that is turned away: the answer's status (``HTTPStatus``) and its line."""

    @property
    def status(self) -> HTTPStatus:
        """The status of the answer."""
        found = self.args[0]
        assert isinstance(found, HTTPStatus)
        return found

    def __str__(self) -> str:
        return str(self.args[1])


def _token() -> str:
    return secrets.token_urlsafe(24)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestGuard:
    """The rules for one server on ``port``; tokens are drawn anew for each."""

    port: int
    token: str = field(default_factory=_token)
    trace_token: str = field(default_factory=_token)

    @property
    def hosts(self) -> tuple[str, str]:
        """What our own page may call this server."""
        return f"127.0.0.1:{self.port}", f"localhost:{self.port}"

    @property
    def address(self) -> str:
        """The page's address."""
        return f"http://{self.hosts[0]}/{self.token}/"

    @property
    def trace_address(self) -> str:
        """The address of a schedule's trace, for Perfetto; ``?n=`` of a view follows."""
        return f"http://{self.hosts[0]}/{self.trace_token}/schedule.perfetto.json"

    def admit(self, path: str, headers: Mapping[str, str]) -> tuple[str, bool]:
        """The path behind the token, and whether it is the trace's token.

        Raises ``Unwelcome`` for a foreign name of this machine and for every other token.
        """
        if headers.get("Host") not in self.hosts:
            raise Unwelcome(HTTPStatus.MISDIRECTED_REQUEST, f"this server is {self.hosts[0]}")
        first, _, rest = path.removeprefix("/").partition("/")
        for token in (self.token, self.trace_token):
            if secrets.compare_digest(first.encode(), token.encode()):
                return rest, token is self.trace_token
        raise Unwelcome(HTTPStatus.NOT_FOUND, "no such page; serve printed its address")

    def admit_question(self, headers: Mapping[str, str]) -> int:
        """The bytes of a question that may be read.

        Raises ``Unwelcome`` for one of another page, of another type, or too long.
        """
        origin = headers.get("Origin")
        if origin is not None and origin not in [f"http://{host}" for host in self.hosts]:
            raise Unwelcome(HTTPStatus.FORBIDDEN, "a question comes from the page of serve alone")
        if headers.get("Content-Type", "").partition(";")[0].strip() != "application/json":
            raise Unwelcome(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "a question is application/json")
        length = headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit() and len(length) < 10):
            raise Unwelcome(HTTPStatus.LENGTH_REQUIRED, "a question tells its length")
        if int(length) > LONGEST_QUESTION:
            limit = f"a question has at most {LONGEST_QUESTION:,} bytes, got {int(length):,}"
            raise Unwelcome(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, limit)
        return int(length)
