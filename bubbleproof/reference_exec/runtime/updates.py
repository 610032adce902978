"""Updates: the STEPs of one rank's stages, and what ranks exchange and wait for before them.

Where they stand in the rank's program says ``stepping``. REDUCE_GRAD of a stage on two ranks sends
this rank's gradients to the other and adds the other's to them, in the order of ranks, so that both
step with the same sum and stay equal. Where embedding and head are tied (``words``), the ranks of
the first and the last stage do the same with the two gradients of their one matrix. A STEP takes
the sum, or the rank's own gradient where there is none; a gradient that is computed later is lost
to it. The gradients of replicas have been added by then, by the plan's own REDUCE_GRADs
(``replica_collectives``); of a sharded stage ranks exchange what their shards have. With a
global barrier the first STEP of a pass waits: the lowest rank that steps hears from every other,
answers all, and then all step; each replica has its own.

What is wrong with a program that was not verified ends it (``BrokenProgram``): a STEP or an
exchange of a stage that is not here, twice, or missing.

Stages that the host updates step there (``host``), sharded ones on their shards (``stage_shards``).
Gradients, weights and moments are no activations and do not count as live bytes.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from itertools import combinations

import torch
from torch import nn

from bubbleproof.reference_exec.broken import BrokenProgram
from bubbleproof.reference_exec.ledger import keys_of
from bubbleproof.reference_exec.models.words import EMBEDDING, HEAD
from bubbleproof.reference_exec.plans.plan import Plan
from bubbleproof.reference_exec.plans.state_bytes import StateBytes
from bubbleproof.reference_exec.plans.stepping import TIE, stepping_ranks, tied_stages
from bubbleproof.reference_exec.runtime.device import CPU, Device, Lane
from bubbleproof.reference_exec.runtime.optimizers import optimizer_of
from bubbleproof.reference_exec.runtime.stage_shards import StageShards
from bubbleproof.reference_exec.runtime.state_walk import kept_by, walked
from bubbleproof.reference_exec.runtime.transport import Blocked, Transport, still_used, until_done
from bubbleproof.theory.model.actions import Action, Kind

Named = dict[tuple[int, str], torch.Tensor]
Levels = dict[int, torch.Tensor]  # flat gradients by ZeRO level


class Updates:
    """The optimizers of one rank. Without a training in the plan nothing is stepped here."""

    def __init__(
        self,
        plan: Plan,
        rank: int,
        stages: Mapping[int, nn.Module],
        shards: Mapping[int, StageShards],
        transport: Transport,
        device: Device = CPU,
    ) -> None:
        self._plan, self._rank, self._transport, self._device = plan, rank, transport, device
        self._training, self._all, self._shards = plan.training, stages, shards
        is_here = self._training is not None and not plan.is_sharded
        stepped = stages.keys() - plan.hosted if is_here else ()
        self._stages = {stage: stages[stage] for stage in sorted(stepped)}
        self.optimizers = {
            stage: optimizer_of(plan.training, module.parameters())
            for stage, module in self._stages.items()
            if plan.training is not None
        }
        self._totals: Named = {}
        self._of_shards: dict[int, Levels] = {}  # totals that two ranks have, by stage
        self._done: set[Action] = set()
        self._has_waited = False
        self._sent: list[Blocked] = []

    def begin_pass(self) -> None:
        """Forget the gradients and the steps of the pass before."""
        for module in self._stages.values():
            module.zero_grad(set_to_none=True)
        self._totals.clear()
        self._of_shards.clear()
        self._done.clear()
        self._has_waited = False

    def run(self, action: Action) -> Iterator[Blocked]:
        """Run a STEP, or the REDUCE_GRAD of a stage that is not sharded."""
        if action in self._done:
            raise BrokenProgram(f"{action} runs twice")
        if action.kind is Kind.STEP:
            yield from self._step(action.stage)
        elif action.slice == TIE:
            yield from self._add_tied(action)
        else:
            yield from self._add_replicas(action)
        self._done.add(action)

    def keys(self) -> Iterator[int]:
        """The storages of sums, of optimizers, and of what is on its way to other ranks."""
        self._sent = still_used(self._sent)
        yield from keys_of(self._totals.values())
        for levels in self._of_shards.values():
            yield from keys_of(levels.values())
        yield from keys_of(kept_by(self.optimizers.values()))
        for shards in self._shards.values():
            yield from keys_of(kept_by(shards.optimizers()))
        for sent in self._sent:
            yield from keys_of(sent.transfer.buffers())

    def left_over(self) -> list[str]:
        """The stages that a pass has not stepped, one phrase each."""
        if self._training is None:
            return []
        stepped = {action.stage for action in self._done if action.kind is Kind.STEP}
        stages = {*self._stages, *self._shards} - stepped
        return [f"stage {stage} without STEP" for stage in sorted(stages)]

    def weights(self) -> Named:
        """The weights by (stage, name) of the stages that were stepped here."""
        return {
            (stage, name): parameter.detach().cpu()
            for stage, module in self._stages.items()
            for name, parameter in module.named_parameters()
        }

    def state(self) -> StateBytes:
        """The model state of the stages that are here, sharded ones included."""
        shards = self._shards.values()
        parameters = [p for module in self._all.values() for p in module.parameters()]
        summed = [p.grad for p in parameters if p.grad is not None]
        return walked(
            [*parameters, *(t for shard in shards for t in shard.weights())],
            [*summed, *self._totals.values(), *(t for shard in shards for t in shard.sums())],
            [*self.optimizers.values(), *(o for shard in shards for o in shard.optimizers())],
        )

    def _step(self, stage: int) -> Iterator[Blocked]:
        training = self._training
        if training is None or stage not in {*self._stages, *self._shards}:
            raise BrokenProgram(f"{stage}STEP of a stage that does not step on rank {self._rank}")
        if training.has_barrier and not self._has_waited:
            yield from self._barrier()
            self._has_waited = True
        if stage in self._shards:
            self._step_shards(stage)
        else:
            self._update(stage)

    def step_shards(self) -> Iterator[Blocked]:
        """Step all sharded stages at the end of a pass, where no training says when."""
        for stage in sorted(self._shards):
            if len(self._plan.ranks_of(stage)) > 1:
                yield from self._add_replicas(Action(stage=stage, kind=Kind.REDUCE_GRAD))
            self._step_shards(stage)

    def _step_shards(self, stage: int) -> None:
        shards = self._shards[stage]
        shards.step(self._of_shards.pop(stage, {}) or shards.by_level())

    def _update(self, stage: int) -> None:
        """One optimizer step, with the totals in the place of the rank's own gradients."""
        named = dict(self._stages[stage].named_parameters())
        own = {name: self._own(stage, name) for name in named}
        for name, parameter in named.items():
            parameter.grad = self._totals.get((stage, name), own[name])
        self.optimizers[stage].step()
        for name, parameter in named.items():  # the report wants what this rank computed
            parameter.grad = own[name]
            self._totals.pop((stage, name), None)

    def _own(self, stage: int, name: str) -> torch.Tensor:
        """The gradient that this rank has summed of a parameter."""
        if stage not in self._stages:
            raise BrokenProgram(f"stage {stage} is not on rank {self._rank}")
        gradient = self._stages[stage].get_parameter(name).grad
        if gradient is None:
            raise BrokenProgram(f"stage {stage} {name} has no gradient yet")
        return gradient

    def _add_replicas(self, action: Action) -> Iterator[Blocked]:
        stage, ranks = action.stage, self._plan.ranks_of(action.stage)
        if self._rank not in ranks or len(ranks) < 2:
            raise BrokenProgram(f"{action} adds nothing on rank {self._rank}")
        (peer,) = {*ranks} - {self._rank}
        if stage in self._shards:
            sums = self._shards[stage].by_level()
            for level, flat in sums.items():
                if len(flat):
                    sums[level] = flat + (yield from self._swap(action, flat, peer))
            self._of_shards[stage] = sums
            return
        for name, _ in self._stages[stage].named_parameters():
            own = self._own(stage, name)
            self._totals[stage, name] = own + (yield from self._swap(action, own, peer))

    def _add_tied(self, action: Action) -> Iterator[Blocked]:
        """Set the tied matrix's total for the stages of it that are here."""
        stages = tied_stages(self._plan)
        ends = [*zip(stages, (EMBEDDING, HEAD), strict=True)] if stages else []
        here = [end for end in ends if end[0] in self._stages]
        if not here:
            raise BrokenProgram(f"{action} adds nothing on rank {self._rank}")
        own = {end: self._totals.get(end, self._own(*end)) for end in here}
        if len(here) == 1:
            (end,) = here
            (far,) = {*ends} - {end}
            (peer,) = self._plan.ranks_of(far[0])
            own[far] = yield from self._swap(action, own[end], peer)
        for end in here:
            self._totals[end] = own[ends[0]] + own[ends[1]]

    def _swap(
        self, tag: Action, gradient: torch.Tensor, peer: int
    ) -> Generator[Blocked, None, torch.Tensor]:
        """Send a gradient to ``peer`` and return the one that comes from it."""
        with self._device.on(Lane.RECEIVES):
            buffer = torch.empty_like(gradient)
        if self._rank < peer:
            sent = self._transport.isend(tag, gradient, destination=peer)
            arrives = self._transport.irecv(tag, buffer, source=peer)
        else:
            arrives = self._transport.irecv(tag, buffer, source=peer)
            sent = self._transport.isend(tag, gradient, destination=peer)
        for transfer in (sent, arrives):
            waiting = Blocked(action=tag, tag=tag, peer=peer, transfer=transfer)
            self._sent.append(waiting)
            yield from until_done(waiting)
        return arrives.get()

    def _barrier(self) -> Iterator[Blocked]:
        """Go on once every rank that steps has come this far; messages carry nothing."""
        first, *others = stepping_ranks(self._plan)
        if self._rank != first:
            yield from self._signal(self._rank, first, is_send=True)
            yield from self._signal(first, first, is_send=False)
            return
        for peer in others:
            yield from self._signal(peer, peer, is_send=False)
        for peer in others:
            yield from self._signal(first, peer, is_send=True)

    def _signal(self, sender: int, peer: int, *, is_send: bool) -> Iterator[Blocked]:
        tag = Action(stage=sender, kind=Kind.STEP)
        with self._device.on(Lane.SENDS if is_send else Lane.RECEIVES):
            nothing = torch.zeros(1, device=self._device.torch_device)
        if is_send:
            transfer = self._transport.isend(tag, nothing, destination=peer)
        else:
            transfer = self._transport.irecv(tag, nothing, source=peer)
        waiting = Blocked(action=tag, tag=tag, peer=peer, transfer=transfer)
        self._sent.append(waiting)
        yield from until_done(waiting)
        if not is_send:
            transfer.get()  # what is computed from now on comes after the signal


def exchanging(plan: Plan) -> frozenset[tuple[int, int]]:
    """The pairs of ranks, lower first, that exchange gradients, or signals of a barrier."""
    if not plan.is_sharded and (plan.training is None or not stepping_ranks(plan)):
        return frozenset()
    pairs = {
        (lower, higher)
        for stage in range(plan.num_stages)
        for lower, higher in combinations(plan.ranks_of(stage), 2)
    }
    if plan.spec.tied:
        ends = {*plan.ranks_of(0), *plan.ranks_of(plan.num_stages - 1)}
        pairs |= set(combinations(sorted(ends), 2))
    if plan.training is not None and plan.training.has_barrier:
        first, *others = stepping_ranks(plan)
        pairs |= {(first, rank) for rank in others}
    return frozenset(pairs)
