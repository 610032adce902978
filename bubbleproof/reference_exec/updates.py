"""Updates: the optimizer steps of one rank's stages, and what ranks exchange before them.

A stage on one rank steps after its last B or W of the pass. The gradients of a stage on two ranks
go to the other rank and come from it at the end of the pass, so that both step with the same sum
and stay equal. Where embedding and head are tied (``words``), the ranks of the first and the last
stage do the same with their two gradients, after those of replicas. Each rank's messages of this
kind follow all others of its pass, in one order on both ends, lower rank first, so they deadlock
under no semantics. With a global barrier rank 0 hears from every rank, answers all, and then all
step.

Stages that the host updates step there (``host``), in the program. Gradients, weights and moments
are no activations and do not count as live bytes.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from itertools import combinations

import torch
from torch import nn

from bubbleproof.reference_exec.device import CPU, Device, Lane
from bubbleproof.reference_exec.plan import Plan
from bubbleproof.reference_exec.training import MOMENTUM, Training
from bubbleproof.reference_exec.transport import Blocked, Transport, until_done
from bubbleproof.reference_exec.words import EMBEDDING, HEAD
from bubbleproof.theory.actions import Action, Kind

Named = dict[tuple[int, str], torch.Tensor]


def optimizer_of(training: Training, parameters: Iterable[torch.Tensor]) -> torch.optim.Optimizer:
    """Torch's own optimizer, one tensor at a time."""
    given = list(parameters)
    if training.optimizer == "adam":
        return torch.optim.Adam(given, lr=training.rate, foreach=False)
    momentum = MOMENTUM if training.optimizer == "momentum" else 0.0
    return torch.optim.SGD(given, lr=training.rate, momentum=momentum, foreach=False)


class Updates:
    """The optimizers of one rank. Without a training in the plan it does nothing."""

    def __init__(
        self,
        plan: Plan,
        rank: int,
        stages: Mapping[int, nn.Module],
        transport: Transport,
        device: Device = CPU,
    ) -> None:
        self._plan, self._rank, self._transport, self._device = plan, rank, transport, device
        self._training = plan.training
        is_here = self._training is not None and plan.parallel is None
        stepped = stages.keys() - plan.updated() if is_here else ()
        self._stages = {stage: stages[stage] for stage in sorted(stepped)}
        self._optimizers = {
            stage: optimizer_of(plan.training, module.parameters())
            for stage, module in self._stages.items()
            if plan.training is not None
        }
        self._stepped: set[int] = set()
        self._ends = _last_backwards(plan, rank)

    def begin_pass(self) -> None:
        """Forget the gradients and the steps of the pass before."""
        for module in self._stages.values():
            module.zero_grad(set_to_none=True)
        self._stepped.clear()

    def after(self, position: int) -> None:
        """Step the stages whose gradient the action at ``position`` has completed."""
        waits = self._training is None or self._training.has_barrier
        for stage in self._ends.get(position, ()):
            if not waits and stage in self._stages and not self._is_shared(stage):
                self._step(stage, {})

    def end_pass(self) -> Iterator[Blocked]:
        """Exchange what ranks add, wait for the others where there is a barrier, step the rest."""
        if self._training is None:
            return
        totals: dict[int, Named] = {stage: {} for stage in self._stages}
        for stage in self._stages:
            yield from self._add_replicas(stage, totals[stage])
        if self._plan.spec.tied:
            yield from self._add_tied(totals)
        if self._training.has_barrier:
            yield from self._barrier()
        for stage in self._stages.keys() - self._stepped:
            self._step(stage, totals[stage])

    def weights(self) -> Named:
        """The weights by (stage, name) of the stages that were stepped here."""
        return {
            (stage, name): parameter.detach().cpu()
            for stage, module in self._stages.items()
            for name, parameter in module.named_parameters()
        }

    def _is_shared(self, stage: int) -> bool:
        is_tied = self._plan.spec.tied and stage in (0, self._plan.num_stages - 1)
        return is_tied or len(self._plan.ranks_of(stage)) > 1

    def _step(self, stage: int, totals: Named) -> None:
        """One optimizer step, with ``totals`` in the place of the rank's own gradients."""
        named = dict(self._stages[stage].named_parameters())
        own = {name: parameter.grad for name, parameter in named.items()}
        for (_, name), total in totals.items():
            named[name].grad = total
        self._optimizers[stage].step()
        for name, parameter in named.items():  # the report wants what this rank computed
            parameter.grad = own[name]
        self._stepped.add(stage)

    def _add_replicas(self, stage: int, totals: Named) -> Iterator[Blocked]:
        for peer in self._plan.ranks_of(stage):
            if peer == self._rank:
                continue
            for name, parameter in self._stages[stage].named_parameters():
                assert parameter.grad is not None
                arrived = yield from self._swap(stage, parameter.grad, peer)
                totals[stage, name] = parameter.grad + arrived

    def _add_tied(self, totals: dict[int, Named]) -> Iterator[Blocked]:
        """Set the tied matrix's total on the ranks of its two stages."""
        first, last = (0, EMBEDDING), (self._plan.num_stages - 1, HEAD)
        here = [end for end in (first, last) if end[0] in self._stages]
        own = {end: self._gradient(end, totals) for end in here}
        if len(here) == 1:
            (end,) = here
            far = last if end == first else first
            (peer,) = self._plan.ranks_of(far[0])
            own[far] = yield from self._swap(0, own[end], peer)
        for end in here:
            totals[end[0]][end] = own[first] + own[last]

    def _gradient(self, end: tuple[int, str], totals: dict[int, Named]) -> torch.Tensor:
        gradient = totals[end[0]].get(end)
        if gradient is None:
            gradient = self._stages[end[0]].get_parameter(end[1]).grad
        assert gradient is not None
        return gradient

    def _swap(
        self, stage: int, gradient: torch.Tensor, peer: int
    ) -> Generator[Blocked, None, torch.Tensor]:
        """Send a gradient to ``peer`` and return the one that comes from it."""
        tag = Action(stage=stage, kind=Kind.REDUCE_GRAD)
        with self._device.on(Lane.RECEIVES):
            buffer = torch.empty_like(gradient)
        if self._rank < peer:
            sent = self._transport.isend(tag, gradient, destination=peer)
            arrives = self._transport.irecv(tag, buffer, source=peer)
        else:
            arrives = self._transport.irecv(tag, buffer, source=peer)
            sent = self._transport.isend(tag, gradient, destination=peer)
        for transfer in (sent, arrives):
            yield from until_done(Blocked(action=tag, tag=tag, peer=peer, transfer=transfer))
        return arrives.get()

    def _barrier(self) -> Iterator[Blocked]:
        """Go on once every rank has come this far; messages carry nothing."""
        others = range(1, self._plan.num_ranks)
        if self._rank:
            yield from self._signal(self._rank, 0, is_send=True)
            yield from self._signal(0, 0, is_send=False)
            return
        for peer in others:
            yield from self._signal(peer, peer, is_send=False)
        for peer in others:
            yield from self._signal(0, peer, is_send=True)

    def _signal(self, sender: int, peer: int, *, is_send: bool) -> Iterator[Blocked]:
        tag = Action(stage=sender, kind=Kind.STEP)
        with self._device.on(Lane.SENDS if is_send else Lane.RECEIVES):
            nothing = torch.zeros(1, device=self._device.torch_device)
        if is_send:
            transfer = self._transport.isend(tag, nothing, destination=peer)
        else:
            transfer = self._transport.irecv(tag, nothing, source=peer)
        yield from until_done(Blocked(action=tag, tag=tag, peer=peer, transfer=transfer))
        if not is_send:
            transfer.get()  # what is computed from now on comes after the signal


def exchanging(plan: Plan) -> frozenset[tuple[int, int]]:
    """The pairs of ranks, lower first, that talk to each other between two passes of a plan."""
    if plan.training is None:
        return frozenset()
    pairs = {
        (lower, higher)
        for stage in range(plan.num_stages)
        for lower, higher in combinations(plan.ranks_of(stage), 2)
    }
    if plan.spec.tied:
        ends = {*plan.ranks_of(0), *plan.ranks_of(plan.num_stages - 1)}
        pairs |= set(combinations(sorted(ends), 2))
    if plan.training.has_barrier:
        pairs |= {(0, rank) for rank in range(1, plan.num_ranks)}
    return frozenset(pairs)


def _last_backwards(plan: Plan, rank: int) -> dict[int, list[int]]:
    """The stages by the position of their last B, I or W in the order of one rank."""
    last: dict[int, int] = {}
    for position, action in enumerate(plan.order(rank)):
        done = action.partner or action
        if done.kind in (Kind.B, Kind.I, Kind.W):
            last[done.stage] = position
    found: dict[int, list[int]] = {}
    for stage, position in last.items():
        found.setdefault(position, []).append(stage)
    return found
