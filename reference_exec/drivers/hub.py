"""What the first process keeps for all: it collects what each says, and hears of each one's end.

Every process has one connection (``Wire``) to the hub and says on it, as JSON,

``hello``  who it is, and how many processes it was told of;
``put``    its value for a topic; when all have put theirs, all get what is made of them;
``ended``  that it failed, stalled, was interrupted or lost its agent, and how (``Ending``);
``bye``    that it is through: its connection's end means nothing any more.

A connection that ends without ``bye`` is a process that died, and one that says anything else has
failed. After the first ending the hub listens a moment, as the first to be heard of need not be the
cause, then tells all to end, and one process on each node to say why.

Who connects is a stranger until it knows the token (``doorway``): nothing that a stranger says or
leaves unsaid reaches the processes.
"""

from __future__ import annotations

import math
import selectors
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from bubbleproof.reference_exec.broken import one_line
from bubbleproof.reference_exec.drivers.doorway import (
    FIRST_LINE_SECONDS,
    Doorway,
    Message,
    NotAMessage,
    Wire,
)
from bubbleproof.reference_exec.drivers.place import named
from bubbleproof.reference_exec.drivers.rank_report import Ending, RankReport, gravest_of, speakers
from bubbleproof.reference_exec.plans.replay_limits import LONGEST_SECONDS

MadeAnswer = Callable[
    [Sequence[object]], object
]  # of all values of a topic, in rank order, what all get
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
        topics: Mapping[str, MadeAnswer],
        *,
        token: str,
        address: str,
        stranger_seconds: float = FIRST_LINE_SECONDS,
    ) -> None:
        self._size, self._make = size, topics
        self._selector = selectors.DefaultSelector()
        self._door = Doorway(self._selector, address=address, token=token, seconds=stranger_seconds)
        self.port = self._door.port
        self._wires: dict[int, Wire] = {}  # by rank
        self._ranks: dict[Wire, int] = {}
        self._nodes: dict[int, str] = {}
        self._left: set[int] = set()  # said bye
        self._garbled: set[int] = set()  # said what is no message, and are heard no more
        self._refused: list[Wire] = []
        self._ended: dict[int, RankReport] = {}
        self._topics: dict[str, _Topic] = {}
        self._start = time.monotonic() + START_SECONDS
        self._hearing = math.inf  # until when others' endings are listened for
        self._told: float | None = None  # when all were told to end
        self._last: Message = {}  # what they were told
        self._thread = threading.Thread(target=self._serve, name="hub", daemon=True)
        self._thread.start()

    def linger(self) -> None:
        """Wait until all are gone, some seconds at most: what was sent has then arrived."""
        self._thread.join(LINGER_SECONDS)

    def _serve(self) -> None:
        try:
            while not self._is_over():
                self._turn()
        except Exception as error:  # a fault of ours: without a word all would wait for ever
            self._tell_to_end(f"the hub on rank 0 failed: {one_line(error)}", BROKEN)
            time.sleep(LINGER_SECONDS)  # what was sent is lost where it is not read before
        finally:
            self._door.close()
            for wire in (*self._wires.values(), *self._refused):
                wire.close()
            self._selector.close()

    def _turn(self) -> None:
        """Answer whoever has said something; strangers that are new come last."""
        ready = [key.fileobj for key, _ in self._selector.select(timeout=self._patience())]
        for wire in ready:
            if isinstance(wire, Wire) and self._door.is_stranger(wire):
                self._meet(wire)
            elif isinstance(wire, Wire) and wire in self._ranks:
                self._read(wire)
        if self._door.listener in ready:
            self._door.accept()
        self._door.drop_late()
        if self._told is None:
            self._look_at_the_clock()

    def _is_over(self) -> bool:
        """Whether all that are to come have gone, and have said so or been told to."""
        if self._told is not None and time.monotonic() > self._told + LINGER_SECONDS:
            return True
        is_done = self._told is not None or len(self._left) == self._size
        return is_done and not self._wires and len(self._nodes) == self._size

    def _patience(self) -> float:
        """Until when nothing is to be done unless somebody says something, in seconds."""
        now, deadlines = time.monotonic(), [topic.deadline for topic in self._topics.values()]
        if self._told is None:
            deadlines += [self._hearing, self._start]
        else:
            deadlines = [self._told + LINGER_SECONDS]
        return max(min(now + 1.0, *deadlines) - now, 0.0)

    def _meet(self, stranger: Wire) -> None:
        if (hello := self._door.hello(stranger)) is None:
            return
        if self._greet(stranger, hello):
            self._hear_all(stranger)  # what came with it
        else:
            self._selector.unregister(stranger)

    def _read(self, wire: Wire) -> None:
        if wire.receive():
            self._hear_all(wire)
        else:
            self._close(wire)

    def _hear_all(self, wire: Wire) -> None:
        """Take in what a process says, to the first thing that is no message."""
        rank = self._ranks[wire]
        try:
            while rank not in self._garbled and (message := wire.take()) is not None:
                self._hear(rank, message)
        except NotAMessage as error:
            self._garbled.add(rank)
            self._end(rank, Ending.FAILED, f"failed: it sent what is no message: {error}")
        if rank in self._garbled:
            wire.forget()

    def _close(self, wire: Wire) -> None:
        self._selector.unregister(wire)
        wire.close()
        rank = self._ranks.pop(wire, None)
        if rank is not None:
            del self._wires[rank]
            if rank not in self._left:
                self._end(rank, Ending.DIED, "died")

    def _greet(self, wire: Wire, hello: Message) -> bool:
        """Count one who knows the token among the processes; False where it is to end instead."""
        rank, size, node = (hello.get(name) for name in ("rank", "size", "node"))
        if self._told is None and (why := self._refusal(rank, size, str(node))) is not None:
            self._tell_to_end(why, UNUSABLE, everyone=True)
        if self._told is not None or not isinstance(rank, int):
            wire.send({**self._last, "say": True})
            self._refused.append(wire)  # closed at once it might lose what was sent
            return False
        self._ranks[wire] = rank
        self._wires[rank] = wire
        self._nodes[rank] = str(node)
        if len(self._nodes) == self._size:
            self._start = math.inf
            self._tell({"all": {str(rank): self._nodes[rank] for rank in self._nodes}})
        return True

    def _refusal(self, rank: object, size: object, node: str) -> str | None:
        """Why all must end where one says that it is this; None where it is one of them."""
        if size != self._size:
            return (
                f"the processes were not given the same number of processes: {self._size} on "
                f"rank 0, {size} on rank {rank} on {node}; --nnodes and --nproc-per-node "
                "(WORLD_SIZE) must be the same for all"
            )
        if type(rank) is not int or not 0 <= rank < self._size:
            return f"a process on {node} was given rank {rank} of {self._size}"
        if rank in self._nodes:
            return f"two processes were given rank {rank}; one is on {node}"
        return None

    def _hear(self, rank: int, message: Message) -> None:
        """Take in a message of a process. Raises ``NotAMessage`` for what is none of ours."""
        match message:
            case {"put": str(name), "value": value, "seconds": seconds} if name in self._make:
                self._put(rank, name, value, seconds)
            case {"ended": str(label), "text": str(text)}:
                self._end(rank, Ending.of(label), text)
            case {"bye": True}:
                self._left.add(rank)
            case _:
                raise NotAMessage(f"an object of {', '.join(message)!r:.80}")

    def _put(self, rank: int, name: str, value: object, seconds: object) -> None:
        topic = self._topics.setdefault(name, _Topic())
        if seconds is not None:
            if not isinstance(seconds, int | float) or not 0 <= seconds <= LONGEST_SECONDS:
                raise NotAMessage(f"{seconds!r:.40} seconds for {name}")
            topic.deadline = min(topic.deadline, time.monotonic() + seconds)
        if rank in topic.values:
            raise NotAMessage(f"{name} twice")
        topic.values[rank] = value
        if len(topic.values) == self._size:
            topic.deadline = math.inf
            try:
                made = self._make[name]([topic.values[each] for each in sorted(topic.values)])
            except Exception as error:  # said by another version of ours, or by nobody of ours
                why = f"{type(error).__name__}: {error}"
                self._tell_to_end(f"what the processes said of {name}: {why}", UNUSABLE)
                return
            self._tell({"topic": name, "value": made})

    def _end(self, rank: int, ending: Ending, text: str) -> None:
        """Note how a process ended, and listen for others: until when is for the first to say."""
        self._ended.setdefault(rank, RankReport(ending=ending, text=text))
        self._hearing = min(self._hearing, time.monotonic() + ending.patience)

    def _look_at_the_clock(self) -> None:
        now = time.monotonic()
        if now > self._start:
            missing = set(range(self._size)) - self._nodes.keys()
            text = f"{named(missing)} did not come within {START_SECONDS:g} s"
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
            self._ended[rank] = RankReport(ending=Ending.STALLED, text="gave no report")

    def _tell_to_end(self, text: str, status: int, *, everyone: bool = False) -> None:
        self._told, self._last = time.monotonic(), {"end": text, "status": status}
        saying = speakers(self._wires, self._nodes)
        for rank, wire in self._wires.items():
            wire.send({**self._last, "say": everyone or rank in saying})

    def _tell(self, message: Message) -> None:
        for wire in self._wires.values():
            wire.send(message)
