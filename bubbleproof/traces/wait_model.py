"""In which spans of a trace waits for messages lie: the runtime's model, by matching ends.

Runtimes differ. Where a RECV is *posted* its span ends at once, and the wait hides in the action
that needs the data. Where it *blocks* (MPI, Megatron's timers, a gloo receive that is waited for)
its span contains the wait: it ends no sooner than its SEND began. So does a SEND that waits for its
receiver end no sooner than the RECV began. No kind of span says which it is; its ends do:

- that all RECVs (all SENDs) of a job wait is *possible* if some offsets of the clocks let each of
  them end no sooner than its other end began (``clock_offsets``);
- it is *seen* where on these clocks they contain waits of ``SEEN`` = 1 % of the ranks' time.

A model that is possible and seen is taken; one that is not possible is refuted, whatever the
clocks. Where RECVs take that long, and may wait but are not seen to, the trace cannot tell
(``is_decided``); then, as where they are posted, waits are looked for in computations.

Ranks whose traces have one ``host_name`` share its clock, unless their messages exclude it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, permutations

from bubbleproof.formats.errors import UnusableInput
from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.pipelines.programs.messages import Message, messages
from bubbleproof.traces.clock_offsets import ClockOffsets, Passage, clock_offsets, drifting
from bubbleproof.traces.trace_spans import TraceSpan
from bubbleproof.traces.traced_steps import Step, TracedJob

SEEN = 0.01
NO_NAMES = ("", "localhost")  # of hosts


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitModel:
    """Whether RECVs contain their waits, and SENDs theirs; ``is_decided``: the ends tell."""

    in_recv: bool
    in_send: bool
    is_decided: bool

    def __str__(self) -> str:
        if not self.is_decided:
            return "undecided: RECVs may contain waits, but none was seen to"
        where = "RECVs" if self.in_recv else "the computations that need the data"
        return f"in {where}" + (", and in SENDs" if self.in_send else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """The messages of a job: by the computation that ``needs`` them, and by either end."""

    needs: Mapping[Action, Sequence[Message]]
    of_end: Mapping[tuple[int, Action], Message]  # by rank, and its SEND or RECV
    producer: Mapping[int, Action]  # by id of the message

    @classmethod
    def of(cls, job: TracedJob) -> Traffic:
        problem = job.pipeline.problem()
        actions = list(problem.actions)
        needs: dict[Action, list[Message]] = {}
        of_end: dict[tuple[int, Action], Message] = {}
        producer: dict[int, Action] = {}
        for message in messages(problem):
            needs.setdefault(actions[message.consumer], []).append(message)
            of_end[message.source, message.send] = of_end[message.target, message.recv] = message
            producer[id(message)] = actions[message.producer]
        return cls(needs=needs, of_end=of_end, producer=producer)

    def sent(self, step: Step, message: Message) -> TraceSpan:
        """The SEND of a message or, where the trace has none, what made it."""
        spans = step[message.source]
        return spans.get(message.send) or spans[self.producer[id(message)]]

    def passages(self, step: Step, *, in_recv: bool, in_send: bool) -> Iterator[Passage]:
        """The messages of a step with times that bound clocks, where waits lie so."""
        for rank, spans in enumerate(step):
            for action in spans:
                for message in self.needs.get(action, ()):
                    sent, received = self.sent(step, message), spans.get(message.recv)
                    there = spans[action].end
                    if received is not None and in_recv:
                        there = min(there, received.end)
                    if received is not None and received.received is not None:
                        there = min(there, received.received)
                    source = message.source
                    yield Passage(source=source, target=rank, sent=sent.begin, there=there)
                    if in_send and received is not None and message.send in step[source]:
                        yield Passage(
                            source=rank, target=source, sent=received.begin, there=sent.end
                        )

    def waits(self, step: Step, clocks: ClockOffsets, *, in_send: bool) -> int:
        """Nanoseconds of a step that RECVs (or SENDs) contain before the other end was there."""
        total = 0
        for rank, spans in enumerate(step):
            for action in spans:
                for message in self.needs.get(action, ()):
                    sent, received = step[message.source].get(message.send), spans.get(message.recv)
                    if sent is None or received is None:
                        continue
                    ahead = clocks.offsets[rank] - clocks.offsets[message.source]
                    here, there = (sent, received) if in_send else (received, sent)
                    awaited = there.begin - ahead if in_send else there.end + ahead
                    total += max(0, min(here.end, awaited) - here.begin)
        return total


def model_and_clocks(traffic: Traffic, job: TracedJob) -> tuple[WaitModel, list[ClockOffsets]]:
    """In which spans waits lie, and the clocks of each step."""
    steps, is_decided = job.steps, True
    told = any(s.received is not None for step in steps for spans in step for s in spans.values())
    taken = {"in_recv": False, "in_send": False}
    shared = _shared(job)
    try:
        clocks = _clocks(traffic, steps, shared, **taken)
    except UnusableInput:
        shared = []
        clocks = _clocks(traffic, steps, shared, **taken)
    for name in ("in_recv", "in_send"):
        if name == "in_recv" and told:  # gloo tells when data were taken in
            continue
        try:
            found = _clocks(traffic, steps, shared, **{**taken, name: True})
        except UnusableInput:
            continue
        pairs = zip(steps, found, strict=True)
        waited = sum(traffic.waits(s, each, in_send=name == "in_send") for s, each in pairs)
        if waited >= SEEN * _rank_time(steps):
            taken[name], clocks = True, found
        elif name == "in_recv":
            is_decided = _in_recvs(steps) < SEEN * _rank_time(steps)
    return WaitModel(**taken, is_decided=is_decided), clocks


def _shared(job: TracedJob) -> list[Passage]:
    """What holds between ranks of one clock: what is sent is there at once, both ways."""
    by_host: dict[str, list[int]] = {}
    for rank, trace in enumerate(job.traces):
        by_host.setdefault(trace.host, []).append(rank)
    return [
        Passage(source=source, target=target, sent=0, there=0)
        for host, ranks in by_host.items()
        if host not in NO_NAMES
        for source, target in permutations(ranks, 2)
    ]


def _clocks(
    traffic: Traffic,
    steps: Sequence[Step],
    shared: Sequence[Passage],
    *,
    in_recv: bool,
    in_send: bool,
) -> list[ClockOffsets]:
    """The clocks of each step: one for all or, where no offset is right for all, each its own.

    Raises ``UnusableInput`` where no offsets let time run forwards in a step.
    """
    passages = [[*traffic.passages(step, in_recv=in_recv, in_send=in_send)] for step in steps]
    ranks = len(steps[0])
    try:
        return [clock_offsets(ranks, [*shared, *chain.from_iterable(passages)])] * len(steps)
    except UnusableInput:
        return [clock_offsets(ranks, [*shared, *drifting(step)]) for step in passages]


def _in_recvs(steps: Sequence[Step]) -> int:
    """Nanoseconds of all RECVs."""
    return sum(
        span.end - span.begin
        for step in steps
        for spans in step
        for span in spans.values()
        if span.action.kind in (Kind.RECV_F, Kind.RECV_B)
    )


def _rank_time(steps: Sequence[Step]) -> int:
    """Nanoseconds of all ranks in all steps."""
    return sum(
        max(s.end for s in spans.values()) - min(s.begin for s in spans.values())
        for step in steps
        for spans in step
    )
