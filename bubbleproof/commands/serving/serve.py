"""``bubbleproof serve``: the page that one shapes a schedule on, from a server of this machine.

It runs until Ctrl-C. The port is Perfetto's (9001), since its page reads traces of this machine
from that port alone; where it is taken, any other serves, and Perfetto takes the file by hand.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from urllib.parse import quote

from bubbleproof.commands.options.shared_options import Loudness
from bubbleproof.commands.output import refuse, say
from bubbleproof.commands.serving.local_server import LocalServer
from bubbleproof.commands.serving.offered_schedules import controls, offered_schedules
from bubbleproof.commands.serving.request_guard import RequestGuard
from bubbleproof.commands.serving.served_views import ServedViews
from bubbleproof.commands.serving.server_answers import PERFETTO, ServerAnswers
from bubbleproof.report.served.served_page import framed_page, served_page

PORT, HIGHEST_PORT = 9001, 65535
WORDS = ("1f1b", "p=4", "m=8")


def run_serve(
    *, loudness: Loudness, schedule: Sequence[str] | None, port: int | None, dialect: str | None
) -> int:
    """Serve until Ctrl-C, which ends it with status 130 as any command.

    Verbosely each request is a line on standard error.
    """
    words = schedule or WORDS
    with made_server(words, port, dialect) as server:
        hint = "" if loudness.quiet else "  (Ctrl-C ends it)"
        server.tell = say if loudness.verbose else None
        sys.stdout.write(f"{server.answers.guard.address}{hint}\n")
        sys.stdout.flush()
        server.serve_forever()
    return 0


def made_server(words: Sequence[str], port: int | None, dialect: str | None = None) -> LocalServer:
    """A server of what the words offer; on any free port where ``port`` is None and ours is taken.

    Raises ``ValueError`` in one line for words that name no schedule and for a port that is taken.
    """
    offered = offered_schedules(words, dialect)
    server = _listening(port)
    guard = RequestGuard(port=server.server_address[1])
    trace = guard.trace_address
    perfetto = f"{PERFETTO}/#!/?url={quote(trace, safe='')}" if guard.port == PORT else None
    page = served_page({**controls(words, offered), "trace": trace, "perfetto": perfetto})
    views = ServedViews(offered)
    server.answers = ServerAnswers(guard=guard, views=views, page=page, frame=framed_page())
    return server


def _listening(port: int | None) -> LocalServer:
    if port is not None and not 0 <= port <= HIGHEST_PORT:
        raise ValueError(f"--port must be 0 (any that is free) to {HIGHEST_PORT}, got {port}")
    try:
        return LocalServer(PORT if port is None else port)
    except OSError as error:
        if port is not None:
            line = f"port {port} of 127.0.0.1 cannot be had: {error.strerror}; --port takes another"
            raise ValueError(line) from error
    refuse(f"port {PORT} is taken; Perfetto reads no other, and takes the trace as a file")
    return LocalServer(0)
