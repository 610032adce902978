"""Updates: the STEPs of one rank's stages, and what ranks exchange and wait for before them.

Where they stand in the rank's program says ``stepping``. REDUCE_GRAD of a stage on two ranks sends
this rank's gradients to the other and adds the other's to them, in the order of ranks, so that both
step with the same sum and stay equal. Where stages share a parameter, as a tied embedding and head
do, their ranks do the same with the gradients of its copies. A STEP takes the sum, or the rank's
own gradient where there is none; a gradient that is computed later is lost to it. The gradients of
replicas have been added by then, by the plan's own REDUCE_GRADs (``replica_collectives``); of a
sharded stage ranks exchange what their shards have. With a global barrier the first STEP of a pass
waits: the lowest rank that steps hears from every other, answers all, and then all step; each
replica has its own. What they tell each other then is nothing or, where gradients are clipped,
their norms (``clipping``).

Where gradients are accumulated over passes, none of this is done but in the last pass of a step.

What is wrong with a program that was not verified ends it (``BrokenProgram``): a STEP or an
exchange of a stage that is not here, twice, or missing.

Stages that the host updates step there (``host``), sharded ones on their shards (``stage_shards``).
Gradients, weights and moments are no activations and do not count as live bytes.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import reduce
from itertools import combinations

import torch

from bubbleproof.reference_exec.broken import BrokenProgram, require
from bubbleproof.reference_exec.models.footprint import ties_of
from bubbleproof.reference_exec.models.layers import DTYPES
from bubbleproof.reference_exec.models.reference import Named, gradients_of, trained, weights_of
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.plans.state_bytes import StateBytes
from bubbleproof.reference_exec.plans.stepping import TIE, stepping_ranks, tied_stages
from bubbleproof.reference_exec.runtime.clipping import (
    by_stage,
    counted_stages,
    factor,
    global_norm,
    norms_of,
    num_norms,
    scaled,
)
from bubbleproof.reference_exec.runtime.compute import Compute
from bubbleproof.reference_exec.runtime.device import DeviceLane
from bubbleproof.reference_exec.runtime.optimizers import (
    Optimizer,
    all_finite,
    kept_by,
    optimizer_of,
    step_with,
    unscaled,
    walked,
)
from bubbleproof.reference_exec.runtime.transport import (
    BlockedAction,
    Transport,
    posted,
    still_used,
    until_done,
)
from bubbleproof.theory.model.actions import Action, Kind

Levels = dict[int, torch.Tensor]  # flat gradients by ZeRO level


class Updates:
    """The optimizers of one rank. Without a training in the plan nothing is stepped here."""

    def __init__(self, plan: ReplayPlan, compute: Compute, transport: Transport) -> None:
        self._plan, self._rank, self._device = plan, compute.rank, compute.device
        self._transport, self._training = transport, plan.training
        self._compute = compute
        self._all, self._shards = compute.stages, compute.shards
        is_here = self._training is not None and not plan.is_sharded
        stepped = self._all.keys() - plan.hosted if is_here else ()
        self._stages = {stage: self._all[stage] for stage in sorted(stepped)}
        self.optimizers = {
            stage: optimizer_of(plan.training, trained(module).values())
            for stage, module in self._stages.items()
        }
        self._totals: Named = {}
        self._of_shards: dict[int, Levels] = {}  # totals that two ranks have, by stage
        self._done: set[Action] = set()
        self._has_waited, self._is_last = False, True  # of the passes of a step
        self._is_finite = True  # what all ranks have summed in this step, where losses are scaled
        self._factor: torch.Tensor | None = None  # of clipped gradients, in this pass
        self._sent: list[BlockedAction] = []

    def begin_pass(self, number: int) -> None:
        """Forget the steps of the pass before, and the gradients unless more adds up to them."""
        training = self._training
        self._is_last = training is None or training.ends_step(number)
        if number % self._plan.accumulated == 0:
            scale = self._compute.scale
            if number and scale is not None:
                self._compute.scale = scale.after(is_finite=self._is_finite)
            for module in self._stages.values():
                module.zero_grad(set_to_none=True)
        self._totals.clear()
        self._of_shards.clear()
        self._done.clear()
        self._has_waited, self._factor = False, None

    def run(self, action: Action) -> Iterator[BlockedAction]:
        """Run a STEP, or the REDUCE_GRAD of a stage that is not sharded."""
        require(action not in self._done, f"{action} runs twice")
        if not self._is_last:
            pass  # the gradient is not whole yet
        elif action.kind is Kind.STEP:
            yield from self._step(action.stage)
        elif action.slice == TIE:
            yield from self._add_tied(action)
        else:
            yield from self._add_replicas(action)
        self._done.add(action)

    def tensors(self) -> Iterator[torch.Tensor]:
        """The sums and their factor, the optimizers' state, what is on its way to other ranks."""
        self._sent = still_used(self._sent)
        yield from self._totals.values()
        if self._factor is not None:
            yield self._factor
        for levels in self._of_shards.values():
            yield from levels.values()
        yield from kept_by(self._all_optimizers())
        for sent in self._sent:
            yield from sent.transfer.buffers()

    def left_over(self) -> list[str]:
        """The stages that a pass has not stepped, one phrase each."""
        if self._training is None:
            return []
        stepped = {action.stage for action in self._done if action.kind is Kind.STEP}
        stages = {*self._stages, *self._shards} - stepped
        return [f"stage {stage} without STEP" for stage in sorted(stages)]

    def weights(self) -> Named:
        """The weights by (stage, name) of the stages that were stepped here."""
        return weights_of(self._stages)

    def state(self) -> StateBytes:
        """The model state of the stages that are here, sharded ones included."""
        shards = self._shards.values()
        parameters = [p for module in self._all.values() for p in module.parameters()]
        summed = [p.grad for p in parameters if p.grad is not None]
        return walked(
            [*parameters, *(t for shard in shards for t in shard.weights())],
            [*summed, *self._totals.values(), *(t for shard in shards for t in shard.sums())],
            self._all_optimizers(),
        )

    def _all_optimizers(self) -> list[Optimizer]:
        return [*self.optimizers.values(), *(s.optimizer for s in self._shards.values())]

    def _step(self, stage: int) -> Iterator[BlockedAction]:
        training = self._training
        if training is None or stage not in {*self._stages, *self._shards}:
            raise BrokenProgram(f"{stage}STEP of a stage that does not step on rank {self._rank}")
        if training.has_barrier and not self._has_waited:
            yield from self._barrier(training.clip)
            self._has_waited = True
        if stage in self._shards:
            self._step_shards(stage)
        else:
            self._update(stage)

    def step_shards(self) -> Iterator[BlockedAction]:
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
        named = {(stage, n): p for n, p in trained(self._stages[stage]).items()}
        own = self._own(stage)
        totals = [(p, self._totals.pop(key, own[key])) for key, p in named.items()]
        if self._is_finite:
            whole = [(p, unscaled(total, self._compute.scale)) for p, total in totals]
            step_with(self.optimizers[stage], scaled(whole, self._factor))
        for key, parameter in named.items():  # the report wants what this rank computed
            parameter.grad = own[key]

    def _own(self, stage: int) -> Named:
        """The gradients that this rank has summed of a stage."""
        require(stage in self._stages, f"stage {stage} is not on rank {self._rank}")
        return gradients_of({stage: self._stages[stage]})

    def _add_replicas(self, action: Action) -> Iterator[BlockedAction]:
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
        for key, own in self._own(stage).items():
            self._totals[key] = own + (yield from self._swap(action, own, peer))

    def _add_tied(self, action: Action) -> Iterator[BlockedAction]:
        """Set the totals of what several stages share, for those of them that are here.

        The sum begins with the last stage's, as one backward of all stages has it.
        """
        here = [stage for stage in tied_stages(self._plan) if stage in self._stages]
        require(here, f"{action} adds nothing on rank {self._rank}")
        for ends in ties_of(self._plan.spec, self._plan.num_stages):
            parts = {
                end: self._totals.get(end, self._own(end[0])[end])
                for end in ends
                if end[0] in self._stages
            }
            own = [*parts]
            for peer in sorted({self._holder(end[0]) for end in ends if own} - {self._rank}):
                far = [end for end in ends if self._holder(end[0]) == peer]
                sent = torch.stack([parts[end] for end in own])
                came = yield from self._swap(action, sent, peer, len(far))
                parts |= dict(zip(far, came, strict=True))
            for end in own:
                self._totals[end] = reduce(torch.add, [parts[each] for each in reversed(ends)])

    def _holder(self, stage: int) -> int:
        """The rank from which this one has the gradient of a stage: itself where that is here."""
        return self._rank if stage in self._stages else self._plan.ranks_of(stage)[0]

    def _swap(
        self, tag: Action, gradient: torch.Tensor, peer: int, rows: int | None = None
    ) -> Generator[BlockedAction, None, torch.Tensor]:
        """Send a gradient to ``peer`` and return what comes from it, of so many rows if it says."""
        with self._device.on(DeviceLane.RECEIVES):
            shape = gradient.shape if rows is None else (rows, *gradient.shape[1:])
            buffer = gradient.new_empty(shape)
        if self._rank < peer:
            sent = self._posted(tag, gradient, peer, is_send=True)
            arrives = self._posted(tag, buffer, peer, is_send=False)
        else:
            arrives = self._posted(tag, buffer, peer, is_send=False)
            sent = self._posted(tag, gradient, peer, is_send=True)
        yield from until_done(sent)
        yield from until_done(arrives)
        return arrives.transfer.get()

    def _barrier(self, clip: float | None) -> Iterator[BlockedAction]:
        """Go on once every rank that steps has come this far, and with the norm of all gradients.

        Messages carry 1 where all is finite that the rank has summed, of a scaled loss, and the
        norms where gradients are clipped.
        """
        first, *others = stepping_ranks(self._plan)
        own = self._told(clip)
        if self._rank != first:
            yield from self._tell(own, self._rank, first)
            answer = yield from self._hear(1 if clip is None else 2, first, first)
        else:
            finite, norms = own[:1], {} if clip is None else by_stage(self._plan, first, own[1:])
            for peer in others:
                told = yield from self._hear(self._num_told(peer), peer, peer)
                finite = torch.minimum(finite, told[:1])
                norms |= {} if clip is None else by_stage(self._plan, peer, told[1:])
            norm = [] if clip is None else [global_norm(norms).reshape(1)]
            answer = torch.cat([finite, *norm])
            for peer in others:
                yield from self._tell(answer, first, peer)
        self._is_finite = self._compute.scale is None or bool(answer[0] == 1)
        self._factor = None if clip is None else factor(answer[1:], clip)

    def _told(self, clip: float | None) -> torch.Tensor:
        """Whether all total gradients here are finite, and the norms of the stages that count."""
        told = [torch.ones(1, dtype=self._dtype, device=self._device.torch_device)]
        if self._compute.scale is not None and not all_finite(self._all_totals().values()):
            told[0].zero_()
        for stage in counted_stages(self._plan, self._rank) if clip is not None else ():
            totals = {k: t for k, t in self._all_totals().items() if k[0] == stage}
            whole = {key: unscaled(total, self._compute.scale) for key, total in totals.items()}
            told.append(norms_of(self._plan, whole))
        return torch.cat(told)

    def _all_totals(self) -> Named:
        own = gradients_of(self._stages)
        return {key: self._totals.get(key, each) for key, each in own.items()}

    def _num_told(self, rank: int) -> int:
        """How many numbers a rank tells before it steps."""
        if self._training is None or self._training.clip is None:
            return 1
        return 1 + sum(num_norms(self._plan, stage) for stage in counted_stages(self._plan, rank))

    @property
    def _dtype(self) -> torch.dtype:
        """Of what is told: that of the gradients that are stepped with."""
        name = self._plan.spec.dtype
        return torch.float32 if name == "float16" else DTYPES[name]

    def _room(self, numbers: int, lane: DeviceLane) -> torch.Tensor:
        with self._device.on(lane):
            return torch.zeros(numbers, dtype=self._dtype, device=self._device.torch_device)

    def _tell(self, told: torch.Tensor, sender: int, peer: int) -> Iterator[BlockedAction]:
        tag = Action(stage=sender, kind=Kind.STEP)
        yield from until_done(self._posted(tag, told, peer, is_send=True))

    def _hear(
        self, numbers: int, sender: int, peer: int
    ) -> Generator[BlockedAction, None, torch.Tensor]:
        """What is computed from now on comes after it."""
        into = self._room(numbers, DeviceLane.RECEIVES)
        waiting = self._posted(Action(stage=sender, kind=Kind.STEP), into, peer, is_send=False)
        yield from until_done(waiting)
        return waiting.transfer.get()

    def _posted(
        self, tag: Action, tensor: torch.Tensor, peer: int, *, is_send: bool
    ) -> BlockedAction:
        self._sent.append(posted(self._transport, tag, tensor, peer, is_send=is_send))
        return self._sent[-1]


def exchanging(plan: ReplayPlan) -> frozenset[tuple[int, int]]:
    """The pairs of ranks, lower first, that exchange gradients, or signals of a barrier."""
    if not plan.is_sharded and (plan.training is None or not stepping_ranks(plan)):
        return frozenset()
    pairs = {
        (lower, higher)
        for stage in range(plan.num_stages)
        for lower, higher in combinations(plan.ranks_of(stage), 2)
    }
    for ends in ties_of(plan.spec, plan.num_stages):
        ranks = {rank for stage, _ in ends for rank in plan.ranks_of(stage)}
        pairs |= set(combinations(sorted(ranks), 2))
    if plan.training is not None and plan.training.has_barrier:
        first, *others = stepping_ranks(plan)
        pairs |= {(first, rank) for rank in others}
    return frozenset(pairs)
