"""A client of ``serve`` that resets its connection: no word of it, and the next is answered."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from http.client import HTTPConnection
from threading import Event, Thread

import pytest

from bubbleproof.commands.serving import serve
from bubbleproof.commands.serving.local_server import LocalServer
from proofs_tests.patience import PATIENCE

AT_ONCE = struct.pack("ii", 1, 0)  # SO_LINGER for 0 seconds: closing sends a reset


class Watched(LocalServer):
    """Joins the threads of its requests as it closes, so that all they print is there."""

    daemon_threads = False


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalServer]:
    monkeypatch.setattr(serve, "LocalServer", Watched)
    with serve.made_server(["1f1b", "p=2", "m=2"], 0) as made:
        thread = Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def reset_after(server: LocalServer, sent: str, *, receive: int = 0) -> None:
    """Send so much of a request, read so much of its answer, and reset the connection."""
    with socket.create_connection(
        ("127.0.0.1", server.server_address[1]), timeout=PATIENCE
    ) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
        client.sendall(sent.encode())
        if receive:
            client.recv(receive)


@pytest.mark.parametrize("stage", ["nothing", "line", "headers", "body", "answer", "kept alive"])
def test_a_reset_is_quiet(
    server: LocalServer, stage: str, capfd: pytest.CaptureFixture[str]
) -> None:
    port, token = server.server_address[1], server.answers.guard.token
    host = f"Host: 127.0.0.1:{port}\r\n"
    post = f"POST /{token}/judge HTTP/1.1\r\n{host}Content-Type: application/json\r\n"
    page = f"GET /{token}/ HTTP/1.1\r\n{host}\r\n"
    sent, receive = {
        "nothing": ("", 0),
        "line": (page[:10], 0),
        "headers": (post, 0),
        "body": (f'{post}Content-Length: 50\r\n\r\n{{"fam', 0),
        "answer": (page, 1),  # the page is larger than what one write puts out
        "kept alive": (page, 1 << 20),
    }[stage]
    for _ in range(5):
        reset_after(server, sent, receive=receive)
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("GET", f"/{token}/", headers={"Connection": "close"})
    assert connection.getresponse().status == 200
    connection.close()
    server.server_close()  # waits for the threads of the requests
    assert capfd.readouterr() == ("", "")


def test_another_fault_is_one_line(
    server: LocalServer, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Event()  # a server told to shut down answers nobody who still waits to be accepted

    def broken(*_: object) -> None:
        asked.set()
        raise RuntimeError("the handler broke")

    monkeypatch.setattr(server, "finish_request", broken)
    with socket.create_connection(
        ("127.0.0.1", server.server_address[1]), timeout=PATIENCE
    ):  # held open: a connection that is reset may never be accepted
        assert asked.wait(PATIENCE)
    server.shutdown()
    server.server_close()
    err = capfd.readouterr().err
    assert "a fault of bubbleproof: RuntimeError: the handler broke" in err
    assert err.count("\n") == 1
