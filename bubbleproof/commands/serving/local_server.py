"""The socket of ``serve``: a server of the loopback address that hands requests to its answers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from bubbleproof.commands.output import refuse
from bubbleproof.commands.serving.request_guard import Unwelcome
from bubbleproof.commands.serving.server_answers import (
    HEADERS,
    QUESTIONS,
    ServerAnswer,
    ServerAnswers,
)

LOOPBACK = "127.0.0.1"
PATIENCE = 30.0  # seconds that a connection may be silent


class LocalServer(ThreadingHTTPServer):
    """Raises ``OSError`` where the port is not free; port 0 takes any that is."""

    daemon_threads = True
    allow_reuse_address = True
    answers: ServerAnswers  # set before it serves
    tell: Callable[[str], None] | None = None  # of each request

    def __init__(self, port: int) -> None:
        super().__init__((LOOPBACK, port), _Handler)

    def handle_error(self, *_: object) -> None:
        """Nothing of a browser that has left; any other fault in one line."""
        error = sys.exception()
        if not isinstance(error, ConnectionError | TimeoutError):
            refuse(f"a fault of bubbleproof: {type(error).__name__}: {error}")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: LocalServer
    timeout = PATIENCE

    def do_GET(self) -> None:
        self._respond(self._plain)

    do_OPTIONS = do_GET  # noqa: N815 - the library's name

    def do_POST(self) -> None:
        self._respond(self._question)

    def _plain(self) -> ServerAnswer:
        return self.server.answers.answer(self.command, self.path, self._given)

    def _question(self) -> ServerAnswer:
        answers = self.server.answers
        name, is_trace = answers.guard.admit(self.path, self._given)
        if is_trace or name not in QUESTIONS:
            raise Unwelcome(HTTPStatus.NOT_FOUND, f"no POST of {name[:40]!r}")
        return answers.question(name, self.rfile.read(answers.guard.admit_question(self._given)))

    @property
    def _given(self) -> dict[str, str]:
        return {name.title(): value for name, value in self.headers.items()}

    def _respond(self, work: Callable[[], ServerAnswer]) -> None:
        try:
            answer = work()
        except ConnectionError:
            raise  # nobody is there to answer
        except Unwelcome as error:
            self.close_connection = True  # a body may be left unread
            answer = ServerAnswer.refused(str(error), error.status)
        except Exception as error:
            self.close_connection = True
            line = f"a fault of bubbleproof: {type(error).__name__}: {error}"
            refuse(line)
            answer = ServerAnswer.refused(line, HTTPStatus.INTERNAL_SERVER_ERROR)
        self._send(answer)

    def _send(self, answer: ServerAnswer) -> None:
        headers = {**HEADERS, "Content-Type": answer.kind, **answer.headers}
        self.send_response(answer.status)
        for name, value in headers.items():
            self.send_header(name, value)
        if answer.status != HTTPStatus.NO_CONTENT:
            self.send_header("Content-Length", str(len(answer.body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(answer.body)

    def version_string(self) -> str:
        return "bubbleproof"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """A line where it is asked for: what is answered shows on the page."""
        if (tell := self.server.tell) is not None:
            tell(format % args)
