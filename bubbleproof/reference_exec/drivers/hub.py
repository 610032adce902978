"""What the first process keeps for all: it collects what each says, and hears of each one's end.

Every process has one connection (``Wire``) to the hub and says on it, as JSON,

``hello``  who it is, and how many processes it was told of;
``put``    its value for a topic; when all have put theirs, all get what is made of them;
``ended``  that it failed, stalled, was interrupted or lost its agent, and how (``Ending``);
``bye``    that it is through: its connection's end means nothing any more.

A connection that ends without ``bye`` is a process that died. After the first ending the hub
listens a moment, as the first to be heard of need not be the cause, then tells all to end, and one
process on each node to say why.
"""

from __future__ import annotations

import math
import selectors
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from bubbleproof.reference_exec.drivers.place import named
from bubbleproof.reference_exec.drivers.rank_report import Ending, Report, gravest_of, speakers
from bubbleproof.reference_exec.drivers.wire import Message, Wire

Made = Callable[[Sequence[object]], object]  # of all values of a topic, in rank order, what all get
START_SECONDS = 120.0
LINGER_SECONDS = 3.0
BROKEN, UNUSABLE, INTERRUPTED = 1, 2, 130  # exit statuses


@dataclass(slots=True, kw_only=True, eq=False)
class _Topic:
    values: dict[int, object] = field(default_factory=dict)
    deadline: float = math.inf


class Hub:
    """A thread that serves ``size`` processes; ``topics`` says what is made of the values of each.

    ``port`` is where it listens, ``token`` what a process has to know to be taken for one.
    """

    def __init__(
        self,
        size: int,
        topics: Mapping[str, Made],
        *,
        token: str,
        start_seconds: float = START_SECONDS,
    ) -> None:
        self._size, self._make, self._token = size, topics, token
        self._listener = _listener()
        self.port = int(self._listener.getsockname()[1])
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._wires: dict[int, Wire] = {}  # by rank
        self._ranks: dict[Wire, int] = {}
        self._nodes: dict[int, str] = {}
        self._left: set[int] = set()  # said bye
        self._ended: dict[int, Report] = {}
        self._topics: dict[str, _Topic] = {}
        self._start = time.monotonic() + start_seconds
        self._start_seconds = start_seconds
        self._hearing = math.inf  # until when others' endings are listened for
        self._told: float | None = None  # when all were told to end
        self._last: Message = {}  # what they were told
        self._thread = threading.Thread(target=self._serve, name="hub", daemon=True)
        self._thread.start()

    def linger(self) -> None:
        """Wait until all are gone, some seconds at most: what was sent has then arrived."""
        self._thread.join(LINGER_SECONDS)

    def _serve(self) -> None:
        while not self._is_over():
            for key, _ in self._selector.select(timeout=self._patience()):
                if key.fileobj is self._listener:
                    self._accept()
                elif isinstance(key.fileobj, Wire):
                    self._read(key.fileobj)
            if self._told is None:
                self._look_at_the_clock()
        self._listener.close()

    def _is_over(self) -> bool:
        """Whether all that are to come have gone, and have said so or been told to."""
        if self._told is not None and time.monotonic() > self._told + LINGER_SECONDS:
            return True
        is_done = self._told is not None or len(self._left) == self._size
        return is_done and not self._wires and len(self._nodes) == self._size

    def _patience(self) -> float:
        now, deadlines = time.monotonic(), (topic.deadline for topic in self._topics.values())
        return max(min(now + 1.0, self._hearing, self._start, *deadlines) - now, 0.0)

    def _accept(self) -> None:
        connected, _ = self._listener.accept()
        self._selector.register(Wire(connected), selectors.EVENT_READ)

    def _read(self, wire: Wire) -> None:
        messages = wire.read()
        for message in messages or ():
            if wire in self._ranks:
                self._hear(self._ranks[wire], message)
            elif message.get("hello") == self._token:
                self._greet(wire, message)
            else:
                messages = None  # a stranger
        if messages is None:
            self._close(wire)

    def _close(self, wire: Wire) -> None:
        self._selector.unregister(wire)
        wire.close()
        rank = self._ranks.pop(wire, None)
        if rank is not None:
            del self._wires[rank]
            if rank not in self._left:
                self._end(rank, Ending.DIED, "died")

    def _greet(self, wire: Wire, hello: Message) -> None:
        rank, size, node = (hello.get(name) for name in ("rank", "size", "node"))
        if self._told is not None:
            wire.send({**self._last, "say": True})
            return
        if not isinstance(rank, int) or rank in self._nodes or size != self._size:
            self._refuse(wire, rank, size, str(node))
            return
        self._ranks[wire] = rank
        self._wires[rank] = wire
        self._nodes[rank] = str(node)
        if len(self._nodes) == self._size:
            self._start = math.inf
            self._tell({"all": {str(rank): self._nodes[rank] for rank in self._nodes}})

    def _refuse(self, wire: Wire, rank: object, size: object, node: str) -> None:
        """End all: one was told of other processes than the first one was."""
        if size != self._size:
            text = (
                f"the processes were not given the same number of processes: {self._size} on "
                f"rank 0, {size} on rank {rank} on {node}; --nnodes and --nproc-per-node "
                "(WORLD_SIZE) must be the same for all"
            )
        else:
            text = f"two processes were given rank {rank}; one is on {node}"
        self._tell_to_end(text, UNUSABLE, everyone=True)
        wire.send({**self._last, "say": True})

    def _hear(self, rank: int, message: Message) -> None:
        if "put" in message:
            self._put(rank, str(message["put"]), message.get("value"), message.get("seconds"))
        elif "ended" in message:
            self._end(rank, Ending.of(message["ended"]), str(message.get("text")))
        elif "bye" in message:
            self._left.add(rank)

    def _put(self, rank: int, name: str, value: object, seconds: object) -> None:
        topic = self._topics.setdefault(name, _Topic())
        topic.values[rank] = value
        if isinstance(seconds, int | float):
            topic.deadline = min(topic.deadline, time.monotonic() + seconds)
        if len(topic.values) == self._size:
            topic.deadline = math.inf
            try:
                made = self._make[name]([topic.values[each] for each in sorted(topic.values)])
            except (KeyError, ValueError, TypeError) as error:  # said by another version of ours
                self._tell_to_end(f"what the processes said of {name}: {error}", UNUSABLE)
                return
            self._tell({"topic": name, "value": made})

    def _end(self, rank: int, ending: Ending, text: str) -> None:
        """Note how a process ended, and listen for others: until when is for the first to say."""
        self._ended.setdefault(rank, Report(ending=ending, text=text))
        self._hearing = min(self._hearing, time.monotonic() + ending.patience)

    def _look_at_the_clock(self) -> None:
        now = time.monotonic()
        if now > self._start:
            missing = set(range(self._size)) - self._nodes.keys()
            text = f"{named(missing)} did not come within {self._start_seconds:g} s"
            self._tell_to_end(text, BROKEN)
        for name, topic in self._topics.items():
            if now > topic.deadline:
                self._hearing, topic.deadline = now, math.inf
                self._note_silent(name)
        if now >= self._hearing and self._told is None:
            if all(ended.ending is Ending.STALLED for ended in self._ended.values()):
                self._note_silent("reported")
            interrupted = any(e.ending is Ending.INTERRUPTED for e in self._ended.values())
            status = INTERRUPTED if interrupted else BROKEN
            self._tell_to_end(gravest_of(self._ended, self._nodes), status)

    def _note_silent(self, name: str) -> None:
        """Those that have neither put their value for a topic nor said why they cannot."""
        done = self._topics.get(name, _Topic()).values.keys()
        for rank in set(range(self._size)) - done - self._ended.keys():
            self._ended[rank] = Report(ending=Ending.STALLED, text="gave no report")

    def _tell_to_end(self, text: str, status: int, *, everyone: bool = False) -> None:
        self._told, self._last = time.monotonic(), {"end": text, "status": status}
        saying = speakers(self._wires, self._nodes)
        for rank, wire in self._wires.items():
            wire.send({**self._last, "say": everyone or rank in saying})

    def _tell(self, message: Message) -> None:
        for wire in self._wires.values():
            wire.send(message)


def _listener() -> socket.socket:
    """A listening socket on a free port, of both internet protocols where there are both."""
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", 0))
