"""The server of ``serve``: who is turned away, what is answered, what Perfetto may read.

The requests are made by hand (``http.client``), so that hosts and origins are what an attacker's
page or name would send.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from http.client import HTTPConnection, HTTPMessage
from threading import Thread
from typing import NamedTuple

import pytest

from bubbleproof.commands.serving import serve
from bubbleproof.commands.serving.local_server import LocalServer
from bubbleproof.commands.serving.request_guard import Unwelcome
from bubbleproof.commands.serving.served_views import KEPT
from bubbleproof.commands.serving.server_answers import PERFETTO
from proofs_tests.commands.conftest import Run
from proofs_tests.patience import PATIENCE

JSON = {"Content-Type": "application/json"}
QUESTION = '{"family": null}'


class Reply(NamedTuple):
    """What came back."""

    status: int
    headers: HTTPMessage
    text: str


@pytest.fixture(scope="module")
def server() -> Iterator[LocalServer]:
    with serve.made_server(["1f1b", "p=2", "m=2"], 0) as made:
        thread = Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def ask(
    server: LocalServer, method: str, path: str, body: str | None = None, **headers: str
) -> Reply:
    """``path`` behind the page's token; one that begins with a slash stands for itself."""
    whole = path if path.startswith("/") else f"/{server.answers.guard.token}/{path}"
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    connection = HTTPConnection("127.0.0.1", server.server_address[1], timeout=PATIENCE)
    connection.request(method, whole, body, {**(JSON if body is not None else {}), **names})
    answer = connection.getresponse()
    found = Reply(answer.status, answer.headers, answer.read().decode())
    connection.close()
    return found


def judged(server: LocalServer, question: str = QUESTION) -> int:
    number = json.loads(ask(server, "POST", "judge", question).text)["number"]
    assert isinstance(number, int)
    return number


def trace_path(server: LocalServer, number: int) -> str:
    return f"/{server.answers.guard.trace_token}/schedule.perfetto.json?n={number}"


def test_it_listens_on_this_machine_alone(server: LocalServer) -> None:
    assert server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "", {}, 200),
        ("GET", "", {"Host": "localhost:PORT"}, 200),
        ("GET", "", {"Host": "evil.example:PORT"}, 421),  # another name of this address
        ("GET", "", {"Host": "127.0.0.1"}, 421),
        ("GET", "/", {}, 404),
        ("GET", "/judge", {}, 404),
        ("GET", "/wrong-token/", {}, 404),
        ("GET", "judge", {}, 404),  # a question is a POST
        ("GET", "../../etc/passwd", {}, 404),
        ("GET", "frame", {}, 200),
        ("GET", "schedule.json?n=999", {}, 404),
        ("GET", "schedule.json?n=-1", {}, 404),
        ("GET", "schedule.json", {}, 404),
        ("GET", "solve", {}, 404),
        ("POST", "judge", {}, 200),
        ("POST", "judge", {"Origin": "http://127.0.0.1:PORT"}, 200),
        ("POST", "judge", {"Origin": "http://evil.example"}, 403),
        ("POST", "judge", {"Origin": "null"}, 403),  # a frame without an origin, as our views
        ("POST", "judge", {"Origin": PERFETTO}, 403),
        ("POST", "judge", {"Content_Type": "text/plain"}, 415),  # what a foreign form may send
        ("POST", "judge", {"Content_Length": "99999999"}, 413),
        ("POST", "judge", {"Content_Length": "-1"}, 411),
        ("POST", "frame", {}, 404),
        ("POST", "open", {"Origin": "http://evil.example"}, 403),
        ("POST", "solve", {"Origin": "null"}, 403),
        ("POST", "stop", {"Content_Type": "text/plain"}, 415),
        ("POST", "/wrong-token/judge", {}, 404),
        ("PUT", "judge", {}, 501),
    ],
)
def test_who_is_answered(
    server: LocalServer, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    port = str(server.server_address[1])
    given = {name: value.replace("PORT", port) for name, value in headers.items()}
    body = QUESTION if method == "POST" else None
    assert ask(server, method, path, body, **given).status == status


def test_what_is_no_address_is_no_fault_of_ours(server: LocalServer) -> None:
    with pytest.raises(Unwelcome) as caught:
        server.answers.answer("GET", "http://[", {})
    assert caught.value.status == 400


def test_no_answer_sets_a_cookie_or_is_kept(server: LocalServer) -> None:
    for path in ("", "frame", f"schedule.html?n={judged(server)}", "nothing"):
        headers = ask(server, "GET", path).headers
        assert "Set-Cookie" not in headers
        assert headers["Cache-Control"] == "no-store"
        assert headers["Referrer-Policy"] == "no-referrer"  # the token goes nowhere
        assert "Access-Control-Allow-Origin" not in headers


def test_a_page_runs_its_own_scripts_alone(server: LocalServer) -> None:
    """The policy names the hash of every script on the page, and nothing is loaded."""
    for path in ("", "frame"):
        reply = ask(server, "GET", path)
        policy = reply.headers["Content-Security-Policy"]
        scripts = re.findall(r"<script>(.*?)</script>", reply.text, re.DOTALL)
        assert scripts
        for script in scripts:
            assert b64encode(sha256(script.encode()).digest()).decode() in policy
        assert policy.startswith("default-src 'none'; script-src 'sha256-")
        assert not re.search(r"""(src|href)=["']?(https?:)?//""", reply.text)
    assert "sandbox allow-scripts;" in policy  # of the frame: it has no origin of its own


def test_perfetto_may_read_the_trace_and_nothing_else(server: LocalServer) -> None:
    path = trace_path(server, judged(server))
    asked = ask(server, "OPTIONS", path, Origin=PERFETTO)
    assert asked.status == 204
    assert asked.headers["Access-Control-Allow-Private-Network"] == "true"
    found = ask(server, "GET", path, Origin=PERFETTO)
    assert found.headers["Access-Control-Allow-Origin"] == PERFETTO
    assert json.loads(found.text)["traceEvents"]
    token = server.answers.guard.trace_token
    assert ask(server, "GET", f"/{token}/").status == 404
    assert ask(server, "GET", f"/{token}/schedule.json?n=1").status == 404
    assert ask(server, "POST", f"/{token}/judge", QUESTION).status == 404


@pytest.mark.parametrize("question", ["", "{", "[1]", '{"family": "\\ud800"}', '{"family": 1}'])
def test_a_bad_question_is_refused_in_one_line(server: LocalServer, question: str) -> None:
    reply = ask(server, "POST", "judge", question)
    told = json.loads(reply.text)
    assert reply.status == 422
    assert set(told) == {"refused"}
    assert "\n" not in told["refused"]


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.csv", "0F0,0B0\n", None),
        ("a.toml", "ranks = 2\nmicrobatches = 2\ndurations = {forward = 1, backward = 2}", None),
        ("../../etc/a.json", "{}", "../../etc/a.json: format: expected"),
        ("a.csv", "", "a.csv: expected a row per rank"),
        ("a.exe", "", "a.exe: expected a file ending in .json .csv .toml"),
        ("a.toml", "ranks = 2\nmicrobatches = 2", "a.toml: durations"),
    ],
)
def test_a_file_is_opened_or_refused_under_its_name(
    server: LocalServer, name: str, text: str, told: str | None
) -> None:
    reply = ask(server, "POST", "open", json.dumps({"name": name, "text": text}))
    found = json.loads(reply.text)
    if told is not None:
        assert (reply.status, found["refused"][: len(told)]) == (422, told)
        assert "\n" not in found["refused"]
        return
    assert found["offers"][0]["name"].startswith("a")
    number = judged(server, json.dumps({"family": None, "given": found["first"]}))
    kept = ask(server, "GET", f"schedule.json?n={number}").text
    assert json.loads(kept)["format"] == "bubbleproof/schedule"


def test_the_solver_is_begun_followed_and_ended(server: LocalServer) -> None:
    """GPipe's order of two ranks and three microbatches takes 12 ticks, as the best does: rank 1
    begins at 1, works 9, and B2 of rank 0 takes 2 more."""
    view = {"family": "gpipe", "parameters": {"p": "2", "m": "3"}}
    begun = ask(server, "POST", "solve", json.dumps({"view": view, "seconds": 20}))
    assert json.loads(begun.text)["running"] in (True, False)
    job = server.answers.views._job
    assert job is not None
    job.wait()
    told = json.loads(ask(server, "POST", "progress", "{}").text)
    assert (told["running"], told["best"], told["bound"]) == (False, 12, 12)
    assert "no schedule is better" in told["said"]
    found = {**view, "orders": told["orders"]}
    answer = json.loads(ask(server, "POST", "judge", json.dumps(found)).text)
    assert answer["status"] == 0
    assert answer["headline"].startswith("12 ticks")
    assert ask(server, "POST", "stop", "{}").status == 200


def test_what_cannot_be_solved_is_told(server: LocalServer) -> None:
    """Two ranks with no memory hold nothing."""
    view = {"family": "gpipe", "parameters": {"p": "2", "m": "3"}, "capacity": {"units": 0}}
    ask(server, "POST", "solve", json.dumps({"view": view, "seconds": 20}))
    job = server.answers.views._job
    assert job is not None
    job.wait()
    told = json.loads(ask(server, "POST", "progress", "{}").text)
    assert told["orders"] is None
    assert told["said"].startswith("infeasible: no schedule exists")
    for seconds in (0, 601, "x"):
        asked = json.dumps({"view": view, "seconds": seconds})
        assert "seconds" in ask(server, "POST", "solve", asked).text


def test_bytes_that_are_no_text_are_refused(server: LocalServer) -> None:
    assert server.answers.question("judge", b"\xff\xfe").status == 422


def test_the_last_views_stay(server: LocalServer) -> None:
    first = judged(server)
    assert ask(server, "GET", f"schedule.csv?n={first}").status == 200
    for _ in range(KEPT - 1):
        judged(server)
    assert ask(server, "GET", f"schedule.csv?n={first}").status == 200
    judged(server)
    assert ask(server, "GET", f"schedule.csv?n={first}").status == 404


def test_a_fault_of_ours_is_told_as_one(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bubbleproof.commands.serving.served_views.judged_view", 1 / 1)
    assert ask(server, "POST", "judge", QUESTION).status == 500
    assert "a fault of bubbleproof" in capsys.readouterr().err


def test_a_port_that_is_taken_is_told(server: LocalServer, command: Run) -> None:
    port = server.server_address[1]
    answer = command("serve", "--port", str(port))
    assert answer.status == 2
    assert f"port {port} of 127.0.0.1 cannot be had" in answer.err


@pytest.mark.parametrize("port", [-1, 65536])
def test_what_is_no_port_is_told(command: Run, port: int) -> None:
    answer = command("serve", f"--port={port}")
    assert (answer.status, answer.out) == (2, "")
    assert "--port must be 0 (any that is free) to 65535" in answer.err


def test_a_taken_port_of_perfetto_gives_way_to_a_free_one(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(serve, "PORT", server.server_address[1])
    with serve.made_server(["1f1b", "p=2", "m=2"], None) as other:
        assert other.server_address[1] != server.server_address[1]
        assert '"perfetto":null' in other.answers.page
    assert "Perfetto reads no other" in capsys.readouterr().err


def test_a_page_on_perfettos_port_links_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address of the trace stands in the link, escaped, so that Perfetto's page fetches it."""
    free = LocalServer(0)
    port = free.server_address[1]
    monkeypatch.setattr(serve, "PORT", port)
    monkeypatch.setattr(serve, "LocalServer", lambda asked: {port: free}[asked])
    with serve.made_server(["1f1b", "p=2", "m=2"], None) as made:
        link = f"{PERFETTO}/#!/?url=http%3A%2F%2F127.0.0.1%3A{port}%2F"
        assert f'"perfetto":"{link}' in made.answers.page


def test_ctrl_c_ends_it_as_any_command(command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_server: LocalServer) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(LocalServer, "serve_forever", interrupt)
    answer = command("serve", "gpipe", "p=2", "m=2", "--port", "0")
    assert answer.status == 130
    assert re.match(r"http://127\.0\.0\.1:\d+/[\w-]{32}/  \(Ctrl-C ends it\)\n", answer.out)
