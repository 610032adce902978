"""What every rank did with every nanosecond of a step, and what it waited for.

The step of all ranks is one window, from the first begin to the last end. A rank's part of it falls
into stretches without gaps or overlaps, so times per cause sum exactly to the window:

``work``
    a computation, from when its inputs were there.
``message``
    a wait for a message until the producer's SEND had ended: the producer was late. Or, in a SEND
    that waits, until the other rank had begun its RECV.
``link``
    the rest of the wait, until the data were taken in: the message was on its way.
``launch``
    the host posted a SEND or a RECV.
``collective``
    UNSHARD, RESHARD, REDUCE_GRAD or STEP.
``host``
    between two actions.
``start``, ``end``
    before the rank's first action of the step, and after its last.

In which span a wait lies is told by the runtime's model (``wait_model``). Spans of communication
that lie beside a computation (a thread of their own) take no time of it: they count where the rank
does not compute.

Where a wait ends by another rank's clock, the work behind it is as uncertain as that clock: it may
have begun ``early`` or ``late``.

What a rank waited *for* is followed to where it comes from: while rank 3 waited for rank 2, rank 2
worked on some action, or waited itself for rank 1, and so on (``roots``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple

from bubbleproof.theory.model.actions import COMMUNICATION_KINDS, Action
from bubbleproof.theory.pipelines.programs.messages import Message
from bubbleproof.traces.clock_offsets import ClockOffsets
from bubbleproof.traces.trace_spans import TraceSpan
from bubbleproof.traces.traced_steps import COMPUTE, Step, TracedJob
from bubbleproof.traces.wait_model import Traffic, WaitModel, model_and_clocks


class TimeSpent(StrEnum):
    """On what a rank's time went; all but ``WORK`` is idle."""

    WORK = "work"
    MESSAGE = "message"
    LINK = "link"
    LAUNCH = "launch"
    COLLECTIVE = "collective"
    HOST = "host"
    START = "start"
    END = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A rank from ``begin`` to ``end`` (ns, rank 0's clock).

    ``message`` is what it waited for, of rank ``awaited``. ``early`` and ``late`` say how much
    earlier or later it may have begun, as clocks are uncertain.
    """

    rank: int
    begin: int
    end: int
    spent: TimeSpent
    action: Action | None = None
    message: Message | None = None
    awaited: int | None = None
    early: int = 0
    late: int = 0

    @property
    def length(self) -> int:
        return self.end - self.begin


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """One step: its window (ns), and the stretches of each rank in order."""

    begin: int
    end: int
    ranks: tuple[tuple[Stretch, ...], ...]

    @property
    def length(self) -> int:
        return self.end - self.begin

    def spent(self, rank: int) -> Counter[TimeSpent]:
        """The time of a rank by cause; its values sum to the step's length."""
        found: Counter[TimeSpent] = Counter()
        for stretch in self.ranks[rank]:
            found[stretch.spent] += stretch.length
        return found

    def work(self) -> dict[Action, Stretch]:
        """The work of each computation."""
        return {
            stretch.action: stretch
            for stretches in self.ranks
            for stretch in stretches
            if stretch.spent is TimeSpent.WORK and stretch.action is not None
        }

    def roots(self) -> Counter[tuple[int, str]]:
        """By rank and by what it did (an action's name, or a cause): how long others waited."""
        found: Counter[tuple[int, str]] = Counter()
        for stretches in self.ranks:
            for stretch in stretches:
                if stretch.spent is TimeSpent.MESSAGE:
                    found.update(self._followed(stretch, stretch.begin, stretch.end, 0))
        return found

    def _followed(
        self, stretch: Stretch, begin: int, end: int, depth: int
    ) -> Counter[tuple[int, str]]:
        found: Counter[tuple[int, str]] = Counter()
        if stretch.awaited is None or depth > len(self.ranks):
            return Counter({(stretch.rank, stretch.spent.value): end - begin})
        for other in self.ranks[stretch.awaited]:
            first, last = max(begin, other.begin), min(end, other.end)
            if first >= last:
                continue
            if other.spent is TimeSpent.MESSAGE:
                found.update(self._followed(other, first, last, depth + 1))
            else:
                is_work = other.spent is TimeSpent.WORK and other.action is not None
                name = _kind_of(other.action) if is_work else other.spent.value
                found[other.rank, name] += last - first
        return found


def _kind_of(action: Action | None) -> str:
    return "" if action is None else f"{action.stage}{action.kind.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedTimes:
    """All steps of a job in rank 0's time, how far clocks may be wrong (ns), and where waits lie.

    ``clocks`` are those of all steps or, where they drift, of the step that is most uncertain.
    """

    job: TracedJob
    steps: Sequence[StepTimes]
    clocks: ClockOffsets
    model: WaitModel

    def median_step(self) -> StepTimes:
        """The step of median length (of two the shorter)."""
        return sorted(self.steps, key=lambda step: step.length)[(len(self.steps) - 1) // 2]


def traced_times(job: TracedJob) -> TracedTimes:
    """Put the ranks on one clock and say on what their time went."""
    traffic = Traffic.of(job)
    model, clocks = model_and_clocks(traffic, job)
    reader = _StepReader(traffic, model)
    steps = [reader.times(*pair) for pair in zip(job.steps, clocks, strict=True)]
    widest = max(clocks, key=lambda each: each.uncertainty)
    return TracedTimes(job=job, steps=steps, clocks=widest, model=model)


class _StepReader:
    """Reads the steps of a job whose waits lie as the model says."""

    def __init__(self, traffic: Traffic, model: WaitModel) -> None:
        self._traffic, self._model = traffic, model

    def times(self, step: Step, clocks: ClockOffsets) -> StepTimes:
        """The stretches of all ranks."""
        offsets = clocks.offsets
        begin = min(
            min(s.begin for s in spans.values()) - offsets[r] for r, spans in enumerate(step)
        )
        end = max(max(s.end for s in spans.values()) - offsets[r] for r, spans in enumerate(step))
        ranks = tuple(
            tuple(self._stretches(step, rank, clocks, begin, end)) for rank in range(len(step))
        )
        return StepTimes(begin=begin, end=end, ranks=ranks)

    def _stretches(
        self, step: Step, rank: int, clocks: ClockOffsets, begin: int, end: int
    ) -> Iterator[Stretch]:
        at, spent = begin, TimeSpent.START
        for span, first, last in _in_turn(step[rank], clocks.offsets[rank]):
            if first > at:
                yield Stretch(rank=rank, begin=at, end=first, spent=spent)
                at = first
            spent = TimeSpent.HOST
            if last > at:  # what lies inside another action is that action's
                yield from self._of_span(step, rank, clocks, span, at, last)
                at = last
        if end > at:
            yield Stretch(rank=rank, begin=at, end=end, spent=TimeSpent.END)

    def _of_span(
        self, step: Step, rank: int, clocks: ClockOffsets, span: TraceSpan, first: int, last: int
    ) -> Iterator[Stretch]:
        """One action: a wait for its latest message, if it waits, and the rest of it."""
        action = span.action
        if action.kind in COMPUTE:
            arrivals = [
                self._arrival(step, rank, clocks, message)
                for message in self._traffic.needs.get(action, ())
                if not (self._model.in_recv and message.recv in step[rank])
            ]
            yield from _waited(rank, action, arrivals, first, last, TimeSpent.WORK)
        elif action.kind not in COMMUNICATION_KINDS:
            spent = TimeSpent.COLLECTIVE
            yield Stretch(rank=rank, begin=first, end=last, spent=spent, action=action)
        else:
            arrivals = self._in_communication(step, rank, clocks, action, last)
            yield from _waited(rank, action, arrivals, first, last, TimeSpent.LAUNCH)

    def _arrival(self, step: Step, rank: int, clocks: ClockOffsets, message: Message) -> _Arrival:
        """When the SEND of a message had ended and its data were there."""
        left = self._traffic.sent(step, message).end - clocks.offsets[message.source]
        received = step[rank].get(message.recv)
        if received is None or received.received is None:
            early, late = clocks.late(message.source, rank)
            return _Arrival(left, left, message, message.source, early, late)
        there = received.received - clocks.offsets[rank]
        return _Arrival(left, there, message, message.source)

    def _in_communication(
        self, step: Step, rank: int, clocks: ClockOffsets, action: Action, last: int
    ) -> list[_Arrival]:
        """What a RECV, or a SEND, waits for within its span; it ends when that is there."""
        message = self._traffic.of_end.get((rank, action))
        if message is None:
            return []
        if action == message.recv and self._model.in_recv:
            left = self._traffic.sent(step, message).end - clocks.offsets[message.source]
            begun = step[rank][action].begin - clocks.offsets[rank]
            there = last if left > begun else left  # else it had left before it was awaited
            return [_Arrival(left, there, message, message.source)]
        taken = step[message.target].get(message.recv)
        if action == message.send and self._model.in_send and taken is not None:
            begun = taken.begin - clocks.offsets[message.target]
            return [_Arrival(begun, begun, message, message.target)]
        return []


class _Arrival(NamedTuple):
    """When the other rank had done its part, when the data were there, and of what; see Stretch."""

    left: int
    there: int
    message: Message
    awaited: int
    early: int = 0
    late: int = 0


def _in_turn(
    spans: Mapping[Action, TraceSpan], offset: int
) -> Iterator[tuple[TraceSpan, int, int]]:
    """A rank's spans in order on rank 0's clock; communication only where nothing else runs."""
    rows = [(span.begin - offset, span.end - offset, span) for span in spans.values()]
    own = sorted(
        (row for row in rows if row[2].action.kind not in COMMUNICATION_KINDS),
        key=lambda row: row[0],
    )
    found, at = [*own], 0
    beside = sorted(
        (row for row in rows if row[2].action.kind in COMMUNICATION_KINDS), key=itemgetter(0, 1)
    )
    ends = [*accumulate((last for _, last, _ in own), max)]
    for first, last, span in beside:
        while at < len(own) and ends[at] <= first:
            at += 1
        for number in range(at, len(own)):  # the free parts of it
            if own[number][0] >= last:
                break
            if own[number][0] > first:
                found.append((first, own[number][0], span))
            first = max(first, ends[number])
        if last > first:
            found.append((first, last, span))
    for first, last, span in sorted(found, key=itemgetter(0, 1)):
        yield span, first, last


def _waited(
    rank: int,
    action: Action,
    arrivals: Sequence[_Arrival],
    first: int,
    last: int,
    rest: TimeSpent,
) -> Iterator[Stretch]:
    """A wait for the latest arrival until it was there, and the rest."""
    latest, arrived = None, first
    for each in arrivals:
        if min(each.there, last) > arrived:
            arrived, latest = min(each.there, last), each
    if latest is not None:
        late = min(max(latest.left, first), arrived)
        parts = ((first, late, TimeSpent.MESSAGE), (late, arrived, TimeSpent.LINK))
        for begin, end, spent in parts:
            if end > begin:
                yield Stretch(
                    rank=rank,
                    begin=begin,
                    end=end,
                    spent=spent,
                    action=action,
                    message=latest.message,
                    awaited=latest.awaited,
                )
    if last > arrived:
        soonest = max([first, *(a.there - a.early for a in arrivals)])
        yield Stretch(
            rank=rank,
            begin=arrived,
            end=last,
            spent=rest,
            action=action,
            early=arrived - min(arrived, soonest),
            late=max([arrived, *(min(last, a.there + a.late) for a in arrivals)]) - arrived,
        )
