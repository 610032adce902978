"""A process's connection to the first one's ``Hub``: what all have said, and when to end.

A thread watches it, so that a process ends also while its main thread waits in a collective that
nothing can interrupt. It ends the process

- when the hub says so: another process died, failed, stalled or was interrupted;
- when the hub's own process is gone;
- on SIGTERM and SIGINT, after it has told the hub;
- where torchrun started it, when that is gone, which would leave it an orphan.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn

from bubbleproof.platforms import let_through
from bubbleproof.reference_exec.broken import one_line
from bubbleproof.reference_exec.drivers.doorway import Message, NotAMessage, Wire
from bubbleproof.reference_exec.drivers.hub import BROKEN, INTERRUPTED
from bubbleproof.reference_exec.drivers.place import ProcessPlace, at_nodes
from bubbleproof.reference_exec.drivers.rank_report import Ending, speakers

LOOK_SECONDS = 1.0  # how often the parent is looked for
CONNECT_SECONDS = 120.0
MAX_NODE, MAX_TEXT = 64, 4000  # characters of a node's name, and of how a process ended
ANSWER_SECONDS = 4.0  # how long the hub may take to answer one that ends
SIGNALS = {signal.SIGTERM: Ending.TERMINATED, signal.SIGINT: Ending.INTERRUPTED}
_STATUS = {Ending.INTERRUPTED: INTERRUPTED}
_WORDS = {
    Ending.TERMINATED: "ended by SIGTERM",
    Ending.INTERRUPTED: "was interrupted",
    Ending.ORPHANED: "lost torchrun, which has ended",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """That this process is to end, and whether it is the one on its node that says why."""

    text: str
    status: int = BROKEN
    is_speaker: bool = True


class Lifeline:
    """The connection of the process at ``place``; ``on_end`` prints, and may not return late.

    The main thread makes it.
    """

    def __init__(
        self,
        place: ProcessPlace,
        address: tuple[str, int],
        token: str,
        *,
        on_end: Callable[[End], None],
    ) -> None:
        self._place, self._on_end = place, on_end
        self._answers: dict[str, Future[object]] = {}  # by topic
        self._nodes: dict[int, str] = {}
        self._last: End | None = None  # what this process says if the hub says nothing
        self._ending = 0.0  # until when it may
        self._is_left = False
        self._wire = Wire(socket.create_connection(address, timeout=CONNECT_SECONDS))
        node = place.node[:MAX_NODE]
        self._wire.send(
            {"hello": token, "rank": place.rank, "size": place.world_size, "node": node}
        )
        self._awake, self._bell = socket.socketpair()
        self._awake.setblocking(False)
        self._bell.setblocking(False)
        # one that a caller has this process ignore stays ignored
        answered = [each for each in SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
        self._handlers = {number: signal.signal(number, _ignore) for number in answered}
        let_through(SIGNALS)
        self._waked = signal.set_wakeup_fd(self._bell.fileno(), warn_on_full_buffer=False)
        threading.Thread(target=self._watch, name="lifeline", daemon=True).start()

    def exchange(self, topic: str, value: object, seconds: float | None = None) -> object:
        """What the hub makes of all processes' values; it ends all if one takes longer."""
        answer = self._answers[topic] = Future[object]()
        self._wire.send({"put": topic, "value": value, "seconds": seconds})
        return answer.result()

    def end(self, ending: Ending, text: str) -> NoReturn:
        """Tell all that this process cannot go on, and wait to be ended with them."""
        self._tell_end(ending, text)
        while True:
            time.sleep(LOOK_SECONDS)

    def leave(self) -> None:
        """Stop watching: all is said, and no end of another process matters any more."""
        self._is_left = True
        self._wire.send({"bye": True})
        self._ring()
        signal.set_wakeup_fd(self._waked)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._bell.close()

    def _ring(self) -> None:
        with suppress(OSError):
            self._bell.send(b"\0")

    def _tell_end(self, ending: Ending, text: str, status: int = BROKEN) -> None:
        """Tell the hub; where it does not answer in a while, end alone."""
        self._ending = time.monotonic() + ANSWER_SECONDS
        self._last = End(text=f"rank {self._place.rank} {text}", status=status)
        self._wire.send({"ended": ending.label, "text": text[:MAX_TEXT]})
        self._ring()

    def _watch(self) -> None:
        try:
            self._watch_all()
        except Exception as error:  # what rank 0 sends is no message, or a fault of ours
            self._finish(End(text=f"rank {self._place.rank} lost the hub: {one_line(error)}"))

    def _watch_all(self) -> None:
        selector = selectors.DefaultSelector()
        selector.register(self._wire, selectors.EVENT_READ)
        selector.register(self._awake, selectors.EVENT_READ)
        while not self._is_left:
            ready = {key.fileobj for key, _ in selector.select(timeout=LOOK_SECONDS)}
            if self._awake in ready:
                self._answer_signals()
            if self._wire in ready and not self._is_left:
                self._read()
            if self._place.is_orphan and self._last is None:
                self._tell_end(Ending.ORPHANED, _WORDS[Ending.ORPHANED])
            if self._last is not None and time.monotonic() > self._ending:
                self._finish(self._last)
        self._wire.close()
        self._awake.close()

    def _answer_signals(self) -> None:
        with suppress(OSError):
            for number in self._awake.recv(1 << 10):
                ending = SIGNALS.get(number)  # type: ignore[call-overload]  # 0 is our own ring
                if ending is not None:
                    self._tell_end(ending, _WORDS[ending], _STATUS.get(ending, BROKEN))

    def _read(self) -> None:
        if not self._wire.receive():
            self._lose_the_hub()
            return
        while (message := self._wire.take()) is not None:
            self._take_in(message)

    def _take_in(self, message: Message) -> None:
        """What the hub says. Raises ``NotAMessage`` for what it never says."""
        match message:
            case {"end": str(text), "status": int(status), "say": bool(is_speaker)}:
                self._finish(End(text=text, status=status, is_speaker=is_speaker))
            case {"all": dict(nodes)}:
                self._nodes = {int(rank): str(node) for rank, node in nodes.items()}
            case {"topic": str(topic), "value": value} if topic in self._answers:
                self._answers.pop(topic).set_result(value)
            case _:
                raise NotAMessage(f"an object of {', '.join(message)!r:.80}")

    def _lose_the_hub(self) -> None:
        """The first process is gone without a word; a signal of our own says more than that."""
        if not self._is_left:
            time.sleep(0.2)
            self._answer_signals()
        if self._is_left:
            return
        if self._last is not None:
            self._finish(self._last)
        others = set(self._nodes) - {0}
        is_speaker = self._place.rank in speakers(others, self._nodes) or not others
        text = f"{at_nodes([0], self._nodes)} died"
        self._finish(End(text=text, status=BROKEN, is_speaker=is_speaker))

    def _finish(self, end: End) -> NoReturn:
        """Say it and end the process, whatever its main thread waits for."""
        self._wire.close()  # the hub waits for that
        try:
            self._on_end(end)
        finally:
            os._exit(end.status)


def _ignore(number: int, frame: FrameType | None) -> None:
    """The watching thread is woken by the same signal, and answers."""
