"""What every rank did with every nanosecond of a step, and what it waited for.

The step of all ranks is one window, from the first begin to the last end. A rank's part of it falls
into stretches without gaps or overlaps, so times per cause sum exactly to the window:

``work``
    a computation, from when its inputs were there. A wait hides inside the action that needs it: it
    begins when the action does and ends when the data were taken in (``received``, which gloo
    tells) or, where the trace does not tell that, when the matched SEND had ended.
``message``
    such a wait until the producer's SEND had ended: the producer was late.
``link``
    the rest of it, until the data were taken in: the message was on its way.
``launch``
    the host posted a SEND or a RECV, or waited for a SEND.
``collective``
    UNSHARD, RESHARD, REDUCE_GRAD or STEP.
``host``
    between two actions.
``start``, ``end``
    before the rank's first action of the step, and after its last.

What a rank waited *for* is followed to where it comes from: while rank 3 waited for rank 2, rank 2
worked on some action, or waited itself for rank 1, and so on (``roots``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from bubbleproof.theory.model.actions import COMMUNICATION_KINDS, Action
from bubbleproof.theory.pipelines.programs.messages import Message, messages
from bubbleproof.traces.clock_offsets import ClockOffsets, Passage, clock_offsets
from bubbleproof.traces.trace_spans import TraceSpan
from bubbleproof.traces.traced_steps import COMPUTE, Step, TracedJob


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
    """A rank from ``begin`` to ``end`` (ns, rank 0's clock); ``message`` is what it waited for."""

    rank: int
    begin: int
    end: int
    spent: TimeSpent
    action: Action | None = None
    message: Message | None = None

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

    def work(self) -> dict[Action, tuple[int, int]]:
        """Begin and end of the work of each computation."""
        return {
            stretch.action: (stretch.begin, stretch.end)
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
        message = stretch.message
        if message is None or depth > len(self.ranks):
            return Counter({(stretch.rank, stretch.spent.value): end - begin})
        for other in self.ranks[message.source]:
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
    """All steps of a job in rank 0's time, and how far clocks may be wrong (ns)."""

    job: TracedJob
    steps: Sequence[StepTimes]
    clocks: ClockOffsets

    def median_step(self) -> StepTimes:
        """The step of median length (of two the shorter)."""
        return sorted(self.steps, key=lambda step: step.length)[(len(self.steps) - 1) // 2]


def traced_times(job: TracedJob) -> TracedTimes:
    """Put the ranks on one clock and say on what their time went."""
    problem = job.pipeline.problem()
    found = messages(problem)
    actions = list(problem.actions)
    needs: dict[Action, list[Message]] = {}
    for message in found:
        needs.setdefault(actions[message.consumer], []).append(message)
    producer = {id(message): actions[message.producer] for message in found}
    reader = _StepReader(needs, producer)
    passages = [each for step in job.steps for each in reader.passages(step)]
    clocks = clock_offsets(job.num_ranks, passages)
    steps = [reader.times(step, clocks.offsets) for step in job.steps]
    return TracedTimes(job=job, steps=steps, clocks=clocks)


class _StepReader:
    """Reads steps; ``needs`` are the messages that a computation consumes."""

    def __init__(
        self, needs: Mapping[Action, Sequence[Message]], producer: Mapping[int, Action]
    ) -> None:
        self._needs, self._producer = needs, producer

    def passages(self, step: Step) -> Iterator[Passage]:
        """The messages of a step with times that bound clocks."""
        for rank, spans in enumerate(step):
            for action in spans:
                for message in self._needs.get(action, ()):
                    sent = self._sent(step, message)
                    received = step[rank].get(message.recv)
                    there = spans[action].end
                    if received is not None and received.received is not None:
                        there = min(there, received.received)
                    yield Passage(source=message.source, target=rank, sent=sent.begin, there=there)

    def times(self, step: Step, offsets: Sequence[int]) -> StepTimes:
        """The stretches of all ranks."""
        begin = min(
            min(s.begin for s in spans.values()) - offsets[r] for r, spans in enumerate(step)
        )
        end = max(max(s.end for s in spans.values()) - offsets[r] for r, spans in enumerate(step))
        ranks = tuple(
            tuple(self._stretches(step, rank, offsets, begin, end)) for rank in range(len(step))
        )
        return StepTimes(begin=begin, end=end, ranks=ranks)

    def _sent(self, step: Step, message: Message) -> TraceSpan:
        """The SEND of a message or, where the trace has none, what made it."""
        spans = step[message.source]
        return spans.get(message.send) or spans[self._producer[id(message)]]

    def _stretches(
        self, step: Step, rank: int, offsets: Sequence[int], begin: int, end: int
    ) -> Iterator[Stretch]:
        at, spent = begin, TimeSpent.START
        for span in sorted(step[rank].values(), key=lambda span: span.begin):
            first, last = span.begin - offsets[rank], span.end - offsets[rank]
            if first > at:
                yield Stretch(rank=rank, begin=at, end=first, spent=spent)
                at = first
            spent = TimeSpent.HOST
            if last > at:  # what lies inside another action is that action's
                yield from self._of_span(step, rank, offsets, span, at, last)
                at = last
        if end > at:
            yield Stretch(rank=rank, begin=at, end=end, spent=TimeSpent.END)

    def _of_span(
        self, step: Step, rank: int, offsets: Sequence[int], span: TraceSpan, first: int, last: int
    ) -> Iterator[Stretch]:
        """One action: a wait for its latest message, if it waits, and its work."""
        action = span.action
        if action.kind not in COMPUTE:
            is_message = action.kind in COMMUNICATION_KINDS
            spent = TimeSpent.LAUNCH if is_message else TimeSpent.COLLECTIVE
            yield Stretch(rank=rank, begin=first, end=last, spent=spent, action=action)
            return
        arrived, sent, message = first, first, None
        for each in self._needs.get(action, ()):
            left = self._sent(step, each).end - offsets[each.source]
            received = step[rank].get(each.recv)
            there = left
            if received is not None and received.received is not None:
                there = received.received - offsets[rank]
            if min(there, last) > arrived:
                arrived, sent, message = min(there, last), left, each
        late = min(max(sent, first), arrived)
        parts = ((first, late, TimeSpent.MESSAGE), (late, arrived, TimeSpent.LINK))
        for begin, end, spent in parts:
            if end > begin:
                yield Stretch(
                    rank=rank, begin=begin, end=end, spent=spent, action=action, message=message
                )
        if last > arrived:
            yield Stretch(rank=rank, begin=arrived, end=last, spent=TimeSpent.WORK, action=action)
