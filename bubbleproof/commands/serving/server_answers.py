"""What the server of ``serve`` answers, without a socket: a request in, status and bytes out.

Under the page's token: ``/`` the page, ``frame`` the viewer in it, and the files of a view
(``schedule.json?n=`` and its like); by POST ``judge`` a question's verdict, ``open`` what a file
offers, ``solve``, ``progress`` and ``stop`` the solver. Under the trace's token:
``schedule.perfetto.json?n=``, the one answer that a page from elsewhere (Perfetto's) may read. What
cannot be judged is answered with ``{"refused": line}``.

No answer is kept by the browser, sets a cookie or loads anything from elsewhere: each page names
the hashes of its own scripts (Content-Security-Policy), and the frame runs without an origin of its
own, so that nothing in a schedule's text could ask in the page's name. It gets schedules as
messages from the page alone.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

from bubbleproof.commands.serving.judged_view import FILES, JudgedView
from bubbleproof.commands.serving.request_guard import RequestGuard, Unwelcome
from bubbleproof.commands.serving.served_views import KEPT, ServedViews

PERFETTO = "https://ui.perfetto.dev"
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_SHARED = {  # with Perfetto's page alone
    "Access-Control-Allow-Origin": PERFETTO,
    "Access-Control-Allow-Private-Network": "true",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Vary": "Origin",
}
_JSON, _HTML = "application/json; charset=utf-8", "text/html; charset=utf-8"
_KINDS = {".csv": "text/csv; charset=utf-8", ".json": _JSON, ".html": _HTML}
QUESTIONS = ("judge", "open", "solve", "progress", "stop")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAnswer:
    """One answer."""

    status: HTTPStatus = HTTPStatus.OK
    kind: str = _JSON
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_json(cls, value: object, status: HTTPStatus = HTTPStatus.OK) -> ServerAnswer:
        """The answer of a question."""
        return cls(status=status, body=json.dumps(value, allow_nan=False).encode())

    @classmethod
    def refused(cls, line: str, status: HTTPStatus) -> ServerAnswer:
        """One line that says why not."""
        return cls.of_json({"refused": line}, status)

    @classmethod
    def of_page(cls, page: str, policy: str) -> ServerAnswer:
        """A page under a policy that allows its own scripts."""
        hashes = " ".join(f"'sha256-{_hash(each)}'" for each in _SCRIPT.findall(page))
        whole = f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; {policy}"
        headers = {"Content-Security-Policy": whole}
        return cls(kind=_HTML, body=page.encode(), headers=headers)


_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_OF_PAGE = "connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; "
_OF_VIEW = "base-uri 'none'; form-action 'none'; sandbox allow-scripts; "


def _hash(script: str) -> str:
    return b64encode(sha256(script.encode()).digest()).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAnswers:
    """The answers of one server; ``page`` is what its address shows, ``frame`` what is in it."""

    guard: RequestGuard
    views: ServedViews
    page: str
    frame: str

    def answer(self, method: str, path: str, headers: Mapping[str, str]) -> ServerAnswer:
        """The answer of a request without a body. Raises ``Unwelcome`` where there is none."""
        try:
            split = urlsplit(path)
        except ValueError:  # such as http://[
            raise Unwelcome(HTTPStatus.BAD_REQUEST, "no such address") from None
        name, is_trace = self.guard.admit(split.path, headers)
        if is_trace:
            return self._trace(method, name, split.query)
        if method == "GET" and name == "":
            return ServerAnswer.of_page(self.page, _OF_PAGE + "frame-ancestors 'none'")
        if method == "GET" and name == "frame":
            return ServerAnswer.of_page(self.frame, _OF_VIEW + "frame-ancestors 'self'")
        if method == "GET" and name in FILES:
            return self._file(name, split.query)
        raise Unwelcome(HTTPStatus.NOT_FOUND, f"no {method} of {name[:40]!r}")

    def question(self, name: str, body: bytes) -> ServerAnswer:
        """The answer of a question, one of ``QUESTIONS``, that was admitted."""
        views = self.views
        try:
            if name in ("progress", "stop"):
                return ServerAnswer.of_json(
                    views.progress() if name == "progress" else views.stop()
                )
            work = {"judge": views.judge, "open": views.open, "solve": views.solve}[name]
            return ServerAnswer.of_json(work(body.decode()))
        except (ValueError, OverflowError, MemoryError) as error:
            line = " ".join(str(error).split()) or "more than the memory here"
            return ServerAnswer.refused(line, HTTPStatus.UNPROCESSABLE_ENTITY)

    def _view(self, query: str) -> JudgedView:
        try:
            return self.views.view(_number(query))
        except KeyError as error:
            gone = f"no view {error}; the last {KEPT} are kept"
            raise Unwelcome(HTTPStatus.NOT_FOUND, gone) from None

    def _file(self, name: str, query: str, shared: Mapping[str, str] = {}) -> ServerAnswer:
        try:
            body = self._view(query).file(name)
        except ValueError as error:
            return ServerAnswer.refused(str(error), HTTPStatus.UNPROCESSABLE_ENTITY)
        shown = {
            "Content-Disposition": f'attachment; filename="{name}"',
            "Content-Security-Policy": "sandbox",  # whoever opens it here after all
            **shared,
        }
        return ServerAnswer(kind=_KINDS[name[name.rindex(".") :]], body=body, headers=shown)

    def _trace(self, method: str, name: str, query: str) -> ServerAnswer:
        if name != "schedule.perfetto.json" or method not in ("GET", "OPTIONS"):
            raise Unwelcome(HTTPStatus.NOT_FOUND, f"no {method} of {name[:40]!r}")
        if method == "OPTIONS":  # a browser asks before a page from elsewhere may ask here
            asked = {**_SHARED, "Access-Control-Allow-Methods": "GET"}
            return ServerAnswer(status=HTTPStatus.NO_CONTENT, headers=asked)
        return self._file(name, query, _SHARED)


def _number(query: str) -> int:
    """The ``n`` of a view. Raises ``Unwelcome`` for anything else."""
    text = parse_qs(query).get("n", [""])[0]
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise Unwelcome(HTTPStatus.NOT_FOUND, "?n= is the number of a view")
    return int(text)
