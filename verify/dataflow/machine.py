"""The symbolic machine: what each kind of action needs, takes and leaves, on names, not numbers.

``faults`` says what stands against running a work now; ``begin`` and ``end`` run it. A work that
begins in spite of faults leaves what it would leave had all been right, so one mistake is reported
where it is made and not at everything after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from bubbleproof.theory.model.actions import NONE, Kind
from bubbleproof.verify.dataflow.activations import Activations
from bubbleproof.verify.dataflow.gradients import Gradients
from bubbleproof.verify.dataflow.mistakes import Fault, Supply, SymbolicAction
from bubbleproof.verify.dataflow.parameter_versions import PARAMETER_USERS, ParameterVersions
from bubbleproof.verify.dataflow.symbolic_messages import (
    RECVS,
    SENDS,
    SymbolicMessages,
    channel_supply,
)
from bubbleproof.verify.dataflow.training_step import TrainingStep

Check = Callable[[SymbolicAction], Iterator[Fault]]
StateChange = Callable[[SymbolicAction], None]
Phases = tuple[list[Check], list[StateChange], list[StateChange]]
_COLLECTIVES = (Kind.UNSHARD, Kind.RESHARD)


class SymbolicMachine:
    """The state of a symbolic run of one training step."""

    def __init__(self, step: TrainingStep, num_ranks: int, *, is_explicit: bool) -> None:
        self._step = step
        self._activations = Activations(step)
        self._parameters = ParameterVersions(step, num_ranks)
        self._gradients = Gradients(step, num_ranks)
        self._messages = SymbolicMessages(step, is_explicit=is_explicit)
        plain: dict[Kind, Phases] = {
            kind: self._phases(kind) for kind in Kind if kind is not Kind.OVERLAP_F_B
        }
        hosted = {kind: self._phases_hosted(kind) for kind in (Kind.OFFLOAD, Kind.RELOAD)}
        self._of: dict[bool, dict[Kind, Phases]] = {False: plain, True: {**plain, **hosted}}

    def _phases(self, kind: Kind) -> Phases:
        """What is checked before a kind of work, changed as it begins, and as it ends."""
        activations, gradients = self._activations, self._gradients
        messages, parameters = self._messages, self._parameters
        if kind in (Kind.WAIT_SEND_F, Kind.WAIT_SEND_B, Kind.WAIT_REDUCE_GRAD):
            return [], [], []
        if kind in SENDS + RECVS:
            return [messages.of_message], [], [messages.transfer]
        if kind in _COLLECTIVES:
            return [parameters.of_change], [parameters.begin], [parameters.end]
        if kind is Kind.REDUCE_GRAD:
            return [], [gradients.begin], [gradients.end]
        if kind is Kind.STEP:
            return [gradients.of_step], [], [parameters.end]
        checks: list[Check] = [activations.of_forward if kind is Kind.F else activations.of_move]
        begins: list[StateChange] = [] if kind is Kind.F else [activations.begin]
        ends: list[StateChange] = [activations.end]
        if kind in (Kind.F, Kind.B, Kind.I):
            checks.append(messages.of_input)
            begins.append(messages.take)
            ends.append(messages.make)
        if kind in (Kind.B, Kind.I):
            checks.append(activations.of_backward)
        if kind in (Kind.B, Kind.W):
            ends.append(gradients.end)
        if kind in PARAMETER_USERS:
            checks.append(parameters.of_use)
            begins.append(parameters.begin_use)
        return checks, begins, ends

    def _phases_hosted(self, kind: Kind) -> Phases:
        """OFFLOAD takes a stage's gradient down and drops its weights, RELOAD brings them."""
        parameters, gradients = self._parameters, self._gradients
        if kind is Kind.RELOAD:
            return [parameters.of_change], [], [parameters.end]
        return (
            [gradients.of_step, parameters.of_change],
            [gradients.begin, parameters.begin],
            [gradients.end],
        )

    def _is_hosted(self, work: SymbolicAction) -> bool:
        return work.part[0] in self._step.hosted

    def is_known(self, work: SymbolicAction) -> bool:
        """Whether the work belongs to this training step at all."""
        stage, microbatch, _ = work.part
        if microbatch == NONE:
            return 0 <= stage < self._step.num_stages
        return work.part in self._step.home

    def faults(self, work: SymbolicAction) -> list[Fault]:
        """Everything that stands against beginning the work now."""
        return [
            fault
            for check in self._of[self._is_hosted(work)][work.kind][0]
            for fault in check(work)
        ]

    def begin(self, work: SymbolicAction) -> None:
        """Make the changes that come with an action's start."""
        for change in self._of[self._is_hosted(work)][work.kind][1]:
            change(work)

    def end(self, work: SymbolicAction) -> list[Fault]:
        """Run the work to its end; faults where what it used is no longer there."""
        faults = list(self._parameters.of_end_of_use(work)) if work.kind in PARAMETER_USERS else []
        for change in self._of[self._is_hosted(work)][work.kind][2]:
            change(work)
        return faults

    def supply(self, work: SymbolicAction) -> Supply:
        """The key under which faults await this work; an I makes what a B makes."""
        channel = self._messages.channel(work) if work.kind in SENDS else None
        if channel is not None:
            return channel_supply(channel)
        if work.kind is Kind.UNSHARD or (work.kind is Kind.RELOAD and self._is_hosted(work)):
            return (work.kind, work.part[0])
        if work.kind is Kind.W:
            return (work.kind, *work.part, work.piece)
        return (Kind.B if work.kind is Kind.I else work.kind, *work.part)

    def left_over(self) -> list[Fault]:
        """What is wrong when the run has ended."""
        parts = (self._messages, self._gradients, self._parameters)
        return [self._located(fault) for part in parts for fault in part.left_over()]

    def _located(self, fault: Fault) -> Fault:
        """A fault of no row, at the last work on the activations that it speaks of."""
        known = self._activations.where.get(fault.found[2])
        return (
            fault if known is None or fault.origin != NONE else replace(fault, origin=known.by.row)
        )
