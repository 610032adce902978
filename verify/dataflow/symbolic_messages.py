"""Tensors between stages: outputs of forwards and input gradients of backwards, and their messages.

A tensor is named by what made it, (F or B, stage, microbatch, slice). In a program with SEND and
RECV a tensor lies on the rank that made it; SEND takes it from there into the channel of its
ordered pair of ranks, and RECV says where the next message of a channel is to lie: the k-th SEND
meets the k-th RECV, whatever they name, so messages that cross are used as what they are not.
Neither waits; the action that needs the message does (``buffered``). Without SEND and RECV every
rank finds every tensor that has been made.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from typing import NamedTuple

from bubbleproof.theory.model.actions import NONE, Kind
from bubbleproof.verify.dataflow.mistakes import Fault, Supply, SymbolicAction, Thing, said
from bubbleproof.verify.dataflow.training_step import SamplePart, TrainingStep, name

_FORWARD_MESSAGES = (Kind.SEND_F, Kind.RECV_F)
SENDS = (Kind.SEND_F, Kind.SEND_B)
RECVS = (Kind.RECV_F, Kind.RECV_B)


class Tensor(NamedTuple):
    """The output of a forward (``kind`` F) or the input gradient of a backward (B also for I)."""

    kind: Kind
    part: SamplePart


class _Held(NamedTuple):
    """A tensor where another (or the same) is looked for, and the work that put it there."""

    tensor: Tensor
    by: SymbolicAction


class SymbolicMessages:
    """Where tensors lie and what is on its way. ``is_explicit``: the program has SEND and RECV."""

    def __init__(self, step: TrainingStep, *, is_explicit: bool) -> None:
        self._step, self._is_explicit = step, is_explicit
        self._held: dict[tuple[int, Tensor], _Held] = {}
        self._sent: dict[tuple[int, int], deque[_Held]] = defaultdict(deque)
        self._posted: dict[tuple[int, int], deque[tuple[tuple[int, Tensor], SymbolicAction]]] = (
            defaultdict(deque)
        )
        self._expected: dict[tuple[int, Tensor], tuple[tuple[int, int], SymbolicAction]] = {}

    def input_of(self, work: SymbolicAction) -> Tensor | None:
        """What an F, B or I takes from the stage before or after it; None at the ends."""
        stage, microbatch, slice_ = work.part
        if work.kind is Kind.F:
            return Tensor(Kind.F, (stage - 1, microbatch, slice_)) if stage else None
        if stage == self._step.num_stages - 1:
            return None
        return Tensor(Kind.B, (stage + 1, microbatch, slice_))

    def of_input(self, work: SymbolicAction) -> Iterator[Fault]:
        """The right tensor lies where the work takes its input from."""
        wanted = self.input_of(work)
        if wanted is None:
            return
        held = self._held.get((self._place(work.resource), wanted))
        if held is not None and held.tensor == wanted:
            return
        needed = self._text("the {what} of {{}}", wanted)
        if held is not None:
            found = self._text("it finds the {what} of {{}} in its place", held.tensor)
            yield Fault(needed=needed, found=found, origin=held.by.row)
            return
        yield self._absent(needed, work, wanted)

    def _absent(self, needed: Thing, work: SymbolicAction, wanted: Tensor) -> Fault:
        if not self._is_explicit:
            supply = (wanted.kind, *wanted.part)
            return Fault(needed=needed, found=said("it has not been made"), awaited=supply)
        expected = self._expected.get((work.resource, wanted))
        if expected is None:
            return Fault(needed=needed, found=said(f"it is not on rank {work.resource}"))
        channel, by = expected
        found: Thing = (f"rank {channel[0]} has not sent what {{}} receives", by.kind, by.part)
        return Fault(needed=needed, found=found, origin=by.row, awaited=channel_supply(channel))

    def of_message(self, work: SymbolicAction) -> Iterator[Fault]:
        """A message goes to or comes from another stage, and SEND finds the tensor it names."""
        tensor = self._named(work)
        if tensor is None or self.channel(work) is None:
            yield Fault(needed=said("a stage on the other side"), found=said("there is none"))
        elif work.kind in SENDS:
            held = self._held.get((work.resource, tensor))
            if held is None or held.tensor != tensor:
                found = said(f"it is not on rank {work.resource}, or was sent before")
                yield Fault(needed=self._text("the {what} of {{}}", tensor), found=found)

    def channel(self, work: SymbolicAction) -> tuple[int, int] | None:
        """(from, to) ranks of a SEND or RECV; None where no stage is on the other side."""
        stage, microbatch, slice_ = work.part
        step = 1 if work.kind in (Kind.SEND_F, Kind.RECV_B) else -1
        peer = self._step.home.get((stage + step, microbatch, slice_))
        if peer is None:
            return None
        return (work.resource, peer) if work.kind in SENDS else (peer, work.resource)

    def _named(self, work: SymbolicAction) -> Tensor | None:
        stage, microbatch, slice_ = work.part
        kind = Kind.F if work.kind in _FORWARD_MESSAGES else Kind.B
        if work.kind in RECVS:
            stage += -1 if kind is Kind.F else 1
        part = (stage, microbatch, slice_)
        return Tensor(kind, part) if part in self._step.home else None

    def transfer(self, work: SymbolicAction) -> None:
        """Run a SEND or a RECV; what should be there to send and is not is taken as right."""
        tensor, channel = self._named(work), self.channel(work)
        if tensor is None or channel is None:
            return
        if work.kind in SENDS:
            self._held.pop((work.resource, tensor), None)
            self._sent[channel].append(_Held(tensor, work))
        else:
            self._posted[channel].append(((work.resource, tensor), work))
            self._expected[work.resource, tensor] = (channel, work)
        sent, posted = self._sent[channel], self._posted[channel]
        while sent and posted:
            self._held[posted.popleft()[0]] = sent.popleft()

    def left_over(self) -> Iterator[Fault]:
        """Messages that are never received, RECVs that get none, outputs where they are all."""
        for _, by in (end for ends in self._posted.values() for end in ends):
            subject, needed = _end_text(by), said("a message")
            found = said("its channel brings no more")
            yield Fault(needed=needed, found=found, origin=by.row, subject=subject)
        for _, by in (end for ends in self._sent.values() for end in ends):
            subject, needed = _end_text(by), said("a receiver")
            found = said("nobody receives from its channel any more")
            yield Fault(needed=needed, found=found, origin=by.row, subject=subject)
        for part, rank in self._step.home.items() if not self._step.backward else ():
            is_last = part[0] == self._step.num_stages - 1
            if is_last and (self._place(rank), Tensor(Kind.F, part)) not in self._held:
                missing: Thing = ("{} has not run", Kind.F, part)
                yield Fault(needed=said("every output"), found=missing, subject="the step")

    def take(self, work: SymbolicAction) -> None:
        """An F, B or I uses its input up."""
        if (wanted := self.input_of(work)) is not None:
            self._held.pop((self._place(work.resource), wanted), None)

    def make(self, work: SymbolicAction) -> None:
        """An F, B or I has made what the next stage wants."""
        tensor = Tensor(Kind.F if work.kind is Kind.F else Kind.B, work.part)
        self._held[self._place(work.resource), tensor] = _Held(tensor, work)

    def _place(self, rank: int) -> int:
        return rank if self._is_explicit else NONE

    def _text(self, sentence: str, tensor: Tensor) -> Thing:
        kind = tensor.kind if tensor.kind is Kind.F else self._step.backward[tensor.part]
        return sentence.format(what=_what(tensor)), kind, tensor.part


def channel_supply(channel: tuple[int, int]) -> Supply:
    """What the consumer of a message waits for: a SEND on its channel.

    Parameters
    ----------
    channel
        The sending rank and the receiving one.
    """
    return (Kind.SEND_F, *channel)


def _end_text(by: SymbolicAction) -> str:
    return f"{name(by.kind, by.part)} on rank {by.resource}"


def _what(tensor: Tensor) -> str:
    return "output" if tensor.kind is Kind.F else "input gradient"
