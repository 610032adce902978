"""The hub of torchrun replays: nobody who comes to its port ends it, and a process of the replay
that says what is no message is named as that rank's failure.

All of it on 127.0.0.1. What hangs fails by ``PATIENCE``.
"""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

import pytest

from bubbleproof.reference_exec.drivers import doorway
from bubbleproof.reference_exec.drivers import hub as hubs
from bubbleproof.reference_exec.drivers.doorway import FIRST_LINE, MAX_LINE, MAX_STRANGERS
from bubbleproof.reference_exec.drivers.hub import Hub
from bubbleproof.reference_exec.drivers.lifeline import End, Lifeline
from bubbleproof.reference_exec.drivers.place import ProcessPlace
from bubbleproof.reference_exec.drivers.rank_report import Ending
from bubbleproof.reference_exec.drivers.torchrun import _TOPICS
from proofs_tests.patience import PATIENCE
from proofs_tests.sized import sized

TOKEN = "0123456789abcdef"
HERE = "127.0.0.1"
HELLO = {"hello": TOKEN, "rank": 1, "size": 2, "node": "a"}


def line(message: Mapping[str, object]) -> bytes:
    return json.dumps(message).encode() + b"\n"


@pytest.fixture(autouse=True)
def _short_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not listen for other endings, nor linger, for as long as between machines."""
    monkeypatch.setattr(Ending.FAILED, "patience", 0.02)
    monkeypatch.setattr(hubs, "LINGER_SECONDS", 0.1)


class Caller:
    """Whoever connects: ``says`` bytes, ``hears`` messages, None at the end."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection((HERE, port), timeout=PATIENCE)
        self._lines = self.socket.makefile("rb")

    def says(self, what: bytes) -> None:
        with suppress(OSError):  # the hub has parted with it meanwhile
            self.socket.sendall(what)

    def hears(self) -> dict[str, object] | None:
        try:
            said = self._lines.readline()
        except ConnectionResetError:
            return None
        found: dict[str, object] | None = json.loads(said) if said else None
        return found

    def leaves(self) -> None:
        self._lines.close()
        self.socket.close()


class Served:
    """A hub, and those who have called it."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self._callers: list[Caller] = []

    def call(self) -> Caller:
        self._callers.append(Caller(self.hub.port))
        return self._callers[-1]

    def processes(self, size: int = 2) -> list[Caller]:
        """All processes, which have met."""
        callers = [self.call() for _ in range(size)]
        for rank, caller in enumerate(callers):
            caller.says(line({**HELLO, "rank": rank, "size": size}))
        for caller in callers:
            assert caller.hears() == {"all": {str(rank): "a" for rank in range(size)}}
        return callers

    def leave(self) -> None:
        """All leave that are still there."""
        for caller in self._callers:
            caller.leaves()


@contextmanager
def hub(size: int = 2, seconds: float = PATIENCE) -> Iterator[Served]:
    """A hub whose thread must end after the block, when all have left."""
    before = set(threading.enumerate())
    served = Served(Hub(size, _TOPICS, token=TOKEN, address=HERE, stranger_seconds=seconds))
    (thread,) = set(threading.enumerate()) - before
    try:
        yield served
    finally:
        served.leave()
        thread.join(PATIENCE)
    assert not thread.is_alive()


def part(callers: list[Caller]) -> None:
    """Exchange a status and go, as processes do that came to their end."""
    for rank, caller in enumerate(callers):
        caller.says(line({"put": "status", "value": 3 + rank, "seconds": None}))
    for caller in callers:
        assert caller.hears() == {"topic": "status", "value": 3}
        caller.says(line({"bye": True}))
        caller.leaves()


def drawn(generator: random.Random) -> bytes:
    """A line that no process of ours says: bytes, or JSON of some depth, or a damaged hello."""
    if generator.random() < 0.3:
        return generator.randbytes(generator.randrange(1, 3 * FIRST_LINE)) + b"\n"
    values: list[object] = [True, None, -1, 2, 10**40, 1e308, "", "\ud800", [], {}, [[1]], TOKEN]
    said = dict(HELLO)
    for _ in range(generator.randrange(1, 4)):
        name = generator.choice(["hello", "rank", "size", "node", "put", "ended"])
        said[name] = generator.choice(values)
    if said["hello"] == TOKEN:
        said["hello"] = TOKEN[:-1]
    damaged = bytearray(line(said))
    if generator.random() < 0.5:
        damaged[generator.randrange(len(damaged) - 1)] ^= 1 << generator.randrange(8)
    return bytes(damaged).replace(TOKEN.encode(), b"")


RUBBISH = {
    "nested": b"[" * 200_000,
    "nested, a line": b"[" * 900 + b"\n",
    "nested objects": b'{"hello":' * 100 + b"\n",
    "no newline": b"x" * (FIRST_LINE + 1),
    "too long": b'{"hello": "' + b"x" * FIRST_LINE + b'"}\n',
    "not UTF-8": b'{"hello": "\xff\xfe"}\n',
    "UTF-16": '{"hello": 1}\n'.encode("utf-16"),
    "half a surrogate": b'{"hello": "\\ud800"}\n',
    "a huge number": b'{"hello": ' + b"9" * 900 + b"}\n",
    "NaN": b'{"hello": NaN}\n',
    "an infinity": b"-Infinity\n",
    "an array": b"[1]\n",
    "nothing": b"\n",
    "zeros": bytes(5000),
    "an empty object": b"{}\n",
    "another token": line({**HELLO, "hello": TOKEN[::-1]}),
    "a longer token": line({**HELLO, "hello": TOKEN + "0"}),
    "the token's beginning": line({**HELLO, "hello": TOKEN[:-1]}),
    "no text": line({**HELLO, "hello": [TOKEN]}),
    "a message": line({"put": "status", "value": 1, "seconds": None}),
    "an ending": line({"ended": "died", "text": "died"}),
    "a request": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


@pytest.mark.parametrize("what", RUBBISH)
def test_what_strangers_say_ends_them_alone(what: str) -> None:
    with hub() as served:
        before = served.call()
        before.says(RUBBISH[what])
        assert before.hears() is None
        callers = served.processes()
        during = served.call()
        during.says(RUBBISH[what])
        assert during.hears() is None
        part(callers)


@pytest.mark.sweep
def test_drawn_lines_of_strangers_end_them_alone() -> None:
    generator = random.Random(18)
    with hub() as served:
        callers = served.processes()
        for _ in range(sized(300, full=20_000)):
            stranger = served.call()
            stranger.says(drawn(generator))
            assert stranger.hears() is None
            stranger.leaves()
        part(callers)


def test_strangers_that_say_nothing_or_little_have_some_time_only() -> None:
    with hub(seconds=0.3) as served:
        silent, slow, half = (served.call() for _ in range(3))
        half.says(line(HELLO)[:-1])  # the token, and never a newline
        half.socket.shutdown(socket.SHUT_WR)
        callers = served.processes()
        for byte in line(HELLO)[:40]:
            slow.says(bytes([byte]))
            time.sleep(0.01)
        assert [each.hears() for each in (silent, half, slow)] == [None] * 3
        part(callers)


def test_who_does_not_read_or_is_gone_at_once_stops_nobody() -> None:
    with hub() as served:
        for _ in range(5):
            gone = socket.create_connection((HERE, served.hub.port))
            gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # RST
            gone.close()
        part(served.processes())


def test_many_connections_do_not_keep_the_processes_out() -> None:
    with hub() as served:
        crowd = [served.call() for _ in range(2 * MAX_STRANGERS)]
        callers = served.processes()
        crowd += [served.call() for _ in range(MAX_STRANGERS)]
        part(callers)


def test_a_system_without_connections_to_give_stops_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = iter([True, True])

    class Poor(socket.socket):
        def accept(self) -> tuple[socket.socket, object]:
            if next(failures, False):
                raise OSError(24, "Too many open files")
            return super().accept()

    monkeypatch.setattr(doorway, "_listener", lambda _: _bound(Poor()))
    with hub() as served:
        served.call()
        part(served.processes())


def _bound(listener: socket.socket) -> socket.socket:
    listener.bind((HERE, 0))
    listener.listen()
    return listener


MEMBERS: dict[str, tuple[bytes, str]] = {
    "nested": (b"[" * 200_000 + b"\n", "RecursionError"),
    "not UTF-8": (b"\xff\n", "UnicodeDecodeError"),
    "no JSON": (b"{\n", "JSONDecodeError"),
    "a huge number": (b"9" * 5000 + b"\n", "ValueError"),
    "NaN": (b'{"put": NaN}\n', "NaN is no number of JSON"),
    "an array": (b"[]\n", "expected an object, got list"),
    "nothing known": (line({"no": 1}), "an object of 'no'"),
    "no topic": (line({"put": "x", "value": 1, "seconds": None}), "an object of 'put, value"),
    "a put half": (line({"put": "status"}), "an object of 'put'"),
    "a topic twice": (
        2 * line({"put": "status", "value": 1, "seconds": None}),
        "status twice",
    ),
    "endless": (line({"put": "status", "value": 1, "seconds": 1e9}), "1000000000.0 seconds"),
    "seconds of 400 digits": (
        line({"put": "status", "value": 1, "seconds": 10**400}),
        "seconds for status",
    ),
    "seconds in words": (line({"put": "status", "value": 1, "seconds": "1"}), "'1' seconds"),
    "an ending without words": (line({"ended": "died"}), "an object of 'ended'"),
    "a bye in words": (line({"bye": "yes"}), "an object of 'bye'"),
    "another hello": (line(HELLO), "an object of 'hello, rank, size, node'"),
    "too long": (b"x" * (MAX_LINE + 1), f"a line of more than {MAX_LINE} bytes"),
}


@pytest.mark.parametrize("what", MEMBERS)
def test_a_process_that_sends_rubbish_is_named_and_all_end(what: str) -> None:
    said, why = MEMBERS[what]
    with hub() as served:
        honest, other = served.processes()
        other.says(said)
        told = [caller.hears() for caller in (honest, other)]
        for found in told:
            assert found is not None
            assert str(found["end"]).startswith("rank 1 failed: it sent what is no message: ")
            assert why in str(found["end"])
            assert found["status"] == 1
        assert [found["say"] for found in told if found] == [True, False]  # one on each node


PAPERS: list[object] = [
    3,
    None,
    {"rank": 1},
    {"rank": 1, "node": "a", "parts": {"x": 1}, "refusal": None},
    {"rank": 1, "node": "a", "parts": {"x": ["1", "2", "3"]}, "refusal": None},
    {"rank": 0, "node": "a", "parts": {}, "refusal": None},
]


@pytest.mark.parametrize("paper", PAPERS)
def test_a_paper_that_is_none_is_no_agreement(paper: object) -> None:
    own = {"rank": 0, "node": "a", "parts": {}, "refusal": None}
    with hub() as served:
        callers = served.processes()
        for caller, value in zip(callers, (own, paper), strict=True):
            caller.says(line({"put": "papers", "value": value, "seconds": None}))
        for caller in callers:
            told = caller.hears()
            assert told is not None
            assert "what the processes said of papers: ValueError: " in str(told["end"])
            assert told["status"] == 2


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"rank": 2}, "a process on a was given rank 2 of 2"),
        ({"rank": -1}, "was given rank -1 of 2"),
        ({"rank": True}, "was given rank True of 2"),
        ({"rank": None}, "was given rank None of 2"),
        ({"rank": 10**300}, "was given rank 1000"),
        ({"rank": 0}, "two processes were given rank 0; one is on a"),
        ({"size": 3}, "2 on rank 0, 3 on rank 1 on a"),
        ({"size": "2"}, "2 on rank 0, 2 on rank 1 on a"),
    ],
)
def test_a_process_of_no_place_ends_all(change: dict[str, object], why: str) -> None:
    with hub() as served:
        first, other = served.call(), served.call()
        first.says(line({**HELLO, "rank": 0}))
        other.says(line({**HELLO, **change}))
        for caller in (first, other):
            told = caller.hears()
            assert told is not None
            assert why in str(told["end"])
            assert (told["status"], told["say"]) == (2, True)


@pytest.mark.sweep
def test_drawn_bytes_of_a_process_always_end_all() -> None:
    generator = random.Random(81)
    for _ in range(sized(15, full=1000)):
        said = drawn(generator) + b"\n"  # nothing drawn is a message of a process that has met
        with hub() as served:
            callers = served.processes()
            callers[1].says(said)
            for caller in callers:
                told = caller.hears()
                assert told is not None
                assert str(told["end"]).startswith("rank 1 failed: it sent what is no message: ")


def test_a_fault_of_the_hub_ends_all_with_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: Hub) -> None:
        raise RuntimeError("no clock")

    with hub() as served:
        callers = served.processes()
        monkeypatch.setattr(Hub, "_look_at_the_clock", fails)
        for caller in callers:
            told = caller.hears()
            assert told is not None
            assert told["end"] == "the hub on rank 0 failed: RuntimeError: no clock"


@pytest.mark.parametrize(
    ("address", "is_loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.9.10", True),
        ("localhost", True),
        ("LOCALHOST", True),
        ("::1", True),
        ("10.0.0.7", False),
        ("node7.cluster", False),
        ("localhost.evil.example", False),
    ],
)
def test_the_port_is_of_the_loopback_where_the_processes_meet_there(
    address: str, is_loopback: bool
) -> None:
    found: Callable[[str], object] = doorway._loopback
    if address == "::1" and not socket.has_ipv6:
        pytest.skip("there is no IPv6 here")
    assert bool(found(address)) is is_loopback
    if address == "127.0.0.1":
        with hub() as served:
            listener = served.hub._door.listener
            assert listener.getsockname()[0] == HERE
            part(served.processes())


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"[" * 200_000 + b"\n", "NotAMessage: RecursionError"),
        (line({"topic": "status", "value": 1}), "NotAMessage: an object of 'topic, value'"),
        (line({"end": "x", "status": "1", "say": True}), "NotAMessage: an object of 'end"),
        (line({"all": {"x": "a"}}), "ValueError: invalid literal"),
        (b"x" * (MAX_LINE + 1), "NotAMessage: a line of more than"),
    ],
)
def test_what_a_hub_says_that_is_no_message_ends_the_process(
    said: bytes, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends: list[End] = []
    has_ended = threading.Event()
    monkeypatch.setattr("os._exit", lambda _: has_ended.set())
    with socket.create_server((HERE, 0)) as listener:
        place = ProcessPlace(rank=1, world_size=2, local_rank=1, node="n" * 5000)
        life = Lifeline(place, listener.getsockname(), TOKEN, on_end=ends.append)
        hub_end, _ = listener.accept()
        with hub_end:
            with hub_end.makefile("rb") as lines:
                hello = lines.readline()
            assert len(hello) <= FIRST_LINE
            hub_end.sendall(said)
            assert has_ended.wait(PATIENCE)
        life.leave()
        life._awake.close()  # which its thread does where it ends by itself
    assert ends[0].text.startswith(f"rank 1 lost the hub: {why}")
    assert ends[0].status == 1
